"""Read access to the log: events, checkpoints and versions of every table.

`dealer.eventlog.backends.open_readonly` opens a log that can only be read; a `Log` can write too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from dealer.errors import DatabaseDamaged, DatabaseError, Unavailable, WorkerUnavailable
from dealer.eventlog import stored_form
from dealer.eventlog.protocols import Dialect, Reader
from dealer.eventlog.rows import COLUMNS, EventRecord
from dealer.eventlog.schema import LASTING, TABLE_ID, select_in
from dealer.game.events import LASTING_TYPES

SELECT_METADATA = "SELECT value FROM house WHERE name = ?"
_OWNS_EVENT = (
    "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = CAST('event' AS regclass)"
)

_NO_LIMIT = 2**63 - 1


class Queries:
    """SELECTs with `?` for parameters, of which the first are table ids of 16 bytes."""

    def __init__(self, dialect: Dialect) -> None:
        postgres = dialect == "postgresql"
        stream = "?" if postgres else "(SELECT id FROM stream WHERE table_id = ?)"
        table = TABLE_ID[dialect]
        notes = f"SELECT size, note FROM checkpoint WHERE stream = {stream}"
        events = f"SELECT {COLUMNS} FROM event WHERE stream = {stream}"
        self._events = events
        self.rounds = (
            f"SELECT version FROM event WHERE stream = {stream} AND version <= ?"
            " AND type = 'RoundOpened' ORDER BY version"
        )
        self.read = f"{events} AND version > ? AND version <= ? ORDER BY version LIMIT ?"
        self.command = f"{events} AND command = ?"
        self.checkpoints = f"{notes} AND size > ? ORDER BY size LIMIT ?"
        self.signed = f"SELECT size FROM checkpoint WHERE stream = {stream} AND size > ?"
        self.newest = f"{notes} AND size <= ? ORDER BY size DESC LIMIT ?"
        self.between = (
            f"SELECT {table} FROM stream WHERE {table} BETWEEN ? AND ? ORDER BY {table} LIMIT ?"
        )
        here = "?" if postgres else "s.id"  # a log in shards reads one of them only
        of_newest = f"FROM checkpoint c WHERE c.stream = {here} ORDER BY c.size DESC LIMIT 1"
        self.end = (
            "SELECT s.version,"
            f" coalesce((SELECT max(e.version) FROM event e WHERE e.stream = {here}), 0),"
            " coalesce((SELECT CASE WHEN e.type = 'RoundOpened' THEN e.version ELSE 0 END"
            f" FROM event e WHERE e.stream = {here} AND e.type IN ('RoundOpened', 'RoundClosed')"
            " ORDER BY e.version DESC LIMIT 1), 0),"
            f" (SELECT c.size {of_newest}), (SELECT c.note {of_newest})"
            f" FROM stream s WHERE s.{table} = ?"
        )
        self.end_times = self.end.count("?")  # that its parameter is given
        self._dialect = dialect

    def of_types(self, types: Sequence[str]) -> str:
        """The SELECT of events of these types: table, after, upto, the types, limit."""
        marks = ", ".join("?" * len(types))
        where = f"version > ? AND version <= ? AND type IN ({marks})"
        if set(types) <= set(LASTING_TYPES):
            where += f" AND {LASTING}"
        return f"{self._events} AND {where} ORDER BY version LIMIT ?"

    def stored_command(self, command: str) -> str | bytes:
        """A command's id as it is stored; the last parameter of `command`."""
        if self._dialect == "postgresql":
            return stored_form.stored_text(command)
        return stored_form.stored_command(command)

    def heads(self, tables: list[bytes]) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Statements, each with its parameters, whose rows are (table, version, cosigned)."""
        table = TABLE_ID[self._dialect]
        select = f"SELECT {table}, version, cosigned FROM stream"
        return select_in(self._dialect, select, table, tables)


class LogEnd(NamedTuple):
    """The end of a table's events: its `version`, its `newest` row, which has the same version
    unless the log is damaged or the table archived, and the version that `opened` the open round,
    0 if none is open. `signed` and `note` are the size and text of its largest checkpoint."""

    version: int
    newest: int
    opened: int
    signed: int | None = None
    note: str | None = None


class ReadOnlyLog:
    """The events of every table, read on the event loop; call `close` once, and await it.

    `name` is the database's file, or the server's address without a password; `dialect` is
    `postgresql` if several nodes can share the log over a network, else `sqlite`; `shared` says
    whether several nodes serve the same tables from this log. `reader` has the connections.

    Every method may raise a DatabaseError whose text says what to do.
    """

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name
        self.dialect = reader.dialect
        self.shared = reader.shared
        self.reader = reader
        self._queries = Queries(reader.dialect)
        self._closed = False
        self._asked: set[bytes] = set()  # by `head`, for the next query
        self._heads: asyncio.Task[dict[bytes, int]] | None = None  # the newest query
        self._next_heads: asyncio.Task[dict[bytes, int]] | None = None  # one that has not begun

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for reads under way, for a limited time, and close the connections."""
        self._closed = True
        await self.reader.close()

    @property
    def quick(self) -> bool:
        """Whether a row is read in less time than a change of threads takes."""
        return False

    def check(self) -> None:
        """Raise DatabaseReplaced if the file of this log was deleted or replaced."""
        self.reader.check()

    async def head(self, table: bytes) -> int | None:
        """The table's current version; None if there is no such table.

        It is read at once if that is `quick`. Else calls that are made while a query runs share the
        next one: when many players come back at once, it is one query for all of them. It begins
        after each of these calls.
        """
        if self.quick and not self._closed:
            ((sql, parameters),) = self._queries.heads([table])
            rows = self.reader.fetch_now(sql, parameters)
            if rows is not None:
                return rows[0].version if rows else None
        self._asked.add(table)
        query = self._next_heads
        if query is None:
            query = asyncio.create_task(self._read_heads(self._heads))
            self._heads = self._next_heads = query
        # The others wait for it, too, if this caller is cancelled.
        try:
            heads = await asyncio.shield(query)
        except WorkerUnavailable:
            heads = await self.heads([table])  # the worker may be that of another caller's table
        return heads.get(table)

    async def _read_heads(self, before: asyncio.Task[dict[bytes, int]] | None) -> dict[bytes, int]:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        asked, self._asked, self._next_heads = self._asked, set(), None
        return await self.heads(asked)

    async def heads(self, tables: Iterable[bytes]) -> dict[bytes, int]:
        """The versions of the `tables` that exist."""
        found = await self.heads_and_cosigned(tables)
        return {table: version for table, (version, _) in found.items()}

    async def heads_and_cosigned(self, tables: Iterable[bytes]) -> dict[bytes, tuple[int, int]]:
        """For the `tables` that exist the version, and a count that grows when a checkpoint
        is cosigned."""
        found: dict[bytes, tuple[int, int]] = {}
        for sql, parameters in self._queries.heads(list(tables)):
            for table, version, cosigned in await self._fetch(sql, parameters):
                found[table] = (version, cosigned)
        return found

    async def tables_between(self, low: bytes, high: bytes, *, limit: int) -> list[bytes]:
        """Ids of at most `limit` tables from `low` to `high`, both included, in order."""
        rows = await self._fetch(self._queries.between, (low, high, limit))
        return [table for (table,) in rows]

    async def read(
        self, table: bytes, *, after: int = 0, upto: int | None = None, limit: int = 1000
    ) -> list[EventRecord]:
        """At most `limit` events with versions after+1 … upto, in order."""
        rows = await self._fetch(
            self._queries.read, (table, after, _NO_LIMIT if upto is None else upto, limit)
        )
        return [EventRecord(*stored_form.decode(row)) for row in rows]

    async def stream(
        self, table: bytes, *, after: int = 0, upto: int | None = None, chunk: int = 1000
    ) -> AsyncIterator[list[EventRecord]]:
        """All events with versions after+1 … upto, in lists of at most `chunk`.

        Each list is a read transaction of its own, so a slow consumer does not prevent WAL
        checkpoints.
        """
        while rows := await self.read(table, after=after, upto=upto, limit=chunk):
            yield rows
            after = rows[-1].version
            if len(rows) < chunk and after == upto:
                return

    async def stream_types(
        self, table: bytes, types: Sequence[str], *, upto: int | None = None, chunk: int = 1000
    ) -> AsyncIterator[list[EventRecord]]:
        """All events of these types with versions up to `upto`, in lists of at most `chunk`.

        The types are those that a row names in full: of tables, seats and rounds
        (`dealer.eventlog.stored_form`). An index has the events of `LASTING_TYPES`; for other types
        the database looks at all events.
        """
        sql, after = self._queries.of_types(types), 0
        last = _NO_LIMIT if upto is None else upto
        while found := await self._fetch(sql, (table, after, last, *types, chunk)):
            rows = [EventRecord(*stored_form.decode(row)) for row in found]
            yield rows
            after = rows[-1].version

    async def round_versions(self, table: bytes, *, upto: int | None = None) -> list[int]:
        """The versions up to `upto` that opened a round, in order."""
        parameters = (table, _NO_LIMIT if upto is None else upto)
        return [version for (version,) in await self._fetch(self._queries.rounds, parameters)]

    async def end(self, table: bytes) -> LogEnd:
        """Where the table's events end, in one snapshot; all 0 if there is no such table."""
        rows = await self._fetch(self._queries.end, (table,) * self._queries.end_times)
        return LogEnd._make(rows[0]) if rows else LogEnd(0, 0, 0)

    async def find_command(self, table: bytes, command: str) -> EventRecord | None:
        """The first event of the append that carried out this command id; None if there is none."""
        stored = self._queries.stored_command(command)
        rows = await self._fetch(self._queries.command, (table, stored))
        return EventRecord(*stored_form.decode(rows[0])) if rows else None

    async def checkpoints(
        self, table: bytes, *, after: int = -1, limit: int = 1000
    ) -> list[tuple[int, str]]:
        """(size, note) of the table's checkpoints with size > `after`, by size."""
        rows = await self._fetch(self._queries.checkpoints, (table, after, limit))
        return [(size, note) for size, note in rows]

    async def signed_sizes(self, table: bytes, *, after: int = -1) -> set[int]:
        """The sizes of the table's checkpoints with size > `after`."""
        return {size for (size,) in await self._fetch(self._queries.signed, (table, after))}

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
        parameters = (table, _NO_LIMIT if upto is None else upto, limit)
        return [(size, note) for size, note in await self._fetch(self._queries.newest, parameters)]

    async def metadata(self, name: str) -> bytes | None:
        """The value that `Log.put_metadata` stored under `name`."""
        rows = await self._fetch(SELECT_METADATA, (name,))
        return rows[0][0] if rows else None

    async def owns_tables(self) -> bool:
        """Whether this user of a server may alter the log's tables, and so disable their triggers.

        False for a file, whose owner may always do so. Raises DatabaseError.
        """
        if self.dialect == "sqlite":
            return False
        ((owns,),) = await self.fetch(_OWNS_EVENT)
        return bool(owns)

    async def fetch(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a SELECT with `?` for its parameters, with the names of its columns.

        While a PostgreSQL server is unreachable, and while no connection is free, this waits for
        the log's `busy_seconds`; then raises DatabaseUnavailable or Overloaded. Raises Unavailable
        after `close`.
        """
        return await self._fetch(sql, parameters)

    async def _fetch(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        if self._closed:
            raise Unavailable("The server is shutting down; try again when it has restarted.")
        return await self.reader.fetch(sql, parameters)

    async def fetch_row(self, table: str, sql: str) -> Any:
        """The row of an SQL table that every database of this schema has; DatabaseDamaged if not.

        Raises what `fetch` raises.
        """
        rows = await self.fetch(sql)
        if not rows:
            raise DatabaseDamaged(
                f"The SQL table `{table}` lacks a row that it always has; restore the database "
                "from a backup."
            )
        return rows[0]


class ReadAhead(ReadOnlyLog):
    """A log that knows the ends and events of these tables; all else it reads.

    It knows each for one read: what is read again is up to date.
    """

    def __init__(self, log: ReadOnlyLog) -> None:
        super().__init__(log.reader)
        self._known: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}

    @classmethod
    async def of(cls, log: ReadOnlyLog, tables: Sequence[bytes], *, chunk: int) -> Self:
        """Read the tables; of the events as many as `stream` reads at once with this `chunk`.

        If a statement fails, as for one damaged table, each table is read alone.
        """
        ahead, queries = cls(log), log._queries
        try:
            ends = await ahead._read(
                queries.end, [(table,) * queries.end_times for table in tables]
            )
            await ahead._read(queries.signed, [(table, 0) for table in tables])
            upto = {each[0]: LogEnd(*row).version for each, rows in ends.items() for row in rows}
            await ahead._read(queries.read, [(table, 0, upto[table], chunk) for table in upto])
        except DatabaseError:
            ahead._known.clear()
        return ahead

    async def _read(
        self, sql: str, parameters: Iterable[tuple[Any, ...]]
    ) -> dict[tuple[Any, ...], list[Any]]:
        found: dict[tuple[Any, ...], list[Any]] = {each: [] for each in parameters}
        each = list(found)
        parts = (f"SELECT {number} AS part, q.* FROM ({sql}) q" for number in range(len(each)))
        values = tuple(value for parameters in each for value in parameters)
        if each:
            for number, *row in await super()._fetch(" UNION ALL ".join(parts), values):
                found[each[number]].append(row)
        self._known |= {(sql, parameters): rows for parameters, rows in found.items()}
        return found

    async def _fetch(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        known = self._known.pop((sql, parameters), None)
        return await super()._fetch(sql, parameters) if known is None else known
