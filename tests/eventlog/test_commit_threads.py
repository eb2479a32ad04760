"""Appends committed by the event loop's thread and by the writer thread, in turn and in order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from dealer.errors import DatabaseError, DatabaseFull, DatabaseReplaced
from dealer.eventlog import Append, Appended, Log, Result
from dealer.eventlog.protocols import Connection
from dealer.eventlog.sqlite import store as sqlite
from dealer.eventlog.sqlite.wal import WalCheckpoints
from dealer.eventlog.writer import MAX_ROWS
from tests.eventlog.conftest import TemporarySqlite
from tests.eventlog.requests import A, B, append, line_of, other_process
from tests.harness.server_process import PATIENT
from tests.harness.statements import watch_direct

LOOP, THREAD = "loop", "thread"
ENOUGH = 200
"""Commits after which the policy must have changed the thread."""

PAGES = 2000
"""So many that no WAL checkpoint is due, for which the writer thread would need the lock."""


class Recorded:
    """A log, the threads that wrote its appends, and the appends in the order of the results."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.writers: list[str] = []
        self.answered: list[tuple[Append, Result]] = []
        log.writer.written_listeners.append(self._on_written)
        log.writer.commit_listeners.append(self.answered.extend)

    def _on_written(self, requests: object, results: object) -> None:
        self.writers.append(LOOP if current_thread() is main_thread() else THREAD)

    async def append_until(self, writer: str) -> None:
        """Append to table B until this thread has written: then the other one is idle."""
        for _ in range(ENOUGH):
            await self.log.append(append(B, await self.log.head(B) or 0))
            if self.writers[-1] == writer:
                # A turn of the thread that has nothing to do takes the lock, too.
                while writer == LOOP and not self._thread_waits():  # noqa: ASYNC110  see above
                    await asyncio.sleep(0.001)
                return
        raise AssertionError(f"after {ENOUGH} commits the thread is still the same")

    def _thread_waits(self) -> bool:
        wakeup: Any = self.log.writer._wakeup
        return bool(wakeup._cond._waiters)


class FakeDisk:
    """The store's clock: each COMMIT takes `seconds`."""

    def __init__(self) -> None:
        self.seconds = 0.0001
        self._now = 0.0

    def perf_counter(self) -> float:
        self._now += self.seconds
        return self._now


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    disk = FakeDisk()
    monkeypatch.setattr(sqlite, "perf_counter", disk.perf_counter)
    return disk


@pytest.fixture
async def auto(sqlite_database: TemporarySqlite) -> AsyncIterator[Recorded]:
    async with await sqlite_database.open(commit="auto", wal_pages=PAGES) as log:
        yield Recorded(log)


@pytest.fixture
async def on_loop(sqlite_database: TemporarySqlite) -> AsyncIterator[Recorded]:
    async with await sqlite_database.open(commit="loop", wal_pages=PAGES) as log:
        recorded = Recorded(log)
        await recorded.append_until(LOOP)
        recorded.writers.clear()
        recorded.answered.clear()
        yield recorded


async def test_the_loop_commits_while_the_disk_is_quick(auto: Recorded, disk: FakeDisk) -> None:
    await auto.append_until(LOOP)
    assert auto.writers.index(LOOP) > 5, "the thread begins"
    disk.seconds = 5.0
    await auto.log.append(append(A, 0))
    await auto.log.append(append(A, 1))
    assert auto.writers[-3:] == [LOOP, LOOP, THREAD], "the loop was stalled more than once"
    disk.seconds = 0.0001
    await auto.append_until(LOOP)


async def test_versions_and_results_are_in_order_over_changes_of_the_thread(
    auto: Recorded, disk: FakeDisk
) -> None:
    """Small and large appends of a table, with work between them, on a disk that changes."""
    requests: list[Append] = []
    version, works = 0, []
    for phase in (LOOP, THREAD, LOOP, THREAD, LOOP):
        disk.seconds = 0.0001 if phase == LOOP else 0.01
        for number in range(100):
            count = MAX_ROWS + 1 if number % 50 == 10 else 1
            requests.append(append(A, version, *["{}"] * count))
            version += count
            auto.log.writer.submit(requests[-1])
            if number % 20 == 5:
                works.append(auto.log.run_when_idle(lambda _: False))
            if number % 3:
                await asyncio.sleep(0)
        await auto.append_until(phase)
    await asyncio.gather(*works)
    answered = [pair for pair in auto.answered if pair[0].table == A]
    assert answered == [(request, Appended(request.end)) for request in requests]
    rows = await auto.log.read(A, limit=version + 1)
    assert [row.version for row in rows] == list(range(1, version + 1))


