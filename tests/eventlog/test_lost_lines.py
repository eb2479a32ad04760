"""The line to the database is cut, or its server dies: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from dealer.errors import DatabaseAway, DatabaseError, OutcomeUnknown
from dealer.eventlog import Appended, Conflict, Known, Log
from tests.eventlog.asked import A, B, append
from tests.eventlog.conftest import PostgresHouse
from tests.postgres import OwnServer, own_server
from tests.proxy import Proxy


@pytest.fixture
async def line(server_place: PostgresHouse) -> AsyncIterator[Proxy]:
    if not isinstance(server_place.server, OwnServer):
        pytest.skip("the proxy stands before a server's socket, and another server was named")
    async with Proxy(server_place.server.folder / ".s.PGSQL.5432") as found:
        yield found


def through(line: Proxy, place: PostgresHouse) -> str:
    return f"postgresql://dealer@127.0.0.1:{line.port}/{place.database}?sslmode=disable"


@pytest.mark.parametrize("command", ["x", None])
@pytest.mark.parametrize("lost", ["request", "reply"])
@pytest.mark.parametrize("rows", [1, 300])
async def test_a_line_cut_at_the_commit_leaves_one_append_and_one_answer(
    server_place: PostgresHouse, line: Proxy, rows: int, lost: str, command: str | None
) -> None:
    """300 rows go in by COPY, whose COMMIT is a message of its own; one goes in with its own."""
    async with await Log.open(through(line, server_place)) as log:
        await log.append(append(A, 0))
        mark = b"COMMIT" if rows == 300 else A
        line.lost, line.cut_at = lost, lambda data: mark in data
        wish = append(A, 1, *["w"] * rows, command=command)
        results = await asyncio.gather(log.append(wish), log.append(append(B, 0)))
        assert line.cuts == 1
        assert results == [Appended(1 + rows), Appended(1)]
        assert [each.version for each in await log.read(A)] == list(range(1, rows + 2))
        if command:
            assert await log.append(wish) == Known(2, b"digest of x")


async def test_who_was_overtaken_while_the_line_was_cut_is_told_of_a_conflict(
    server_place: PostgresHouse, line: Proxy
) -> None:
    async with (
        await server_place.open() as other,
        await Log.open(through(line, server_place)) as log,
    ):
        await log.append(append(A, 0))
        line.closed, line.cut_at = True, lambda data: A in data
        waiting = log.append(append(A, 1, "late", command="x"))
        async with asyncio.timeout(20):
            while not line.cuts:
                await other.head(A)
        await other.append(append(A, 1, "quicker"))
        line.closed = False
        assert await waiting == Conflict(2)
        assert [each.public for each in await log.read(A)] == ["{}", "quicker"]


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_where_the_line_stays_cut_the_outcome_is_unknown_until_the_command_settles_it(
    server_place: PostgresHouse, line: Proxy, lost: str
) -> None:
    async with await Log.open(through(line, server_place), busy_seconds=0.3) as log:
        await log.append(append(A, 0))
        line.lost, line.closed, line.cut_at = lost, True, lambda data: A in data
        with pytest.raises(OutcomeUnknown, match="same command id"):
            await log.append(append(A, 1, command="x"))
        with pytest.raises(DatabaseAway, match="cannot be reached"):
            await log.append(append(A, 1, command="x"))
        with pytest.raises(DatabaseAway):
            await log.put_house("ready", b"")
        line.closed = False
        settled = await log.append(append(A, 1, command="x"))
        assert settled == (Appended(2) if lost == "request" else Known(2, b"digest of x"))
        assert await log.head(A) == 2


async def test_readers_find_another_line(server_place: PostgresHouse, line: Proxy) -> None:
    async with await Log.open(through(line, server_place)) as log:
        await log.append(append(A, 0))
        for _ in range(3):
            await asyncio.gather(*(log.head(A) for _ in range(4)))
            await line.cut_all()
            assert await asyncio.gather(*(log.head(A) for _ in range(8))) == [1] * 8


@pytest.fixture
def mortal() -> Iterator[OwnServer]:
    with own_server(safe=True) as server:
        yield server


async def test_a_server_that_dies_under_load_loses_nothing_and_doubles_nothing(
    mortal: OwnServer,
) -> None:
    url = mortal.url(mortal.database())
    tables = [bytes([number]) * 16 for number in range(1, 9)]
    acknowledged: dict[bytes, list[str]] = {table: [] for table in tables}
    over = False
    more = asyncio.Event()
    async with await Log.open(url, busy_seconds=0.5) as log:

        async def play(table: bytes) -> None:
            version = number = 0
            while not over:
                command = f"{number}"
                try:
                    result = await log.append(append(table, version, command, command=command))
                except DatabaseError:
                    await asyncio.sleep(0.01)
                    continue
                if isinstance(result, Conflict):
                    version = result.version
                    continue
                assert result.version == version + 1 or isinstance(result, Known)
                version = max(version, result.version)
                acknowledged[table].append(command)
                more.set()
                number += 1

        playing = [asyncio.create_task(play(table)) for table in tables]

        async def goes_on() -> None:
            async with asyncio.timeout(30):
                for _ in range(100):
                    more.clear()
                    await more.wait()

        for _ in range(3):
            await goes_on()
            await asyncio.to_thread(mortal.stop)
            with pytest.raises(DatabaseError):
                await log.put_house("ready", b"")
            await asyncio.to_thread(mortal.start)
        await goes_on()
        over = True
        await asyncio.gather(*playing)
        for table in tables:
            rows = [row async for part in log.stream(table) for row in part]
            assert [row.version for row in rows] == list(range(1, len(rows) + 1))
            assert [row.command for row in rows] == acknowledged[table]
