"""What every store promises, whatever database it is: each test runs against each of them."""

from __future__ import annotations

import asyncio
import gc
import signal
from threading import Event

import pytest
from sqlalchemy import Connection

from dealer.errors import DatabaseDamaged, DatabaseError, Overloaded, Unavailable
from dealer.eventlog import Append, Appended, Chain, Conflict, Known, Log, Row, office
from tests.eventlog.asked import A, B, C, append, cancelled_at, other_process, row
from tests.eventlog.conftest import House, PostgresHouse


async def test_what_was_appended_is_read_again_to_the_byte(place: House) -> None:
    rows = [
        Row(1, "Dealt", 2, 2**41, '{"é":"\\u0000"}', b"c" * 32, b"\x00\xff", "id", b"digest"),
        Row(2, "Drawn", 1, 2**41, "{}"),
    ]
    async with await place.open() as log:
        assert await log.append(Append(A, 0, rows)) == Appended(2)
    async with await place.open() as log:
        assert await log.read(A) == rows
        assert all(type(each) is Row for each in await log.read(A))


async def test_reading_begins_and_ends_where_it_is_told(place: House) -> None:
    async with await place.open() as log:
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


async def test_versions_go_on_from_the_head(place: House) -> None:
    async with await place.open() as log:
        assert await log.append(append(A, 0, "1", "2")) == Appended(2)
        assert await log.append(append(A, 2, "3")) == Appended(3)
        assert await log.append(append(A, 2, "no")) == Conflict(3)
        assert await log.append(append(A, 4, "no")) == Conflict(3)
        assert await log.append(append(C, 1, "no")) == Conflict(0)
        assert [each.public for each in await log.read(A)] == ["1", "2", "3"]
        assert await log.head(C) is None


async def test_a_conflict_fails_its_own_request_and_no_neighbour(place: House) -> None:
    batches: list[int] = []
    async with await place.open() as log:
        await log.append(append(A, 0))
        log.committed = lambda pairs: batches.append(len(pairs))
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
        assert both == [Appended(2), Conflict(2)]
        assert [each.version for each in await log.read(B)] == [1, 2]
        assert [await log.head(table) for table in (A, B, C)] == [2, 2, 2]


async def test_a_chain_of_appends_to_one_table_goes_in_together_and_in_order(
    place: House,
) -> None:
    seen: list[tuple[Append, object]] = []
    async with await place.open(batch=64, committed=seen.extend) as log:
        requests = [append(A, number, str(number)) for number in range(300)]
        woken: list[int] = []
        for number, request in enumerate(requests):
            log.append(request).add_done_callback(lambda _, n=number: woken.append(n))
        last = await log.append(append(A, 300))
        assert last == Appended(301)
        assert [request for request, _ in seen[:-1]] == requests
        assert [result for _, result in seen] == [Appended(n + 1) for n in range(301)]
        assert woken == list(range(300))
        assert [each.public for each in await log.read(A, limit=300)] == list(map(str, range(300)))


async def test_the_callback_comes_after_the_commit_and_before_anyone_wakes(
    place: House,
) -> None:
    order: list[str] = []

    def committed(pairs: object) -> None:
        ((count,),) = place.ask("SELECT count(*) FROM event")
        order.append(f"{count} on disk")

    async with await place.open(committed=committed) as log:
        future = log.append(append(A, 0))
        future.add_done_callback(lambda _: order.append("woken"))
        await future
        log.submit(append(A, 1))
        await log.append(append(A, 2))
    assert order == ["1 on disk", "woken", "3 on disk"]


async def test_a_callback_that_fails_does_not_keep_the_answer_back(place: House) -> None:
    told: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, c: told.append(c["exception"]))

    def committed(pairs: object) -> None:
        raise KeyError("nobody there")

    async with await place.open(committed=committed) as log:
        assert await log.append(append(A, 0)) == Appended(1)
    assert [type(error) for error in told] == [KeyError]


async def test_after_a_lost_link_nothing_of_the_chain_goes_in(place: House) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0))
        chain = Chain()
        links = [append(A, 0, "lost"), append(A, 2, "built on what was lost")]
        for link in links:
            link.chain = chain
        results = await asyncio.gather(
            log.append(links[0]), log.append(append(A, 1, "another's")), log.append(links[1])
        )
        assert results == [Conflict(1), Appended(2), Conflict(2)]
        later = append(A, 2, "also built on it")
        later.chain = chain
        assert await log.append(later) == Conflict(2)
        assert await log.append(append(A, 2)) == Appended(3)


