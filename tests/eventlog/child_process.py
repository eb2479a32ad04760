"""Other processes of the tests: they compete for a log, lock it, or die at a given point."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import asyncpg

from dealer.eventlog import Append, Appended, EventRecord, Log, savepoints
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.protocols import Connection
from dealer.eventlog.savepoints import SavedTable
from dealer.eventlog.writer import MAX_ROWS


def _row(version: int, command: str) -> EventRecord:
    return EventRecord(version, "Said", 1, 0, command, command=command, digest=command.encode())


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def compete(url: str, commit: str, table: str, name: str, count: str) -> None:
    """Append `count` events to one table, each again after a conflict."""
    conflicts = 0
    async with await Log.open(url, commit=commit, wal_pages=50) as log:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(count)):
            while True:
                head = await log.head(bytes.fromhex(table)) or 0
                request = Append(bytes.fromhex(table), head, [_row(head + 1, f"{name}{number}")])
                if isinstance(await log.append(request), Appended):
                    break
                conflicts += 1
    print(conflicts)


async def die_after_commit(url: str, commit: str, table: str) -> None:
    log = await Log.open(url, commit=commit, wal_pages=50)
    log.writer.commit_listeners.append(_die)
    await log.append(Append(bytes.fromhex(table), 0, [_row(1, "only once")]))


async def die_before_commit(url: str, commit: str, table: str) -> None:
    log = await Log.open(url, commit=commit, wal_pages=50)

    def die_at(statement: str) -> None:
        if statement == "COMMIT":
            _die()

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.harness.statements import watch

    watch("before", die_at)
    execute = asyncpg.Connection.execute

    async def die_at_commit(
        self: object, statement: str, *arguments: object, **options: object
    ) -> object:
        if statement == "COMMIT":
            _die()
        return await execute(self, statement, *arguments, **options)

    asyncpg.Connection.execute = die_at_commit
    # With this many rows PostgreSQL gets the COMMIT as a message of its own, and with one more the
    # event loop would leave them to the writer thread.
    rows = [_row(version, f"never {version}") for version in range(1, MAX_ROWS + 1)]
    await log.append(Append(bytes.fromhex(table), 0, rows))


async def die_before_savepoint(url: str, commit: str, table: str) -> None:
    await _put_savepoint(url, commit, bytes.fromhex(table), then=_die)


async def die_after_savepoint(url: str, commit: str, table: str) -> None:
    await _put_savepoint(url, commit, bytes.fromhex(table))
    _die()


async def _put_savepoint(
    url: str, commit: str, table: bytes, then: Callable[[], object] = lambda: None
) -> None:
    """Append an event and put a savepoint, with `then` before its COMMIT."""
    saved = SavedTable(1, b"l" * 32, [b"e" * 32], b"c1", b"wrapped", b"state")

    def work(connection: Connection) -> bool:
        keys = HouseKeys(b"k" * 32)
        more = savepoints.put(connection, keys=keys, table=table, saved=saved, nonce=b"n" * 12)
        then()
        return more

    log = await Log.open(url, commit=commit)
    await log.append(Append(table, 0, [_row(1, "x")]))
    await log.run_when_idle(work)


async def open_once(url: str) -> None:
    try:
        async with await Log.open(url, wal_pages=50) as log:
            await log.append(Append(bytes(16), 0, [_row(1, "x")]))
        print("opened")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


async def open_without_rights(url: str) -> None:
    # Root may write any file.
    if os.geteuid() == 0:
        os.setuid(65534)
    await open_once(url)


async def hold(file: str) -> None:
    """Keep a write transaction open until there is a line on standard input."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    connection.close()


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
