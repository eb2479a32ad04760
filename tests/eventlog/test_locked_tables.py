"""A process stops in the middle of a transaction: only the tables that it has locked are delayed.

Each test waits, while a lock is held, for work that must not wait for the lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from dealer.errors import DatabaseLocked, Overloaded
from dealer.eventlog import Append, Appended, Chain, Conflict, Duplicate, Log
from dealer.eventlog.postgres.batch import Locked
from dealer.eventlog.postgres.store import LONGEST_DELAY, LockedTables
from dealer.eventlog.protocols import Connection
from tests.eventlog.conftest import TemporaryPostgres
from tests.eventlog.requests import A, B, C, append
from tests.harness.database_link import DatabaseLink

PATIENT = 600.0
"""Seconds: a test that waits for a lock fails long before."""

TABLES = [bytes([number]) * 16 for number in range(21)]


@pytest.fixture
def database(postgres_database: TemporaryPostgres) -> TemporaryPostgres:
    return postgres_database


@asynccontextmanager
async def open_transaction(
    database: TemporaryPostgres, sql: str, *parameters: Any
) -> AsyncIterator[Any]:
    """A transaction of another process that has executed a statement and is not ended."""
    connection = await asyncpg.connect(database.url)
    try:
        await connection.execute("BEGIN")
        await connection.fetch(sql, *parameters)
        yield connection
    finally:
        await connection.close()


def locked(database: TemporaryPostgres, *tables: bytes) -> Any:
    """A transaction of another process that has locked these tables."""
    lock = "SELECT * FROM stream WHERE id = ANY($1::bytea[]) FOR UPDATE"
    return open_transaction(database, lock, list(tables))


async def in_time(*work: Coroutine[Any, Any, Any] | asyncio.Future[Any]) -> list[Any]:
    """The results, before a request that waits for a lock could have ended."""
    async with asyncio.timeout(20):
        return await asyncio.gather(*work)


@pytest.mark.parametrize("rows", [1, 80])
async def test_other_tables_of_the_batch_and_of_later_ones_are_written(
    database: TemporaryPostgres, rows: int
) -> None:
    """Twenty appends of 80 rows are written by COPY."""
    held, *others = TABLES
    async with await database.open(busy_seconds=PATIENT) as log:
        await in_time(*(log.append(append(table, 0)) for table in TABLES))
        async with locked(database, held) as holder:
            words = ["x"] * rows
            delayed = log.append(append(held, 1, *words))
            for version in (1, 1 + rows):
                done = await in_time(
                    *(log.append(append(table, version, *words)) for table in others)
                )
                assert done == [Appended(version + rows)] * 20
            await in_time(log.put_metadata("ready", b""))
            assert not delayed.done()
            await holder.execute("ROLLBACK")
            assert await in_time(delayed) == [Appended(1 + rows)]
        assert log.writer.waiting == 0
        assert await log.heads(TABLES) == dict.fromkeys(others, 1 + 2 * rows) | {held: 1 + rows}


async def test_two_nodes_with_batches_in_opposite_order_wait_only_for_the_locked_table(
    database: TemporaryPostgres,
) -> None:
    async with (
        await database.open(busy_seconds=PATIENT) as one,
        await database.open(busy_seconds=PATIENT) as other,
    ):
        tables = TABLES[:9]
        await in_time(*(one.append(append(table, 0)) for table in tables))
        async with locked(database, tables[4]) as holder:
            appends = {
                (log, table): log.append(append(table, 1))
                for log, order in ((one, tables), (other, tables[::-1]))
                for table in order
            }
            delayed = [appends.pop((log, tables[4])) for log in (one, other)]
            results = await in_time(*appends.values())
            assert sorted(map(type, results), key=str) == [Appended] * 8 + [Conflict] * 8
            assert not any(each.done() for each in delayed)
            await holder.execute("ROLLBACK")
            assert sorted(map(type, await in_time(*delayed)), key=str) == [Appended, Conflict]
        assert await one.heads(tables) == dict.fromkeys(tables, 2)
    ((deadlocks,),) = database.execute(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert deadlocks == 0


async def test_requests_for_a_locked_table_keep_their_order(database: TemporaryPostgres) -> None:
    """A chain, a repeated command, a checkpoint and a conflict, over several batches."""
    async with await database.open(busy_seconds=PATIENT) as log:
        await in_time(log.append(append(A, 0)), log.append(append(B, 0)))
        order: list[object] = []
        number: dict[Append, int] = {}
        log.writer.commit_listeners.append(
            lambda done: order.extend(number.get(request) for request, _ in done)
        )
        chain = Chain()
        async with locked(database, A) as holder:
            waiting = []
            for nth, (expected, words) in enumerate(((1, "b"), (2, "c"), (3, "d"))):
                link = append(A, expected, words, command=words)
                link.chain, number[link] = chain, nth
                waiting.append(log.append(link))
                await in_time(log.append(append(B, 1 + nth)))
            again = append(A, 4, "c", command="c")
            number[again] = 3
            waiting.append(log.append(again))
            noted = Append(A, 0, (), ((4, "text\n\nline\n"),))
            number[noted] = 4
            waiting.append(log.append(noted))
            late = append(A, 9)
            number[late] = 5
            waiting.append(log.append(late))
            await in_time(log.append(append(B, 4)))
            assert not any(each.done() for each in waiting)
            await holder.execute("ROLLBACK")
            results = await in_time(*waiting)
        assert results == [
            *(Appended(version) for version in (2, 3, 4)),
            Duplicate(3, b"digest of c"),
            Appended(0),
            Conflict(4),
        ]
        assert [tag for tag in order if tag is not None] == list(range(6))
        assert [row.public for row in await log.read(A)] == ["{}", "b", "c", "d"]


async def test_an_append_that_follows_a_lost_one_is_not_written(
    database: TemporaryPostgres,
) -> None:
    async with await database.open(busy_seconds=PATIENT) as log:
        await in_time(log.append(append(A, 0)))
        chain = Chain()
        async with locked(database, A) as holder:
            links = [append(A, version, "late") for version in (1, 2)]
            for link in links:
                link.chain = chain
            waiting = [log.append(link) for link in links]
            await in_time(log.append(append(B, 0)))
            # The holder of the lock continues and writes one event.
            await holder.fetch("UPDATE stream SET version = 2 WHERE id = $1", A)
            await holder.execute("COMMIT")
            assert await in_time(*waiting) == [Conflict(2), Conflict(2)]
        assert len(await log.read(A)) == 1


@pytest.mark.parametrize("outcome", ["ROLLBACK", "COMMIT"])
async def test_an_append_waits_for_an_uncommitted_table_of_another_process(
    database: TemporaryPostgres, outcome: str
) -> None:
    """There is no row to skip, but the key is locked until the other transaction ends."""
    create = "INSERT INTO stream (id, version, projected) VALUES ($1, 7, 0)"
    async with (
        await database.open(busy_seconds=PATIENT) as log,
        open_transaction(database, create, A) as holder,
    ):
        late = log.append(append(A, 0))
        for version in range(3):
            done = await in_time(log.append(append(B, version)), log.append(append(C, version)))
            assert done == [Appended(version + 1)] * 2
        assert not late.done()
        await holder.execute(outcome)
        assert await in_time(late) == [Appended(1) if outcome == "ROLLBACK" else Conflict(7)]


@pytest.mark.parametrize("count", [1, 30])
async def test_requests_for_a_table_that_stays_locked_fail_alone(
    database: TemporaryPostgres, count: int
) -> None:
    async with await database.open(busy_seconds=0.3) as log:
        await in_time(log.append(append(A, 0)), log.append(append(B, 0)))
        async with locked(database, A):
            late = [log.append(append(A, 1 + nth)) for nth in range(count)]
            results = await in_time(asyncio.gather(*late, return_exceptions=True))
            assert [type(each) for each in results[0]] == [DatabaseLocked] * count
            assert database.name in str(results[0][0])
            assert await in_time(log.append(append(B, 1))) == [Appended(2)]
        assert await in_time(log.append(append(A, 1))) == [Appended(2)]


async def test_an_append_waits_for_a_schema_change_and_then_fails(
    database: TemporaryPostgres,
) -> None:
    async with await database.open(busy_seconds=0.5) as log:
        await in_time(log.append(append(A, 0)))
        async with open_transaction(database, "LOCK TABLE stream IN ACCESS EXCLUSIVE MODE"):
            with pytest.raises(DatabaseLocked):
                await in_time(log.append(append(A, 1)))
        async with open_transaction(
            database, "LOCK TABLE stream IN ACCESS EXCLUSIVE MODE"
        ) as holder:
            late = log.append(append(A, 1))
            await holder.execute("COMMIT")
            assert await in_time(late) == [Appended(2)]


async def test_closing_a_log_writes_the_delayed_appends(database: TemporaryPostgres) -> None:
    log = await database.open(busy_seconds=PATIENT)
    await in_time(log.append(append(A, 0)))
    async with locked(database, A) as holder:
        late = log.append(append(A, 1))
        closing = asyncio.create_task(log.close())
        await holder.execute("ROLLBACK")
        assert await in_time(late, closing) == [Appended(2), None]


async def test_requests_for_a_locked_table_count_as_waiting(database: TemporaryPostgres) -> None:
    async with await database.open(busy_seconds=PATIENT, queue=5) as log:
        await in_time(log.append(append(A, 0)))
        async with locked(database, A) as holder:
            late = [log.append(append(A, 1))]
            await in_time(log.append(append(B, 0)))

            def fill() -> None:
                for nth in range(2, 9):
                    late.append(log.append(append(A, nth)))

            # One of them may be on its way to the database at this moment.
            with pytest.raises(Overloaded):
                fill()
            assert len(late) in (5, 6)
            await holder.execute("ROLLBACK")
            assert await in_time(*late) == [Appended(2 + nth) for nth in range(len(late))]


@pytest.mark.parametrize("command", ["x", None])
async def test_a_lost_answer_is_found_after_a_lock(
    postgres_database: TemporaryPostgres,
    link: DatabaseLink,
    linked_url: str,
    command: str | None,
) -> None:
    async with await Log.open(linked_url, busy_seconds=60.0) as log:
        await log.append(append(A, 0))
        link.lost, link.closed, link.cut_at = "reply", True, lambda data: A in data
        late = log.append(append(A, 1, "once", command=command))
        async with asyncio.timeout(20):
            while not link.cuts:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        async with locked(postgres_database, A) as holder:
            link.closed = False
            assert await in_time(log.append(append(B, 0))) == [Appended(1)]
            assert not late.done()
            await holder.execute("ROLLBACK")
            assert await in_time(late) == [Appended(2)]
        assert [row.public for row in await log.read(A)] == ["{}", "once"]


async def test_a_job_of_the_writer_fails_at_a_lock_and_works_after_it(
    database: TemporaryPostgres,
) -> None:
    def move(connection: Connection) -> bool:
        connection.exec_driver_sql("UPDATE stream SET projected = 1 WHERE id = ?", (A,))
        return False

    async with await database.open(busy_seconds=1.0) as log:
        await in_time(log.append(append(A, 0)))
        async with locked(database, A):
            with pytest.raises(DatabaseLocked):
                await in_time(log.run_when_idle(move))
        await in_time(log.run_when_idle(move))


def due(tables: LockedTables) -> list[Append]:
    """What is to be tried next, once it is due."""
    while not (tried := tables.take(())):
        pass
    return list(tried)


def test_one_request_is_retried_for_a_table_that_stays_locked() -> None:
    tables = LockedTables(seconds=PATIENT)
    assert tables.seconds_until_due() is None
    of_a, of_b = [append(A, nth) for nth in range(5)], append(B, 0)
    assert tables.take(of_a[:2]) == of_a[:2]
    assert tables.record(of_a[:2], [Locked(), Locked()]) == ([], [])
    assert tables.take([*of_a[2:], of_b])[-1:] == [of_b]
    tables.record([of_b], [Appended(1)])
    pauses = []
    for _ in range(9):
        pause = tables.seconds_until_due()
        assert pause is not None
        pauses.append(pause)
        tried = due(tables)
        assert tried == of_a[:1]
        assert tables.record(tried, [Locked()]) == ([], [])
        assert tables.count == 5
    assert pauses[0] < pauses[-1] <= LONGEST_DELAY
    assert tables.record(due(tables), [Appended(1)]) == (of_a[:1], [Appended(1)])
    assert tables.take(()) == of_a[1:], "the table is free, so its queue is due at once"
    assert tables.drain() == of_a[1:], "what was taken and without a result is not lost"
    assert (tables.count, tables.seconds_until_due()) == (0, None)


def test_all_requests_of_a_table_fail_that_was_locked_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("dealer.eventlog.postgres.store.monotonic", lambda: now)
    tables = LockedTables(seconds=1.0)
    of_a, of_b = [append(A, nth) for nth in range(4)], append(B, 0)
    batch = [*of_a[:2], of_b]
    assert tables.record(batch, [Locked(in_doubt=True), Locked(), Locked()]) == ([], [])
    now += 0.9
    assert tables.take([of_a[2]]) == [of_a[0], of_b]
    assert tables.record([of_a[0], of_b], [Locked(), Appended(1)]) == (
        [of_b],
        [Appended(1)],
    )
    now += 0.9
    (tried,) = tables.take(())
    decided = tables.record([tried], [Locked()])
    assert decided == (of_a[:3], [Locked(in_doubt=True), Locked(), Locked()])
    assert (tables.count, tables.in_doubt) == (0, set())
    late = of_a[3]
    assert tables.record(tables.take([late]), [Locked()]) == ([late], [Locked()]), "at once"
    now += 60
    assert tables.record(tables.take([late]), [Locked()]) == ([], []), "it may be another lock"
