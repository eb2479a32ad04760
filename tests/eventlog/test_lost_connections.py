"""The connection to PostgreSQL is cut or its server dies: no append is lost or written twice."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from dealer.errors import DatabaseError, DatabaseUnavailable, OutcomeUnknown
from dealer.eventlog import Appended, Conflict, Duplicate, Log
from dealer.eventlog.db_errors import translate
from tests.eventlog.conftest import TemporaryPostgres
from tests.eventlog.requests import A, B, append
from tests.harness.database_link import DatabaseLink
from tests.harness.postgres import OwnServer

pytestmark = pytest.mark.slow

_FATAL = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"


@pytest.mark.parametrize("command", ["x", None])
@pytest.mark.parametrize("lost", ["request", "reply"])
@pytest.mark.parametrize("rows", [1, 300])
async def test_a_connection_cut_at_the_commit_leaves_one_append_and_one_answer(
    link: DatabaseLink, linked_url: str, rows: int, lost: str, command: str | None
) -> None:
    """300 rows are written by COPY, with COMMIT as a message; one is written with its COMMIT."""
    async with await Log.open(linked_url) as log:
        await log.append(append(A, 0))
        last_bytes = b"COMMIT" if rows == 300 else A
        link.lost, link.cut_at = lost, lambda data: last_bytes in data
        request = append(A, 1, *["w"] * rows, command=command)
        results = await asyncio.gather(log.append(request), log.append(append(B, 0)))
        assert link.cuts == 1
        assert list(results) == [Appended(1 + rows), Appended(1)]
        assert [each.version for each in await log.read(A)] == list(range(1, rows + 2))
        if command:
            assert await log.append(request) == Duplicate(2, b"digest of x")


async def test_an_append_overtaken_while_its_connection_was_cut_is_a_conflict(
    postgres_database: TemporaryPostgres, link: DatabaseLink, linked_url: str
) -> None:
    async with (
        await postgres_database.open() as other,
        await Log.open(linked_url) as log,
    ):
        await log.append(append(A, 0))
        link.closed, link.cut_at = True, lambda data: A in data
        waiting = log.append(append(A, 1, "late", command="x"))
        async with asyncio.timeout(20):
            while not link.cuts:
                await other.head(A)
        await other.append(append(A, 1, "quicker"))
        link.closed = False
        assert await waiting == Conflict(2)
        assert [each.public for each in await log.read(A)] == ["{}", "quicker"]


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_without_a_connection_the_outcome_is_unknown_until_the_command_is_repeated(
    link: DatabaseLink, linked_url: str, lost: str
) -> None:
    async with await Log.open(linked_url, busy_seconds=0.3) as log:
        await log.append(append(A, 0))
        link.lost, link.closed, link.cut_at = lost, True, lambda data: A in data
        with pytest.raises(OutcomeUnknown, match="same command id"):
            await log.append(append(A, 1, command="x"))
        with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
            await log.append(append(A, 1, command="x"))
        with pytest.raises(DatabaseUnavailable):
            await log.put_metadata("ready", b"")
        link.closed = False
        repeated = await log.append(append(A, 1, command="x"))
        assert repeated == (Appended(2) if lost == "request" else Duplicate(2, b"digest of x"))
        assert await log.head(A) == 2


async def test_a_server_that_ends_while_its_connection_is_idle_is_unreachable(
    postgres_database: TemporaryPostgres,
) -> None:
    """A statement that follows its last words, before the connection ends, was never sent."""
    connection = await asyncpg.connect(postgres_database.url)
    connection._protocol.data_received(b"E" + (len(_FATAL) + 4).to_bytes(4) + _FATAL)
    with pytest.raises(asyncpg.InternalClientError) as raised:
        await connection.fetch("SELECT 1")
    connection.terminate()
    assert type(translate(raised.value, name=postgres_database.url)) is DatabaseUnavailable


async def test_readers_connect_again(link: DatabaseLink, linked_url: str) -> None:
    async with await Log.open(linked_url) as log:
        await log.append(append(A, 0))
        for _ in range(3):
            await asyncio.gather(*(log.head(A) for _ in range(4)))
            await link.cut_all()
            assert await asyncio.gather(*(log.head(A) for _ in range(8))) == [1] * 8


async def test_a_server_killed_under_load_neither_loses_nor_doubles_an_append(
    own_postgres: OwnServer,
) -> None:
    url = own_postgres.url(own_postgres.database())
    tables = [bytes([number]) * 16 for number in range(1, 9)]
    acknowledged: dict[bytes, list[str]] = {table: [] for table in tables}
    stopped = False
    progress = asyncio.Event()
    async with await Log.open(url, busy_seconds=0.5) as log:

        async def play(table: bytes) -> None:
            version = number = 0
            while not stopped:
                command = f"{number}"
                try:
                    result = await log.append(append(table, version, command, command=command))
                except DatabaseError:
                    await asyncio.sleep(0.01)
                    continue
                if isinstance(result, Conflict):
                    version = result.version
                    continue
                assert isinstance(result, Appended | Duplicate)
                assert result.version == version + 1 or isinstance(result, Duplicate)
                version = max(version, result.version)
                acknowledged[table].append(command)
                progress.set()
                number += 1

        playing = [asyncio.create_task(play(table)) for table in tables]

        async def until_more_appends() -> None:
            async with asyncio.timeout(30):
                for _ in range(100):
                    progress.clear()
                    await progress.wait()

        for _ in range(3):
            await until_more_appends()
            await asyncio.to_thread(own_postgres.stop)
            with pytest.raises(DatabaseError):
                await log.put_metadata("ready", b"")
            await asyncio.to_thread(own_postgres.start)
        await until_more_appends()
        stopped = True
        await asyncio.gather(*playing)
        for table in tables:
            rows = [row async for part in log.stream(table) for row in part]
            assert [row.version for row in rows] == list(range(1, len(rows) + 1))
            assert [row.command for row in rows] == acknowledged[table]