async def test_a_command_sent_again_gives_its_first_result(place: House) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, "0"))
        assert await log.append(append(A, 1, "1", "2", command="x")) == Appended(3)
        await log.append(append(A, 3, "3"))
        first = Known(2, b"digest of x")
        # The version is not looked at: old, right, or one that the table never had.
        for expected in (1, 4, 9):
            assert await log.append(append(A, expected, "again", command="x")) == first
        assert await log.head(A) == 4
        found = await log.find_command(A, "x")
        assert found is not None
        assert (found.version, found.digest) == first
        assert await log.find_command(A, "y") is None


async def test_the_digest_of_the_first_tells_another_command_under_its_id(
    place: House,
) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, command="x"))
        other = Append(A, 1, [row(2, command="x")._replace(digest=b"another body")])
        assert await log.append(other) == Known(1, b"digest of x")
        assert await log.head(A) == 1


async def test_a_command_twice_in_one_batch_is_done_once(place: House) -> None:
    async with await place.open() as log:
        results = await asyncio.gather(
            log.append(append(A, 0, command="x")),
            log.append(append(A, 1, command="x")),
            log.append(append(B, 0, command="x")),
        )
        assert results == [Appended(1), Known(1, b"digest of x"), Appended(1)]


async def test_a_bad_row_leaves_nothing_of_its_append_and_all_of_its_neighbours(
    place: House,
) -> None:
    lone_surrogate = "\ud800"
    async with await place.open() as log:
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
        # What B would have been called in the database is now another table's number.
        assert await log.append(append(B, 1, "2")) == Conflict(0)
        assert await log.append(append(A, 1, "2")) == Appended(2)
        assert await log.append(append(B, 0, "1")) == Appended(1)


async def test_rows_that_do_not_follow_are_not_taken(place: House) -> None:
    async with await place.open() as log:
        for wrong in (
            Append(A, 0, [row(2)]),
            Append(A, 0, [row(1), row(3)]),
            Append(A, 0, []),
            Append(b"short", 0, [row(1)]),
        ):
            with pytest.raises(ValueError, match=r"version|rows|16"):
                log.append(wrong)


async def test_cancelled_at_any_await_nothing_stays_open_and_nothing_is_doubled(
    place: House,
) -> None:
    async with await place.open(readers=1) as log:

        async def play(number: int) -> None:
            expected = await log.head(A) or 0
            await log.append(append(A, expected, command=f"c{number}"))
            await log.read(A)
            await log.put_house("opened", b"yes")

        steps, cancelled = 0, True
        while cancelled:
            task = asyncio.create_task(cancelled_at(play(steps), steps))
            (answer,) = await asyncio.gather(task, return_exceptions=True)
            cancelled = isinstance(answer, asyncio.CancelledError)
            # Whether it was done or not, the same command now settles it, and once.
            expected = await log.head(A) or 0
            result = await log.append(append(A, expected, command=f"c{steps}"))
            while isinstance(result, Conflict):
                result = await log.append(append(A, result.version, command=f"c{steps}"))
            steps += 1
        commands = [each.command for each in await log.read(A)]
        assert sorted(commands) == sorted(f"c{number}" for number in range(steps))
        assert steps > 4  # it waits four times at least
        assert place.nothing_is_open()
    gc.collect()


async def test_two_processes_append_to_one_table_at_once(place: House) -> None:
    each = 60
    others = [other_process("compete", place.url, A.hex(), name, str(each)) for name in ("x", "y")]
    for process in others:
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    for process in others:
        process.stdin.write("go\n")
        process.stdin.flush()
    outs = [(await asyncio.to_thread(process.communicate))[0] for process in others]
    assert [process.returncode for process in others] == [0, 0]
    assert sum(int(out) for out in outs) > 0, "they never met, so nothing was tried"
    async with await place.open() as log:
        rows = await log.read(A)
    assert [each.version for each in rows] == list(range(1, 2 * each + 1))
    for name in ("x", "y"):
        said = [r.public for r in rows if r.public[0] == name]
        assert said == [f"{name}{number}" for number in range(each)]


async def test_killed_between_commit_and_reply_the_retry_is_known(place: House) -> None:
    process = other_process("die_after_commit", place.url, A.hex())
    await asyncio.to_thread(process.communicate)
    assert process.returncode == -signal.SIGKILL
    async with await place.open() as log:
        retry = Append(A, 0, [row(1, command="only once")])
        assert await log.append(retry) == Known(1, b"only once")
        assert await log.head(A) == 1
        assert await log.append(append(A, 1)) == Appended(2)


