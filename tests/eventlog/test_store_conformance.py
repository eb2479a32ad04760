"""Guarantees of every store: each test runs on PostgreSQL, and twice on SQLite and on the store of
the simulation, where the writer thread commits and where the event loop does.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from functools import partial
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from dealer.errors import DatabaseDamaged, DatabaseError, Overloaded, Unavailable
from dealer.eventlog import Append, Appended, Chain, Conflict, Duplicate, EventRecord, Log, admin
from dealer.eventlog.protocols import Connection
from tests.eventlog.conftest import TemporaryDatabase, TemporaryPostgres
from tests.eventlog.requests import A, B, C, append, cancelled_at, line_of, other_process, row


async def test_rows_are_read_as_they_were_appended(database: TemporaryDatabase) -> None:
    rows = [
        EventRecord(
            1, "Dealt", 2, 2**41, '{"é":"\\u0000"}', b"c" * 32, b"\x00\xff", "id", b"digest"
        ),
        EventRecord(2, "Drawn", 1, 2**41, "{}"),
    ]
    async with await database.open() as log:
        assert await log.append(Append(A, 0, rows)) == Appended(2)
    async with await database.open() as log:
        assert await log.read(A) == rows
        assert all(type(each) is EventRecord for each in await log.read(A))


async def test_reads_are_limited_to_a_range(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, *map(str, range(1, 11))))
        await log.append(append(B, 0, "other"))

        async def words(**range_: int) -> list[str]:
            return [each.public for each in await log.read(A, **range_)]

        assert await words(after=7) == ["8", "9", "10"]
        assert await words(after=2, upto=4) == ["3", "4"]
        assert await words(limit=2) == ["1", "2"]
        assert await words(after=10) == []
        parts = [part async for part in log.stream(A, after=1, upto=8, chunk=3)]
        assert [[each.version for each in part] for part in parts] == [[2, 3, 4], [5, 6, 7], [8]]
        assert (await log.head(A), await log.head(B), await log.head(C)) == (10, 1, None)
        assert await log.heads([A, C]) == {A: 10}


async def test_heads_that_are_asked_for_at_once_share_a_query(
    database: TemporaryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One asked for while a query runs is of the next: it began after the call."""
    async with await database.open() as log:
        monkeypatch.setattr(type(log), "quick", False)  # else each is read at once
        await log.append(append(A, 0, "1", "2"))
        heads, begun, go_on, queries = log.heads, asyncio.Event(), asyncio.Event(), []

        async def slowly(tables: set[bytes]) -> dict[bytes, int]:
            queries.append(set(tables))
            found = await heads(tables)
            begun.set()
            await go_on.wait()
            return found

        monkeypatch.setattr(log, "heads", slowly)
        first = asyncio.gather(log.head(A), log.head(B), log.head(A))
        await begun.wait()
        await log.append(append(A, 2, "3"))
        cancelled, *later = [asyncio.create_task(log.head(each)) for each in (A, A, B)]
        await asyncio.sleep(0)
        cancelled.cancel()
        go_on.set()
        assert list(await first) == [2, None, 2]
        assert list(await asyncio.gather(*later)) == [3, None]
        assert queries == [{A, B}, {A, B}]


