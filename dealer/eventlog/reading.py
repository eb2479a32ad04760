"""What may be asked of the log: of every table its events, checkpoints and version.

`look` opens one that can do nothing else; a `Log` can write, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.errors import Overloaded, Unavailable
from dealer.eventlog.faults import FAULTS, explain
from dealer.eventlog.file_identity import FileIdentity
from dealer.eventlog.rows import Row
from dealer.eventlog.selects import Selects
from dealer.eventlog.server import Server
from dealer.eventlog.wal import library_version

HOUSE = "SELECT value FROM house WHERE name = ?"

CLOSE_SECONDS = 5.0
_ALL = 2**63 - 1


class Reading:
    """The events of every table, for whoever reads them; ended by `close`.

    `name` is the file, or the server's address without a password. Every method may raise a
    DatabaseError whose text says what to do.
    """

    def __init__(
        self,
        readers: AsyncEngine,
        name: str,
        *,
        server: Server | None,
        identity: FileIdentity | None = None,
    ) -> None:
        self.server = server
        self._identity = identity
        self._readers = readers
        self.name = name
        self._selects = Selects(postgres=server is not None)
        self._under_way: set[asyncio.Task[list[Any]]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the database. Call it once, and await it."""
        self._closed = True
        # A server that does not answer any more is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._under_way:
                    await asyncio.wait(self._under_way)
                await asyncio.shield(self._readers.dispose())

    def check(self) -> None:
        """Raise DatabaseReplaced if the file of this log is gone, or another has its name."""
        if self._identity is not None:
            self._identity.check()

    async def head(self, table: bytes) -> int | None:
        """The version that the table stands at; None if there is no such table."""
        found = await self.fetch(self._selects.head, (table,))
        return found[0][0] if found else None

    async def heads(self, tables: Iterable[bytes]) -> dict[bytes, int]:
        """The versions of those of `tables` that exist."""
        found = await self.heads_and_cosigned(tables)
        return {table: version for table, (version, _) in found.items()}

    async def heads_and_cosigned(self, tables: Iterable[bytes]) -> dict[bytes, tuple[int, int]]:
        """For those of `tables` that exist, the version, and a count that grows when a checkpoint
        is cosigned."""
        found: dict[bytes, tuple[int, int]] = {}
        for sql, parameters in self._selects.heads(list(tables)):
            for table, version, cosigned in await self.fetch(sql, parameters):
                found[table] = (version, cosigned)
        return found

    async def tables_between(self, low: bytes, high: bytes, *, limit: int) -> list[bytes]:
        """Ids of at most `limit` tables from `low` to `high`, both included."""
        found = await self.fetch(self._selects.between, (low, high, limit))
        return [table for (table,) in found]

    async def read(
        self, table: bytes, *, after: int = 0, upto: int | None = None, limit: int = 1000
    ) -> list[Row]:
        """At most `limit` events with versions after+1 … upto, in order."""
        rows = await self.fetch(
            self._selects.read, (table, after, _ALL if upto is None else upto, limit)
        )
        return list(map(Row._make, rows))

    async def stream(
        self, table: bytes, *, after: int = 0, upto: int | None = None, chunk: int = 1000
    ) -> AsyncIterator[list[Row]]:
        """All events with versions after+1 … upto, in lists of at most `chunk`.

        Each list is a read of its own, so a slow consumer does not keep the database from tidying
        its write-ahead log.
        """
        while rows := await self.read(table, after=after, upto=upto, limit=chunk):
            yield rows
            after = rows[-1].version

    async def open_round(self, table: bytes) -> tuple[int, int]:
        """(version of the RoundOpened whose round is open, 0 if none is; version of the table).

        Both as they were at one instant; (0, 0) if there is no such table.
        """
        found = await self.fetch(self._selects.open_round, (table,))
        if not found:
            return 0, 0
        version, opened = found[0]
        return opened or 0, version

    async def find_command(self, table: bytes, command: str) -> Row | None:
        """The first event of the append that carried out this command."""
        found = await self.fetch(self._selects.command, (table, command))
        return Row._make(found[0]) if found else None

    async def checkpoints(
        self, table: bytes, *, after: int = -1, limit: int = 1000
    ) -> list[tuple[int, str]]:
        """(size, note) of the table's checkpoints with size > `after`, by size."""
        found = await self.fetch(self._selects.checkpoints, (table, after, limit))
        return [(size, note) for size, note in found]

    async def newest_checkpoint(
        self, table: bytes, *, upto: int | None = None
    ) -> tuple[int, str] | None:
        """(size, note) of the largest checkpoint, of those with size <= `upto` if given."""
        found = await self.newest_checkpoints(table, upto=upto, limit=1)
        return found[0] if found else None

    async def newest_checkpoints(
        self, table: bytes, *, upto: int | None = None, limit: int
    ) -> list[tuple[int, str]]:
        """(size, note) of at most `limit` checkpoints with size <= `upto`, the largest first."""
        asked = (table, _ALL if upto is None else upto, limit)
        return [(size, note) for size, note in await self.fetch(self._selects.newest, asked)]

    async def house(self, name: str) -> bytes | None:
        """What `put_house` kept under `name`."""
        found = await self.fetch(HOUSE, (name,))
        return found[0][0] if found else None

    async def version(self) -> str:
        """Which database keeps the log: its name, its version, and what the version means."""
        if self.server is None:
            return f"SQLite {library_version()}"
        ((found,),) = await self.fetch("SHOW server_version")
        return f"PostgreSQL {found}"

    async def fetch(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a SELECT with `?` for its parameters, on a reader's connection.

        A server that is away is waited for, as long as `busy_seconds` says, and so is a
        connection; Overloaded if none was free, Unavailable after `close`.
        """
        if self._closed:
            raise Unavailable("The house is closing; come back when it has opened again.")
        if self.server is not None:
            asked = partial(self._fetch, sql, parameters)
            return await self.server.patiently(asked, patience=self.server.patience)
        self.check()
        # Whoever asked may go, but the file is read to the end: a cancelled reader's connection is
        # closed in a task that waits for ever once the reader has been cancelled again.
        reading = asyncio.create_task(self._fetch(sql, parameters))
        self._under_way.add(reading)
        reading.add_done_callback(self._done)
        try:
            found = await asyncio.shield(reading)
            # A connection that was opened for this may have found another file.
            self.check()
            return found
        except FAULTS as error:
            self.check()
            raise explain(error, name=self.name) from error

    def _done(self, reading: asyncio.Task[list[Any]]) -> None:
        self._under_way.discard(reading)
        if not reading.cancelled():
            reading.exception()  # where nobody waits for it any more, no warning is made of it

    async def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._readers.connect() as connection:
                return list((await connection.exec_driver_sql(sql, parameters)).fetchall())
        except PoolTimeout:
            raise Overloaded(
                "The house has too much to look up just now; try again shortly."
            ) from None
