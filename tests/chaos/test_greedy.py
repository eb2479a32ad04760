"""One address writes no more than its budget."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.greedy import exhaust_budget
from tests.harness.depth import amount

SECONDS = amount(6, many=30)


async def test_one_address_writes_no_more_than_its_budget(tmp_path: Path) -> None:
    figures = await exhaust_budget(tmp_path, seconds=SECONDS, seed=SECONDS, burst=2e6)
    assert figures.faults == []
    assert figures.refused > 0
    assert figures.written > 1, "the attack wrote nothing"
    assert figures.draws > 0