async def test_killed_before_the_commit_nothing_remains(place: House) -> None:
    process = other_process("die_before_commit", place.url, A.hex())
    await asyncio.to_thread(process.communicate)
    assert process.returncode == -signal.SIGKILL
    async with await place.open() as log:
        assert await log.head(A) is None
        assert await log.append(append(A, 0, command="never")) == Appended(1)


async def test_close_writes_what_still_waits(place: House) -> None:
    log = await place.open(batch=10)
    waiting = [log.append(append(A, number)) for number in range(95)]
    await log.close()
    assert [future.result() for future in waiting] == [Appended(n + 1) for n in range(95)]
    with pytest.raises(Unavailable, match="closing"):
        log.append(append(A, 95))
    async with await place.open() as log:
        assert await log.head(A) == 95


async def test_a_full_desk_takes_no_more(place: House) -> None:
    async with await place.open(queue=3) as log:
        waiting = [log.append(append(A, number)) for number in range(3)]
        assert log.waiting == 3
        with pytest.raises(Overloaded, match="again"):
            log.append(append(A, 3))
        await asyncio.gather(*waiting)
        assert await log.append(append(A, 3)) == Appended(4)


async def test_who_finds_no_reader_free_is_told_to_come_again(place: House) -> None:
    async with await place.open(readers=1, busy_seconds=0.05) as log:
        async with log._readers.connect():
            with pytest.raises(Overloaded, match="again"):
                await log.head(bytes(16))
        assert await log.head(bytes(16)) is None


async def test_a_writer_that_dies_answers_everyone(
    place: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await place.open(batch=2) as log:
        await log.append(append(A, 0))

        def fail(*_: object) -> None:
            raise MemoryError("no room")

        monkeypatch.setattr(log._writer._store, "append", fail)
        told: list[object] = []
        log.committed = lambda pairs: told.extend(result for _, result in pairs)
        waiting = [log.append(append(A, number)) for number in range(1, 6)]
        scheduled = log.schedule(lambda _: True)
        answers = await asyncio.gather(*waiting, scheduled, return_exceptions=True)
        assert [type(answer) for answer in answers] == [DatabaseError] * 6
        assert "MemoryError" in str(answers[0])
        assert "start the service again" in str(answers[0])
        assert len(told) == 5
        with pytest.raises(DatabaseError, match="MemoryError"):
            log.submit(append(A, 1))


async def test_signatures_are_added_to_the_note_that_is_there(place: House) -> None:
    first = "house/t/a\n2\nroot\n\n— house sig\n"
    async with await place.open() as log:
        request = append(A, 0, "1", "2")
        request.checkpoints = ((2, first),)
        await log.append(request)
        await asyncio.gather(
            log.put_note(A, 2, first + "— player/x sig\n"),
            log.put_note(A, 2, first + "— player/y sig\n"),
            log.put_note(A, 1, "house/t/a\n1\nroot\n\n— house sig\n"),
        )
        both = first + "— player/x sig\n— player/y sig\n"
        assert [size for size, _ in await log.checkpoints(A)] == [1, 2]
        assert await log.newest_checkpoint(A) == (2, both)
        assert (await log.newest_checkpoint(A, upto=1) or (0,))[0] == 1
        assert await log.checkpoints(A, after=1) == [(2, both)]
        assert await log.newest_checkpoint(B) is None
        assert await log.put_note(C, 1, first) == Conflict(0)
        with pytest.raises(DatabaseDamaged, match="root"):
            await log.put_note(A, 2, "house/t/a\n2\nother\n\n— house sig\n")
        assert await log.newest_checkpoint(A) == (2, both)


async def test_who_cosigns_twice_at_once_has_one_line(place: House) -> None:
    """The line has the time in it; two by one key would spoil the note and so the bundle."""
    first = "house/t/a\n2\nroot\n\n— house sig\n"
    async with await place.open() as log:
        request = append(A, 0, "1", "2")
        request.checkpoints = ((2, first),)
        await log.append(request)
        await asyncio.gather(
            log.put_note(A, 2, first + "— player/x now\n"),
            log.put_note(A, 2, first + "— player/x later\n"),
        )
        assert await log.newest_checkpoint(A) == (2, first + "— player/x now\n")


async def test_no_note_outlives_its_table(place: House) -> None:
    """It comes while the table is taken into the list of archived ones, and after that."""
    first = "house/t/a\n2\nroot\n\n— house sig\n"
    listed, may_commit = Event(), Event()

    def put_away(connection: Connection) -> None:
        kept = office.Archived(2, b"r", b"k", "file", 1, b"h", 0, office.notes_digest([(2, first)]))
        office.archive(connection, A, kept, office.Deed(0, b"12345678", "test", "archive", "a"))
        listed.set()
        assert may_commit.wait(20)

    async with await place.open() as log, await place.open() as other:
        closing = Append(A, 0, [row(1), row(2)._replace(type="TableClosed")], ((2, first),))
        await log.append(closing)
        archiving = asyncio.create_task(other.carry_out(put_away))
        await asyncio.to_thread(listed.wait, 20)
        wishes = [
            log.put_note(A, 2, first + "— player/x sig\n"),
            log.put_note(A, 1, "house/t/a\n1\nroot\n\n— house sig\n"),
            log.append(append(B, 0)),
        ]
        if isinstance(place, PostgresHouse):
            # It was in the same batch, so the notes have met the archiving transaction's lock.
            assert await wishes[2] == Appended(1)
            assert not wishes[0].done()
        may_commit.set()
        await archiving
        assert await asyncio.gather(*wishes) == [Conflict(0), Conflict(0), Appended(1)]
        assert await log.checkpoints(A) == [(2, first)]
        while await other.carry_out(lambda connection: office.let_go(connection, A, [])):
            pass
        assert await log.put_note(A, 2, first) == Conflict(0)
        assert await log.checkpoints(A) == []


async def test_a_note_covers_events_that_are_there(place: House) -> None:
    note = "house/t/a\n2\nroot\n\n— house sig\n"
    async with await place.open() as log:
        await log.append(append(A, 0))
        assert await log.put_note(A, 2, note) == Conflict(1)
        wishes = (log.append(append(A, 1)), log.put_note(A, 2, note), log.put_note(A, 3, note))
        assert await asyncio.gather(*wishes) == [Appended(2), Appended(0), Conflict(2)]
        assert await log.checkpoints(A) == [(2, note)]


async def test_a_conflict_adds_no_checkpoint(place: House) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0))
        late = append(A, 0)
        late.checkpoints = ((1, "text\n\nline\n"),)
        assert await log.append(late) == Conflict(1)
        assert await log.checkpoints(A) == []