async def test_an_append_must_expect_the_newest_version(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        assert await log.append(append(A, 0, "1", "2")) == Appended(2)
        assert await log.append(append(A, 2, "3")) == Appended(3)
        assert await log.append(append(A, 2, "no")) == Conflict(3)
        assert await log.append(append(A, 4, "no")) == Conflict(3)
        assert await log.append(append(C, 1, "no")) == Conflict(0)
        assert [each.public for each in await log.read(A)] == ["1", "2", "3"]
        assert await log.head(C) is None


async def test_a_conflict_fails_only_its_own_request(
    database: TemporaryDatabase,
) -> None:
    batches: list[int] = []
    async with await database.open() as log:
        await log.append(append(A, 0))
        log.writer.commit_listeners.append(lambda pairs: batches.append(len(pairs)))
        waiting = [
            log.append(append(B, 0)),
            log.append(append(A, 0, "late")),
            log.append(append(C, 0, "1", "2")),
            log.append(append(A, 1)),
            log.append(append(A, 1, "late again")),
        ]
        results = await asyncio.gather(*waiting)
        assert batches == [5]
        assert results == [Appended(1), Conflict(1), Appended(2), Appended(2), Conflict(2)]
        both = await asyncio.gather(log.append(append(B, 1)), log.append(append(B, 7, "ahead")))
        assert list(both) == [Appended(2), Conflict(2)]
        assert [each.version for each in await log.read(B)] == [1, 2]
        assert [await log.head(table) for table in (A, B, C)] == [2, 2, 2]


async def test_appends_to_one_table_are_written_and_answered_in_order(
    database: TemporaryDatabase,
) -> None:
    seen: list[tuple[Append, object]] = []
    async with await database.open(batch=64) as log:
        log.writer.commit_listeners.append(seen.extend)
        requests = [append(A, number, str(number)) for number in range(300)]
        answered: list[int] = []

        def on_answer(number: int, _: object) -> None:
            answered.append(number)

        for number, request in enumerate(requests):
            log.append(request).add_done_callback(partial(on_answer, number))
        last = await log.append(append(A, 300))
        assert last == Appended(301)
        assert [request for request, _ in seen[:-1]] == requests
        assert [result for _, result in seen] == [Appended(n + 1) for n in range(301)]
        assert answered == list(range(300))
        assert [each.public for each in await log.read(A, limit=300)] == list(map(str, range(300)))


async def test_the_callback_is_called_after_the_commit_and_before_the_answers(
    database: TemporaryDatabase,
) -> None:
    order: list[str] = []

    def committed(pairs: object) -> None:
        ((count,),) = database.execute("SELECT count(*) FROM event")
        order.append(f"{count} on disk")

    async with await database.open() as log:
        log.writer.commit_listeners.append(committed)
        future = log.append(append(A, 0))
        future.add_done_callback(lambda _: order.append("answered"))
        await future
        log.writer.submit(append(A, 1))
        await log.append(append(A, 2))
    assert order == ["1 on disk", "answered", "3 on disk"]


async def test_a_failing_callback_does_not_prevent_the_answer(
    database: TemporaryDatabase,
) -> None:
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, c: reported.append(c["exception"]))

    def committed(pairs: object) -> None:
        raise KeyError("a bug")

    async with await database.open() as log:
        log.writer.commit_listeners.append(committed)
        assert await log.append(append(A, 0)) == Appended(1)
    assert [type(error) for error in reported] == [KeyError]


async def test_after_a_lost_append_nothing_of_its_chain_is_written(
    database: TemporaryDatabase,
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        chain = Chain()
        links = [append(A, 0, "lost"), append(A, 2, "built on what was lost")]
        for link in links:
            link.chain = chain
        results = await asyncio.gather(
            log.append(links[0]), log.append(append(A, 1, "another's")), log.append(links[1])
        )
        assert list(results) == [Conflict(1), Appended(2), Conflict(2)]
        later = append(A, 2, "also built on it")
        later.chain = chain
        assert await log.append(later) == Conflict(2)
        assert await log.append(append(A, 2)) == Appended(3)


async def test_a_repeated_command_gets_its_first_result(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, "0"))
        assert await log.append(append(A, 1, "1", "2", command="x")) == Appended(3)
        await log.append(append(A, 3, "3"))
        first = Duplicate(2, b"digest of x")
        # The expected version does not matter: old, current, or one that the table never had.
        for expected in (1, 4, 9):
            assert await log.append(append(A, expected, "again", command="x")) == first
        assert await log.head(A) == 4
        found = await log.find_command(A, "x")
        assert found is not None
        assert Duplicate(found.version, found.digest) == first
        assert await log.find_command(A, "y") is None


async def test_another_command_with_the_same_id_gets_the_digest_of_the_first(
    database: TemporaryDatabase,
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, command="x"))
        other = Append(A, 1, [replace(row(2, command="x"), digest=b"another body")])
        assert await log.append(other) == Duplicate(1, b"digest of x")
        assert await log.head(A) == 1