async def test_appends_of_one_iteration_share_a_commit_on_the_loop(on_loop: Recorded) -> None:
    answers: list[object] = []
    waiting = [on_loop.log.append(append(A, number)) for number in range(10)]
    on_loop.log.writer.commit_listeners.append(lambda pairs: answers.append(len(pairs)))
    assert on_loop.answered == [], "a result was delivered inside of `append`"
    await asyncio.gather(*waiting)
    assert (on_loop.writers, answers) == ([LOOP], [10])


async def test_a_large_append_is_left_to_the_thread(on_loop: Recorded) -> None:
    small, large = append(A, 0), append(A, 1, *["{}"] * (MAX_ROWS + 1))
    assert await on_loop.log.append(small) == Appended(1)
    assert await on_loop.log.append(large) == Appended(large.end)
    assert on_loop.writers == [LOOP, THREAD]
    await on_loop.append_until(LOOP)


@pytest.mark.slow
async def test_while_another_process_has_the_lock_the_thread_waits_for_it(
    sqlite_database: TemporarySqlite, on_loop: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    await on_loop.log.append(append(A, 0))
    begun: list[tuple[str, bool]] = []

    def on_statement(sql: str) -> None:
        if sql.startswith("BEGIN"):
            begun.append((current_thread().name, store._waits))

    store: Any = on_loop.log.writer._store
    watch_direct("before", on_statement, patch=monkeypatch.setattr)
    holder = other_process("hold", str(sqlite_database.file))
    assert await line_of(holder) == "held\n"
    waiting = [on_loop.log.append(append(A, 1))]
    for number in (2, 3, 4):
        waiting.append(on_loop.log.append(append(A, number)))
        assert await on_loop.log.heads([A]) == {A: 1}  # needs several iterations of the loop
    async with asyncio.timeout(PATIENT):
        while begun[-1] != ("log writer", True):  # noqa: ASYNC110  another thread is waited for
            await asyncio.sleep(0.002)
    assert not any(future.done() for future in waiting)
    assert begun[0] == ("MainThread", False)
    await asyncio.to_thread(holder.communicate, "release\n")
    assert await asyncio.gather(*waiting) == [Appended(n) for n in (2, 3, 4, 5)]
    assert on_loop.writers[:2] == [LOOP, THREAD]
    await on_loop.append_until(LOOP)


class Locked:
    """A connection that has to wait for another process."""

    def execute(self, *_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    def close(self) -> None:
        pass


async def test_where_the_loop_commits_a_head_is_read_without_a_turn_of_the_loop(
    sqlite_database: TemporarySqlite, on_loop: Recorded
) -> None:
    await on_loop.log.append(append(A, 0))
    for table, version in ((A, 1), (bytes(16), None)):
        with pytest.raises(StopIteration) as ended:
            on_loop.log.head(table).send(None)
        assert ended.value.value == version
    reader: Any = on_loop.log.reader
    own, reader._own = reader._own, Locked()
    assert await on_loop.log.head(A) == 1  # on a thread, which waits
    reader._own = own
    sqlite_database.file.rename(sqlite_database.file.with_suffix(".moved"))
    with pytest.raises(DatabaseReplaced):
        await on_loop.log.head(A)


@pytest.mark.slow
async def test_work_of_the_thread_waits_for_the_lock_of_another_process(
    sqlite_database: TemporarySqlite, on_loop: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a commit of the loop, which does not wait, on the same connection."""
    holder = other_process("hold", str(sqlite_database.file))
    assert await line_of(holder) == "held\n"
    statements = asyncio.Event()
    loop = asyncio.get_running_loop()
    store: Any = on_loop.log.writer._store
    plain = store._connection.exec_driver_sql

    def execute(*arguments: object) -> object:
        loop.call_soon_threadsafe(statements.set)
        return plain(*arguments)

    monkeypatch.setattr(store._connection, "exec_driver_sql", execute)
    waiting = asyncio.create_task(on_loop.log.run_in_transaction(lambda _: "done"))
    await statements.wait()
    await asyncio.to_thread(holder.communicate, "release\n")
    assert await waiting == "done"


async def test_the_loop_does_not_wait_for_work_of_the_thread(on_loop: Recorded) -> None:
    started, may_end = Event(), Event()

    def work(_: Connection) -> str:
        started.set()
        assert may_end.wait(20)
        return "done"

    running = asyncio.create_task(on_loop.log.run_in_transaction(work))
    await asyncio.to_thread(started.wait, 20)
    waiting = on_loop.log.append(append(A, 0))
    assert await on_loop.log.head(A) is None
    assert not waiting.done()
    may_end.set()
    assert (await running, await waiting) == ("done", Appended(1))
    assert on_loop.writers == [THREAD]


async def test_work_is_done_while_the_loop_commits(on_loop: Recorded) -> None:
    threads = []

    def work(_: Connection) -> bool:
        threads.append(current_thread().name)
        return len(threads) < 3

    done = on_loop.log.run_when_idle(work)
    number = 0
    while not done.done():
        await on_loop.log.append(append(A, number))
        number += 1
    assert threads == ["log writer"] * 3


async def test_a_lost_connection_is_opened_again_by_the_thread(on_loop: Recorded) -> None:
    await on_loop.log.append(append(A, 0))
    store: Any = on_loop.log.writer._store
    store._disconnect()
    assert await on_loop.log.append(append(A, 1)) == Appended(2)
    assert on_loop.writers == [LOOP, THREAD]
    await on_loop.append_until(LOOP)


async def test_a_failed_commit_on_the_loop_fails_its_batch_and_moves_to_the_thread(
    auto: Recorded, disk: FakeDisk
) -> None:
    await auto.append_until(LOOP)
    await auto.log.append(append(A, 0))
    store: Any = auto.log.writer._store
    pages = store._connection.exec_driver_sql("PRAGMA max_page_count=1").scalar_one()
    assert pages > 1, "SQLite uses the present size of the file instead"
    others = await auto.log.head(B) or 0
    answers = await asyncio.gather(
        auto.log.append(append(A, 1, *["long " * 1000] * 50)),
        auto.log.append(append(B, others)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [DatabaseFull] * 2
    assert auto.writers[-1] == LOOP
    assert not auto.log.writer.commits_on_loop
    store._connection.exec_driver_sql("PRAGMA max_page_count=1000000")
    assert await auto.log.append(append(A, 1)) == Appended(2)
    assert auto.writers[-1] == THREAD


async def test_an_internal_error_on_the_loop_answers_all_callers(
    on_loop: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(on_loop.log.writer._store, "append", fail)
    waiting = [on_loop.log.append(append(A, number)) for number in range(3)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [DatabaseError] * 3
    assert "MemoryError" in str(answers[0])
    assert len(on_loop.answered) == 3
    with pytest.raises(DatabaseError, match="MemoryError"):
        on_loop.log.writer.submit(append(A, 0))


async def test_closing_writes_what_the_loop_had_not_committed(
    sqlite_database: TemporarySqlite,
) -> None:
    log = await sqlite_database.open(commit="loop")
    recorded = Recorded(log)
    waiting = [log.append(append(A, number)) for number in range(5)]
    await log.close()
    assert [future.result() for future in waiting] == [Appended(n + 1) for n in range(5)]
    # In one batch or two: the thread may look at the queue while the requests are added to it.
    assert set(recorded.writers) == {THREAD}
    with sqlite3.connect(sqlite_database.file) as connection:
        assert connection.execute("SELECT count(*) FROM event").fetchall() == [(5,)]
    connection.close()


async def test_the_wal_is_checkpointed_by_the_thread_while_the_loop_commits(
    sqlite_database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    take = WalCheckpoints.take

    def recorded(self: Any, connection: Any) -> None:
        threads.append(current_thread().name)
        take(self, connection)

    monkeypatch.setattr(WalCheckpoints, "take", recorded)
    async with await sqlite_database.open(commit="loop", wal_pages=20) as log:
        number = 0
        while len(threads) < 3:
            await log.append(append(A, number, "x" * 4000))
            number += 1
    assert set(threads) == {"log writer"}
