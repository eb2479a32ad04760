"""A process stops in the middle of a transaction: it delays the tables that it holds, and no other.

Each test waits, while a lock is held, for what must not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection

from dealer.errors import DatabaseLocked, Overloaded
from dealer.eventlog import Append, Appended, Chain, Conflict, Known, Log
from dealer.eventlog.locked import LONGEST, LockedRequests
from tests.eventlog.asked import A, B, C, append
from tests.eventlog.conftest import PostgresHouse
from tests.eventlog.test_lost_lines import line, through
from tests.proxy import Proxy

__all__ = ["line"]

PATIENT = 600.0
"""Seconds: a test that waits for a lock fails long before."""

TABLES = [bytes([number]) * 16 for number in range(21)]


@pytest.fixture
def place(server_place: PostgresHouse) -> PostgresHouse:
    return server_place


@asynccontextmanager
async def frozen(place: PostgresHouse, sql: str, *parameters: Any) -> AsyncIterator[Any]:
    """A transaction of another process that has done this and goes no further until it is ended."""
    connection = await asyncpg.connect(place.url)
    try:
        await connection.execute("BEGIN")
        await connection.fetch(sql, *parameters)
        yield connection
    finally:
        await connection.close()


def holding(place: PostgresHouse, *tables: bytes) -> Any:
    held = "SELECT * FROM stream WHERE id = ANY($1::bytea[]) FOR UPDATE"
    return frozen(place, held, list(tables))


async def soon(*work: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> list[Any]:
    async with asyncio.timeout(20):
        return await asyncio.gather(*work)


@pytest.mark.parametrize("rows", [1, 80])
async def test_the_other_tables_of_its_batch_and_of_the_next_ones_are_written(
    place: PostgresHouse, rows: int
) -> None:
    """Twenty of 80 rows go in by COPY."""
    held, *others = TABLES
    async with await place.open(busy_seconds=PATIENT) as log:
        await soon(*(log.append(append(table, 0)) for table in TABLES))
        async with holding(place, held) as holder:
            words = ["x"] * rows
            late = log.append(append(held, 1, *words))
            for version in (1, 1 + rows):
                done = await soon(*(log.append(append(table, version, *words)) for table in others))
                assert done == [Appended(version + rows)] * 20
            await soon(log.put_house("ready", b""))
            assert not late.done()
            await holder.execute("ROLLBACK")
            assert await soon(late) == [Appended(1 + rows)]
        assert log.waiting == 0
        assert await log.heads(TABLES) == dict.fromkeys(others, 1 + 2 * rows) | {held: 1 + rows}


async def test_two_nodes_that_meet_a_held_table_from_both_ends_wait_for_nothing_else(
    place: PostgresHouse,
) -> None:
    async with (
        await place.open(busy_seconds=PATIENT) as one,
        await place.open(busy_seconds=PATIENT) as other,
    ):
        tables = TABLES[:9]
        await soon(*(one.append(append(table, 0)) for table in tables))
        async with holding(place, tables[4]) as holder:
            wishes = {
                (log, table): log.append(append(table, 1))
                for log, order in ((one, tables), (other, tables[::-1]))
                for table in order
            }
            held = [wishes.pop((log, tables[4])) for log in (one, other)]
            results = await soon(*wishes.values())
            assert sorted(map(type, results), key=str) == [Appended] * 8 + [Conflict] * 8
            assert not any(each.done() for each in held)
            await holder.execute("ROLLBACK")
            assert sorted(map(type, await soon(*held)), key=str) == [Appended, Conflict]
        assert await one.heads(tables) == dict.fromkeys(tables, 2)
    ((deadlocks,),) = place.ask(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert deadlocks == 0


async def test_nothing_overtakes_what_waits_for_its_table(place: PostgresHouse) -> None:
    """Appends of a chain, a command sent again, a note and a conflict, over several batches."""
    async with await place.open(busy_seconds=PATIENT) as log:
        await soon(log.append(append(A, 0)), log.append(append(B, 0)))
        order: list[object] = []
        log.committed = lambda done: order.extend(request.tag for request, _ in done)
        chain = Chain()
        async with holding(place, A) as holder:
            waiting = []
            for nth, (expected, words) in enumerate(((1, "b"), (2, "c"), (3, "d"))):
                wish = append(A, expected, words, command=words)
                wish.chain, wish.tag = chain, nth
                waiting.append(log.append(wish))
                await soon(log.append(append(B, 1 + nth)))
            again = append(A, 4, "c", command="c")
            again.tag = 3
            waiting.append(log.append(again))
            waiting.append(log.append(Append(A, 0, (), ((4, "text\n\nline\n"),), tag=4)))
            late = append(A, 9)
            late.tag = 5
            waiting.append(log.append(late))
            await soon(log.append(append(B, 4)))
            assert not any(each.done() for each in waiting)
            await holder.execute("ROLLBACK")
            results = await soon(*waiting)
        assert results == [
            *(Appended(version) for version in (2, 3, 4)),
            Known(3, b"digest of c"),
            Appended(0),
            Conflict(4),
        ]
        assert [tag for tag in order if tag is not None] == list(range(6))
        assert [row.public for row in await log.read(A)] == ["{}", "b", "c", "d"]


async def test_what_was_built_on_a_loser_is_not_written(place: PostgresHouse) -> None:
    async with await place.open(busy_seconds=PATIENT) as log:
        await soon(log.append(append(A, 0)))
        chain = Chain()
        async with holding(place, A) as holder:
            wishes = [append(A, version, "late") for version in (1, 2)]
            for wish in wishes:
                wish.chain = chain
            waiting = [log.append(wish) for wish in wishes]
            await soon(log.append(append(B, 0)))
            # The holder was no frozen node after all, and wrote one event.
            await holder.fetch("UPDATE stream SET version = 2 WHERE id = $1", A)
            await holder.execute("COMMIT")
            assert await soon(*waiting) == [Conflict(2), Conflict(2)]
        assert len(await log.read(A)) == 1


@pytest.mark.parametrize("outcome", ["ROLLBACK", "COMMIT"])
async def test_a_table_that_another_has_not_finished_creating(
    place: PostgresHouse, outcome: str
) -> None:
    """No row is there to be skipped, but the key is taken until it is known which way it goes."""
    create = "INSERT INTO stream (id, version, projected) VALUES ($1, 7, 0)"
    async with (
        await place.open(busy_seconds=PATIENT) as log,
        frozen(place, create, A) as holder,
    ):
        late = log.append(append(A, 0))
        for version in range(3):
            done = await soon(log.append(append(B, version)), log.append(append(C, version)))
            assert done == [Appended(version + 1)] * 2
        assert not late.done()
        await holder.execute(outcome)
        assert await soon(late) == [Appended(1) if outcome == "ROLLBACK" else Conflict(7)]


@pytest.mark.parametrize("count", [1, 30])
async def test_a_table_that_stays_held_fails_by_itself(place: PostgresHouse, count: int) -> None:
    async with await place.open(busy_seconds=0.3) as log:
        await soon(log.append(append(A, 0)), log.append(append(B, 0)))
        async with holding(place, A):
            late = [log.append(append(A, 1 + nth)) for nth in range(count)]
            results = await soon(asyncio.gather(*late, return_exceptions=True))
            assert [type(each) for each in results[0]] == [DatabaseLocked] * count
            assert place.database in str(results[0][0])
            assert await soon(log.append(append(B, 1))) == [Appended(2)]
        assert await soon(log.append(append(A, 1))) == [Appended(2)]


async def test_a_schema_change_is_waited_for_and_then_named(place: PostgresHouse) -> None:
    async with await place.open(busy_seconds=0.5) as log:
        await soon(log.append(append(A, 0)))
        async with frozen(place, "LOCK TABLE stream IN ACCESS EXCLUSIVE MODE"):
            with pytest.raises(DatabaseLocked):
                await soon(log.append(append(A, 1)))
        async with frozen(place, "LOCK TABLE stream IN ACCESS EXCLUSIVE MODE") as holder:
            late = log.append(append(A, 1))
            await holder.execute("COMMIT")
            assert await soon(late) == [Appended(2)]


async def test_a_log_that_is_closed_writes_what_was_held(place: PostgresHouse) -> None:
    log = await place.open(busy_seconds=PATIENT)
    await soon(log.append(append(A, 0)))
    async with holding(place, A) as holder:
        late = log.append(append(A, 1))
        closing = asyncio.create_task(log.close())
        await holder.execute("ROLLBACK")
        assert await soon(late, closing) == [Appended(2), None]


async def test_what_waits_for_a_held_table_counts_as_waiting(place: PostgresHouse) -> None:
    async with await place.open(busy_seconds=PATIENT, queue=5) as log:
        await soon(log.append(append(A, 0)))
        async with holding(place, A) as holder:
            late = [log.append(append(A, 1))]
            await soon(log.append(append(B, 0)))

            def fill() -> None:
                for nth in range(2, 9):
                    late.append(log.append(append(A, nth)))

            # One of them may be on its way to the database at this moment.
            with pytest.raises(Overloaded):
                fill()
            assert len(late) in (5, 6)
            await holder.execute("ROLLBACK")
            assert await soon(*late) == [Appended(2 + nth) for nth in range(len(late))]


@pytest.mark.parametrize("command", ["x", None])
async def test_an_answer_that_was_lost_is_still_found_behind_a_lock(
    server_place: PostgresHouse, line: Proxy, command: str | None
) -> None:
    async with await Log.open(through(line, server_place), busy_seconds=60.0) as log:
        await log.append(append(A, 0))
        line.lost, line.closed, line.cut_at = "reply", True, lambda data: A in data
        late = log.append(append(A, 1, "once", command=command))
        async with asyncio.timeout(20):
            while not line.cuts:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        async with holding(server_place, A) as holder:
            line.closed = False
            assert await soon(log.append(append(B, 0))) == [Appended(1)]
            assert not late.done()
            await holder.execute("ROLLBACK")
            assert await soon(late) == [Appended(2)]
        assert [row.public for row in await log.read(A)] == ["{}", "once"]


async def test_a_job_of_the_writer_waits_for_a_lock_and_no_longer(place: PostgresHouse) -> None:
    def move(connection: Connection) -> bool:
        connection.exec_driver_sql("UPDATE stream SET projected = 1 WHERE id = ?", (A,))
        return False

    async with await place.open(busy_seconds=1.0) as log:
        await soon(log.append(append(A, 0)))
        async with holding(place, A):
            with pytest.raises(DatabaseLocked):
                await soon(log.schedule(move))
        await soon(log.schedule(move))


def test_of_a_table_that_stays_locked_one_request_is_tried() -> None:
    kept = LockedRequests()
    assert (kept.pause(), kept.due(9), bool(kept)) == (None, [], False)
    of_a = [(append(A, nth), None) for nth in range(5)]
    kept.keep(of_a[:2])
    assert [kept.queued(each) for each in of_a[2:]] == [True] * 3
    assert not kept.queued((append(B, 0), None))
    assert len(kept) == 5
    pauses = []
    for _ in range(9):
        pause = kept.pause()
        assert pause is not None
        pauses.append(pause)
        while not (tried := kept.due(9)):
            pass
        assert tried == of_a[:1]
        kept.keep(tried)
    assert pauses[0] < pauses[-1] <= LONGEST
    while not kept.due(9):
        pass
    kept.keep([])
    assert kept.due(3) == of_a[1:4], "it is free, and goes on at once"
    kept.keep([])
    assert kept.drain() == of_a[4:]
    assert (len(kept), bool(kept)) == (0, False)
