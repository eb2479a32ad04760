"""A house whose clock is not the database server's does not open, and is not ready."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dealer.errors import SetupError
from dealer.gateway import serve
from dealer.service.judge import Judge
from dealer.service.opening import open_service
from tests.gateway.asking import get
from tests.postgres import Postgres

_now = Judge.now


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    database = postgres.database()
    yield postgres.url(database)
    postgres.drop(database)


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By how many milliseconds the house's clock is off."""
    by = [0]
    monkeypatch.setattr(Judge, "now", lambda judge: _now(judge) + by[0])
    return by


@pytest.mark.parametrize(("by", "says"), [(11_500, "11 s ahead of"), (-3_500, "3 s behind")])
async def test_it_does_not_open(
    url: str, tmp_path: Path, off: list[int], by: int, says: str
) -> None:
    off[0] = by
    with pytest.raises(SetupError, match=f"clock is {says} the database server's; set both by NTP"):
        async with open_service(url, house_key=tmp_path / "house.key"):
            pass


async def test_it_is_not_ready_while_it_is_off_and_says_each_reason(
    url: str,
    tmp_path: Path,
    off: list[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO", "dealer.gateway.operations")
    monkeypatch.setattr("dealer.gateway.operations.FRESH_SECONDS", 0.0)
    async with (
        open_service(url, house_key=tmp_path / "house.key") as service,
        serve(service, port=0, ops_port=0) as gateway,
    ):
        for by, says in ((1_500, "ready"), (-1_500, "ready"), (5_500, "5 s ahead"), (0, "ready")):
            off[0] = by
            answer = await get(gateway.ops_port, "/readyz")
            assert says in answer.text
            assert (answer.status == 200) == (says == "ready")
            assert (answer.status == 200) == answer.text.startswith("ready\nPostgreSQL 1")
        for by in (5_500, 5_500, -9_500):
            off[0] = by
            await get(gateway.ops_port, "/readyz")
    told = [one.told for one in caplog.records if one.getMessage() == "readiness"]
    assert [re.findall(r"[0-9]+ s [a-z]+", one.get("says", "")) for one in told] == [
        [], ["5 s ahead"], [], ["5 s ahead"], ["9 s behind"],
    ]  # fmt: skip


async def test_a_file_has_no_other_clock(tmp_path: Path, off: list[int]) -> None:
    off[0] = 60_000
    async with open_service(f"sqlite:///{tmp_path / 'dealer.db'}"):
        pass
