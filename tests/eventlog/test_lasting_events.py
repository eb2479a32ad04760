"""The events that outlive a round are read through their index, on both databases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dealer.eventlog import Append, EventRecord, Log
from dealer.eventlog.stored_form import KINDS
from dealer.game.events import LASTING_TYPES
from tests.eventlog.conftest import TemporaryPostgres, TemporarySqlite
from tests.eventlog.requests import A, B

EVENTS = 2_000
EVERY = 100
"""One event of so many lasts; the others are of rounds."""

INDEX = "ix_event_lasting"
TYPES = (LASTING_TYPES, ("SeatTaken",), ("SeatLeft", "HostTransferred"))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> TemporarySqlite | TemporaryPostgres:
    found: TemporarySqlite | TemporaryPostgres = request.getfixturevalue(
        f"{request.param}_database"
    )
    return found


def type_of(version: int) -> str:
    if version % EVERY != 1:
        return "RoundClosed" if version % 50 == 0 else "CardsSwapped"
    return LASTING_TYPES[version // EVERY % len(LASTING_TYPES)]


async def fill(log: Log) -> None:
    for table in (A, B):
        rows = [EventRecord(n, type_of(n), 1, n, "{}") for n in range(1, EVENTS + 1)]
        await log.append(Append(table, 0, rows))


async def plan(log: Log, types: Sequence[str]) -> str:
    """How the database reads the events of these types."""
    explain = "EXPLAIN QUERY PLAN" if log.dialect == "sqlite" else "EXPLAIN"
    parameters = (A, 0, EVENTS, *types, 256)
    found = await log.fetch(f"{explain} {log._queries.of_types(types)}", parameters)
    return "\n".join(str(row[-1]) for row in found)


async def test_they_are_those_of_the_types_up_to_a_version(
    database: TemporarySqlite | TemporaryPostgres,
) -> None:
    async with await database.open() as log:
        await fill(log)
        for types in (*TYPES, ("RoundClosed",), ("RoundClosed", "SeatTaken")):
            for upto in (0, 1, EVERY + 1, EVENTS):
                found = [
                    row.version
                    async for rows in log.stream_types(A, types, upto=upto, chunk=3)
                    for row in rows
                ]
                assert found == [n for n in range(1, upto + 1) if type_of(n) in types]


@pytest.mark.parametrize("analyzed", [False, True])
async def test_the_database_searches_the_index(
    database: TemporarySqlite | TemporaryPostgres, analyzed: bool
) -> None:
    async with await database.open() as log:
        await fill(log)
        if analyzed:
            database.execute("ANALYZE")
        for types in TYPES:
            assert INDEX in await plan(log, types)
        assert INDEX not in await plan(log, ("RoundClosed", "SeatTaken"))


def test_rows_name_their_types_in_full() -> None:
    """The condition of the index compares types as they are stored."""
    assert not {name for name, _ in KINDS.values()} & {*LASTING_TYPES}