async def test_a_command_twice_in_one_batch_is_written_once(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        results = await asyncio.gather(
            log.append(append(A, 0, command="x")),
            log.append(append(A, 1, command="x")),
            log.append(append(B, 0, command="x")),
        )
        assert list(results) == [Appended(1), Duplicate(1, b"digest of x"), Appended(1)]


async def test_an_invalid_row_fails_only_its_own_append(
    database: TemporaryDatabase,
) -> None:
    lone_surrogate = "\ud800"
    async with await database.open() as log:
        results = await asyncio.gather(
            log.append(append(A, 0, "1")),
            log.append(append(A, 1, "fine", lone_surrogate)),
            log.append(append(B, 0, "fine", lone_surrogate)),
            log.append(append(C, 0, "1")),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [
            Appended,
            DatabaseError,
            DatabaseError,
            Appended,
        ]
        assert [await log.head(table) for table in (A, B, C)] == [1, None, 1]
        # The number that B would have in the database now belongs to another table.
        assert await log.append(append(B, 1, "2")) == Conflict(0)
        assert await log.append(append(A, 1, "2")) == Appended(2)
        assert await log.append(append(B, 0, "1")) == Appended(1)


async def test_rows_that_are_not_consecutive_are_refused(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        for invalid in (
            Append(A, 0, [row(2)]),
            Append(A, 0, [row(1), row(3)]),
            Append(A, 0, []),
            Append(b"short", 0, [row(1)]),
        ):
            with pytest.raises(ValueError, match=r"version|rows|16"):
                log.append(invalid)


async def test_cancellation_at_any_await_leaves_no_transaction_and_doubles_no_append(
    database: TemporaryDatabase,
) -> None:
    async with await database.open(readers=1) as log:

        async def play(number: int) -> None:
            expected = await log.head(A) or 0
            await log.append(append(A, expected, command=f"c{number}"))
            await log.read(A)
            await log.put_metadata("opened", b"yes")

        steps, cancelled = 0, True
        while cancelled:
            task = asyncio.create_task(cancelled_at(play(steps), steps))
            answers = await asyncio.gather(task, return_exceptions=True)
            cancelled = isinstance(answers[0], asyncio.CancelledError)
            # Whether it was written or not, repeating the command writes it once.
            expected = await log.head(A) or 0
            result = await log.append(append(A, expected, command=f"c{steps}"))
            while isinstance(result, Conflict):
                result = await log.append(append(A, result.version, command=f"c{steps}"))
            steps += 1
        commands = [str(each.command) for each in await log.read(A)]
        assert sorted(commands) == sorted(f"c{number}" for number in range(steps))
        assert steps > 3  # each call waits at least once, but for a head that is read at once
        assert database.no_transaction_is_open()
    gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
async def test_two_processes_append_to_one_table_at_once(database: TemporaryDatabase) -> None:
    each = 60
    others = [
        other_process("compete", database.url, database.commit, A.hex(), name, str(each))
        for name in ("x", "y")
    ]
    for process in others:
        assert await line_of(process) == "ready\n"
    for process in others:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outs = [(await asyncio.to_thread(process.communicate))[0] for process in others]
    assert [process.returncode for process in others] == [0, 0]
    assert sum(int(out) for out in outs) > 0, "there was no conflict, so nothing was tested"
    async with await database.open() as log:
        rows = await log.read(A)
    assert [each.version for each in rows] == list(range(1, 2 * each + 1))
    for name in ("x", "y"):
        own = [r.public for r in rows if r.public[0] == name]
        assert own == [f"{name}{number}" for number in range(each)]


async def kill_at(point: str, database: TemporaryDatabase) -> None:
    """Append to table A in another process, which is killed at this point of the append."""
    process = other_process(point, database.url, database.commit, A.hex())
    await asyncio.to_thread(process.communicate)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
async def test_a_command_killed_between_commit_and_reply_is_known(
    database: TemporaryDatabase,
) -> None:
    await kill_at("die_after_commit", database)
    async with await database.open() as log:
        retry = Append(A, 0, [row(1, command="only once")])
        assert await log.append(retry) == Duplicate(1, b"only once")
        assert await log.head(A) == 1
        assert await log.append(append(A, 1)) == Appended(2)


@pytest.mark.slow
async def test_an_append_killed_before_the_commit_leaves_nothing(
    database: TemporaryDatabase,
) -> None:
    await kill_at("die_before_commit", database)
    async with await database.open() as log:
        assert await log.head(A) is None
        assert await log.append(append(A, 0, command="never")) == Appended(1)


async def test_closing_writes_the_queue(database: TemporaryDatabase) -> None:
    log = await database.open(batch=10)
    waiting = [log.append(append(A, number)) for number in range(95)]
    await log.close()
    assert [future.result() for future in waiting] == [Appended(n + 1) for n in range(95)]
    with pytest.raises(Unavailable, match="shutting down"):
        log.append(append(A, 95))
    async with await database.open() as log:
        assert await log.head(A) == 95


async def test_a_full_queue_refuses_appends(database: TemporaryDatabase) -> None:
    async with await database.open(queue=3) as log:
        waiting = [log.append(append(A, number)) for number in range(3)]
        assert log.writer.waiting == 3
        with pytest.raises(Overloaded, match="again"):
            log.append(append(A, 3))
        await asyncio.gather(*waiting)
        assert await log.append(append(A, 3)) == Appended(4)


@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
async def test_a_read_without_a_free_reader_is_refused(database: TemporaryDatabase) -> None:
    async with await database.open(readers=1, busy_seconds=0.05) as log:
        reader: Any = log.reader
        unused = reader._unused if log.dialect == "sqlite" else reader._engine.connect()
        async with unused:
            with pytest.raises(Overloaded, match="again"):
                await log.heads([bytes(16)])
        assert await log.heads([bytes(16)]) == {}


async def test_a_writer_that_fails_answers_all_callers(
    database: TemporaryDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await database.open(batch=2) as log:
        await log.append(append(A, 0))

        def fail(*_: object, **__: object) -> None:
            raise MemoryError("no room")

        monkeypatch.setattr(log.writer._store, "append", fail)
        results: list[object] = []
        log.writer.commit_listeners.append(
            lambda pairs: results.extend(result for _, result in pairs)
        )
        waiting = [log.append(append(A, number)) for number in range(1, 6)]
        scheduled = log.run_when_idle(lambda _: True)
        answers = await asyncio.gather(*waiting, scheduled, return_exceptions=True)
        assert [type(answer) for answer in answers] == [DatabaseError] * 6
        assert "MemoryError" in str(answers[0])
        assert "restart the server" in str(answers[0])
        assert len(results) == 5
        with pytest.raises(DatabaseError, match="MemoryError"):
            log.writer.submit(append(A, 1))


def note(size: int, root: str = "root") -> str:
    """A checkpoint of table A, signed by the house."""
    return f"house/t/a\n{size}\n{root}\n\n— house sig\n"


def signed_append() -> Append:
    """Two events of table A with their checkpoint."""
    request = append(A, 0, "1", "2")
    request.checkpoints = ((2, note(2)),)
    return request


async def test_cosignatures_are_added_to_the_stored_note(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(signed_append())
        await asyncio.gather(
            log.put_checkpoint(A, 2, note(2) + "— player/x sig\n"),
            log.put_checkpoint(A, 2, note(2) + "— player/y sig\n"),
            log.put_checkpoint(A, 1, note(1)),
        )
        both = note(2) + "— player/x sig\n— player/y sig\n"
        assert [size for size, _ in await log.checkpoints(A)] == [1, 2]
        assert await log.newest_checkpoint(A) == (2, both)
        assert (await log.newest_checkpoint(A, upto=1) or (0,))[0] == 1
        assert await log.checkpoints(A, after=1) == [(2, both)]
        assert await log.newest_checkpoint(B) is None
        assert await log.put_checkpoint(C, 1, note(2)) == Conflict(0)
        with pytest.raises(DatabaseDamaged, match="root"):
            await log.put_checkpoint(A, 2, note(2, root="other"))
        assert await log.newest_checkpoint(A) == (2, both)


async def test_two_simultaneous_cosignatures_of_a_key_are_one_line(
    database: TemporaryDatabase,
) -> None:
    """A line has a time; a note with two lines of one key, and so the bundle, would be invalid."""
    async with await database.open() as log:
        await log.append(signed_append())
        await asyncio.gather(
            log.put_checkpoint(A, 2, note(2) + "— player/x now\n"),
            log.put_checkpoint(A, 2, note(2) + "— player/x later\n"),
        )
        assert await log.newest_checkpoint(A) == (2, note(2) + "— player/x now\n")


async def test_no_checkpoint_is_stored_for_an_archived_table(database: TemporaryDatabase) -> None:
    """It is put while the archiving transaction is open, and after its commit."""
    listed, may_commit = Event(), Event()

    def archive(connection: Connection) -> None:
        digest = admin.notes_digest([(2, note(2))])
        record = admin.Archived(2, b"r", b"k", "file", 1, b"h", 0, digest)
        admin.archive(
            connection, A, record, admin.JournalEntry(0, b"12345678", "test", "archive", "a")
        )
        listed.set()
        assert may_commit.wait(20)

    async with await database.open() as log, await database.open() as other:
        closing = Append(A, 0, [row(1), replace(row(2), type="TableClosed")], ((2, note(2)),))
        await log.append(closing)
        archiving = asyncio.create_task(other.run_in_transaction(archive))
        await asyncio.to_thread(listed.wait, 20)
        requests = [
            log.put_checkpoint(A, 2, note(2) + "— player/x sig\n"),
            log.put_checkpoint(A, 1, note(1)),
            log.append(append(B, 0)),
        ]
        if isinstance(database, TemporaryPostgres):
            # It is in the same batch, so the checkpoints wait for the archiving transaction's lock.
            assert await requests[2] == Appended(1)
            assert not requests[0].done()
        may_commit.set()
        await archiving
        assert await asyncio.gather(*requests) == [Conflict(0), Conflict(0), Appended(1)]
        assert await log.checkpoints(A) == [(2, note(2))]
        while await other.run_in_transaction(
            lambda connection: admin.delete_archived_rows(connection, A, [])
        ):
            pass
        assert await log.put_checkpoint(A, 2, note(2)) == Conflict(0)
        assert await log.checkpoints(A) == []


async def test_a_checkpoint_of_missing_events_is_a_conflict(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        assert await log.put_checkpoint(A, 2, note(2)) == Conflict(1)
        requests = (
            log.append(append(A, 1)),
            log.put_checkpoint(A, 2, note(2)),
            log.put_checkpoint(A, 3, note(2)),
        )
        results = await asyncio.gather(*requests)
        assert list(results) == [Appended(2), Appended(0), Conflict(2)]
        assert await log.checkpoints(A) == [(2, note(2))]


async def test_a_conflict_adds_no_checkpoint(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        late = append(A, 0)
        late.checkpoints = ((1, "text\n\nline\n"),)
        assert await log.append(late) == Conflict(1)
        assert await log.checkpoints(A) == []


async def test_metadata_is_written_once(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        assert await log.metadata("key") is None
        assert await log.put_metadata("key", b"first") == b"first"
        assert await log.put_metadata("key", b"second") == b"first"
        assert await log.metadata("key") == b"first"


async def _lagging(log: Log) -> set[bytes]:
    found = await log.fetch("SELECT table_id FROM stream WHERE version > projected")
    return {table for (table,) in found}


async def test_idle_work_is_done_in_slices(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await asyncio.gather(*(log.append(append(table, 0)) for table in (A, B, C)))
        assert await _lagging(log) == {A, B, C}
        left = [C, B, A]

        def catch_up(connection: Connection) -> bool:
            connection.exec_driver_sql(
                "UPDATE stream SET projected = version WHERE table_id = ?", (left.pop(),)
            )
            return bool(left)

        await log.run_when_idle(catch_up)
        assert await _lagging(log) == set()
        await log.append(append(B, 1))
        assert await _lagging(log) == {B}


@pytest.mark.parametrize("error", [DatabaseDamaged("unknown event"), KeyError("unknown event")])
async def test_a_failed_slice_is_rolled_back_and_appends_continue(
    database: TemporaryDatabase, error: Exception
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))

        def fail(connection: Connection) -> bool:
            connection.exec_driver_sql("UPDATE stream SET projected = 1")
            raise error

        with pytest.raises(type(error), match="unknown") as raised:
            await log.run_when_idle(fail)
        assert raised.value is error
        assert await _lagging(log) == {A}
        assert await log.append(append(A, 1)) == Appended(2)


@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
async def test_appends_precede_slices_and_slices_do_not_starve(
    database: TemporaryDatabase,
) -> None:
    order: list[str] = []
    slices = iter(range(50))
    async with await database.open(batch=1) as log:
        log.writer.commit_listeners.append(lambda _: order.append("append"))
        loop = asyncio.get_running_loop()

        def work(_: object) -> bool:
            loop.call_soon_threadsafe(order.append, "slice")
            return next(slices) < 49

        waiting = [log.append(append(A, number)) for number in range(200)]
        scheduled = log.run_when_idle(work)  # after them: the writer may be awake already
        await asyncio.gather(*waiting, scheduled)
    assert order.index("slice") >= 60, "a slice went before the appends that waited"
    assert order.count("slice") == 50
    assert order.index("slice") < 199, "under load the slice was never done"


async def test_transactions_run_in_their_order_and_before_idle_work(
    database: TemporaryDatabase,
) -> None:
    async with await database.open() as log:
        begun, queued = Event(), Event()
        order: list[str] = []

        def first(_: Connection) -> None:
            begun.set()
            assert queued.wait(60)

        def work(name: str, _: Connection) -> bool:
            order.append(name)
            return False

        waiting = asyncio.ensure_future(log.run_in_transaction(first))
        await asyncio.to_thread(begun.wait, 60)
        idle = log.run_when_idle(partial(work, "idle"))
        later = [log.writer.enqueue(partial(work, name), durable=True) for name in "abc"]
        queued.set()
        await asyncio.gather(waiting, idle, *later)
        assert order == ["a", "b", "c", "idle"]


async def test_closing_cancels_idle_work(database: TemporaryDatabase) -> None:
    log = await database.open()
    scheduled = log.run_when_idle(lambda _: True)
    await log.append(append(A, 0))
    await log.close()
    assert scheduled.cancelled()