async def test_what_is_known_of_the_house_is_kept_once(place: House) -> None:
    async with await place.open() as log:
        assert await log.house("key") is None
        assert await log.put_house("key", b"first") == b"first"
        assert await log.put_house("key", b"second") == b"first"
        assert await log.house("key") == b"first"


async def _behind(log: Log) -> set[bytes]:
    found = await log.fetch("SELECT table_id FROM stream WHERE version > projected")
    return {table for (table,) in found}


async def test_work_that_can_wait_is_done_in_slices(place: House) -> None:
    async with await place.open() as log:
        await asyncio.gather(*(log.append(append(table, 0)) for table in (A, B, C)))
        assert await _behind(log) == {A, B, C}
        left = [C, B, A]

        def catch_up(connection: object) -> bool:
            connection.exec_driver_sql(  # type: ignore[attr-defined]
                "UPDATE stream SET projected = version WHERE table_id = ?", (left.pop(),)
            )
            return bool(left)

        assert await log.schedule(catch_up) is None
        assert await _behind(log) == set()
        await log.append(append(B, 1))
        assert await _behind(log) == {B}


@pytest.mark.parametrize("error", [DatabaseDamaged("unknown event"), KeyError("unknown event")])
async def test_a_slice_that_fails_is_undone_and_the_log_goes_on(
    place: House, error: Exception
) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0))

        def fail(connection: object) -> bool:
            connection.exec_driver_sql("UPDATE stream SET projected = 1")  # type: ignore[attr-defined]
            raise error

        with pytest.raises(type(error), match="unknown") as told:
            await log.schedule(fail)
        assert told.value is error
        assert await _behind(log) == {A}
        assert await log.append(append(A, 1)) == Appended(2)


async def test_appends_go_before_slices_but_slices_do_not_starve(place: House) -> None:
    order: list[str] = []
    async with await place.open(batch=1) as log:
        log.committed = lambda _: order.append("append")
        loop = asyncio.get_running_loop()

        def work(_: object) -> bool:
            loop.call_soon_threadsafe(order.append, "slice")
            return len(order) < 150

        scheduled = log.schedule(work)
        waiting = [log.append(append(A, number)) for number in range(200)]
        await asyncio.gather(*waiting, scheduled)
    assert order.index("slice") >= 60, "a slice went before the appends that waited"
    assert order.count("slice") <= 200
    assert order.index("slice") < 199, "under load the slice was never done"


async def test_closing_cancels_the_work_that_can_wait(place: House) -> None:
    log = await place.open()
    scheduled = log.schedule(lambda _: True)
    await log.append(append(A, 0))
    await log.close()
    assert scheduled.cancelled()
