"""Both verifiers report the rule `broadcast` of a table."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.empty_log import empty_log
from tests.service.bare_service import bare_service
from tests.service.tables import bundle_of
from tests.web.js_verifier import Bundle, compare

pytestmark = pytest.mark.slow


async def _bundles(file: Path, rules: list[dict[str, Any]]) -> list[Bundle]:
    async with bare_service(empty_log(file)) as service:
        tables = [(await service.open_table(each))[0] for each in rules]
        return [Bundle(str(each), await bundle_of(service, one), None, [])
                for each, one in zip(rules, tables, strict=True)]  # fmt: skip


def test_both_verifiers_report_a_broadcast(tmp_path: Path) -> None:
    bundles = asyncio.run(_bundles(tmp_path / "log.db", [{"broadcast": 0}, {"broadcast": 300}, {}]))
    found, reports = compare(bundles)
    assert found == []
    said = [[line for line in each.verdicts() if "broadcast" in line] for each in reports]
    assert said == [
        [
            f"broadcast: by a rule of this table, hands were shown {seconds} seconds after each "
            "event to those who had a link to its broadcast."
        ]
        for seconds in (0, 300)
    ] + [[]]
