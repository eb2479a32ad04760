"""Writes a batch of append requests to PostgreSQL: in bulk, and the remaining ones individually.

Tables whose heads are at the expected versions are written together, in one statement, or in one
transaction with COPY; any other table is left unchanged by that. The remaining requests
(conflicts, commands sent again, invalid values, checkpoints without rows) are decided one after the
other in a second transaction, in which each statement names one table.

Locked heads are skipped: all requests of a table whose head another transaction has locked are
`Locked`, from the first on, so that their order is kept; the caller tries them again later. Locks
that cannot be skipped (two nodes that create one table, a migration) are waited for up to the
connection's short lock_timeout, and then the request is `Locked`, too.

When a connection is lost, the requests may have been written although no answer arrived. Then the
remaining requests are tried again individually. If exactly the rows of a request are stored, it was
written. Otherwise updating the head now makes the lost statement fail if it is still running. A
request that is `Locked` at that point is in doubt until it is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dealer.errors import DatabaseError
from dealer.eventlog import rows as log_rows
from dealer.eventlog.db_errors import is_bad_value, is_lock_timeout, translate
from dealer.eventlog.stored_form import decode, decode_command, encode, stored_text

if TYPE_CHECKING:
    import asyncpg

COPY_FROM = 200
"""More rows than this are written by COPY: three more round trips, and less time per row."""

COLUMNS = ("stream", *log_rows.ROW_COLUMNS)

_COMMAND_COLUMN = log_rows.ROW_COLUMNS.index("command")

_TAKE = """
WITH request AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS r (id, expected, version)
), locked AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN request r ON s.id = r.id WHERE r.expected > 0
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
), moved AS (
    UPDATE stream s SET version = r.version FROM locked l JOIN request r ON r.id = l.id
    WHERE s.id = l.id AND s.version = r.expected RETURNING s.id
), created AS (
    INSERT INTO stream (id, version, projected)
    SELECT id, version, 0 FROM request WHERE expected = 0 ORDER BY id
    ON CONFLICT (id) DO NOTHING RETURNING id
), taken AS MATERIALIZED (
    SELECT id FROM created UNION ALL SELECT id FROM moved
)"""
_HEADS = f"{_TAKE} SELECT id FROM taken"
_ALL = f"""{_TAKE}, noted AS (
    INSERT INTO checkpoint (stream, size, note)
    SELECT c.stream, c.size, c.note
    FROM unnest($14::bytea[], $15::bigint[], $16::text[]) AS c (stream, size, note)
    JOIN taken t ON t.id = c.stream
), added AS (
    INSERT INTO event ({", ".join(COLUMNS)})
    SELECT n.* FROM unnest(
        $4::bytea[], $5::bigint[], $6::text[], $7::integer[], $8::bigint[], $9::text[],
        $10::bytea[], $11::bytea[], $12::text[], $13::bytea[]
    ) AS n ({", ".join(COLUMNS)}) JOIN taken t ON t.id = n.stream
) SELECT id FROM taken"""
_ONE_BY_ONE = "SELECT * FROM append_events({})".format(", ".join(f"${n}" for n in range(1, 17)))
"""Does what `_ALL` does, with the same parameters, where the tables are in shards."""
_NOTES = (
    "INSERT INTO checkpoint (stream, size, note)"
    " SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::text[])"
)

_ROWS = (
    f"INSERT INTO event ({', '.join(COLUMNS)}) SELECT * FROM unnest($1::bytea[], $2::bigint[],"
    " $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[],"
    " $10::bytea[])"
)
_LOCK = "SELECT version FROM stream WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED"
_HEAD = "SELECT version FROM stream WHERE id = $1"
_CREATE = "INSERT INTO stream (id, version, projected) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING"
_MOVE = "UPDATE stream SET version = $2 WHERE id = $1"
_COMMAND = "SELECT version, command, digest FROM event WHERE stream = $1 AND command = $2"
_EVENT = f"SELECT {', '.join(COLUMNS[1:])} FROM event WHERE stream = $1 AND version = $2"
_ARCHIVED = "SELECT size FROM archived WHERE stream = $1"
_NOTE = "INSERT INTO checkpoint (stream, size, note) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_STORED_NOTE = "SELECT note FROM checkpoint WHERE stream = $1 AND size = $2 FOR NO KEY UPDATE"
_UPDATE_NOTE = "UPDATE checkpoint SET note = $3 WHERE stream = $1 AND size = $2"
_COSIGNED = "UPDATE stream SET cosigned = cosigned + 1 WHERE id = $1"


class Locked(msgspec.Struct, frozen=True):
    """Not decided: another transaction locks the table.

    `in_doubt` if an earlier attempt, whose answer was lost, may have written it.
    """

    in_doubt: bool = False


class Batch:
    """Requests and their results; `write` may be called again on another connection.

    `in_doubt` are those that an earlier batch returned as `Locked` and in_doubt. If the tables are
    in shards, those of a batch should be at one worker.
    """

    def __init__(
        self,
        requests: Sequence[log_rows.Append],
        *,
        name: str,
        sharded: bool = False,
        in_doubt: Collection[log_rows.Append] = (),
    ) -> None:
        self._requests = requests
        self._name = name
        self._results: dict[int, log_rows.Result | Locked] = {}
        self._outcome_unknown = False
        self._in_doubt = in_doubt
        self._bulk = True
        self._sharded = sharded

    @property
    def results(self) -> list[log_rows.Result | Locked]:
        """One for each request, in their order; complete once `write` has returned."""
        return [self._results[index] for index in range(len(self._requests))]

    async def write(self, raw: asyncpg.Connection[Any]) -> None:
        """Decide every request; after an error the remaining ones may be tried again.

        Raises the driver's errors, except those that one request's values cause.
        """
        if self._bulk:
            # If the connection is lost before the answer, this may have been committed or not.
            self._bulk, was_unknown, self._outcome_unknown = False, self._outcome_unknown, True
            await self._write_together(raw)
            self._outcome_unknown = was_unknown
        if len(self._results) < len(self._requests):
            was_unknown, self._outcome_unknown = self._outcome_unknown, True
            self._results |= await self._write_singly(raw, check_written=was_unknown)
        self._outcome_unknown = False

    def defer(self) -> None:
        """Leave every request that has no result to a later batch: its server is unreachable."""
        for index, request in enumerate(self._requests):
            if index not in self._results:
                in_doubt = self._outcome_unknown or request in self._in_doubt
                self._results[index] = Locked(in_doubt)

    def fail(self, error: DatabaseError, unknown: DatabaseError, *, lost: bool) -> None:
        """Set an error as the result of every request that has none yet.

        `unknown` is for requests that may have been written: by an earlier batch, or by this one if
        its connection was `lost`.
        """
        for index, request in enumerate(self._requests):
            if index not in self._results:
                in_doubt = (lost and self._outcome_unknown) or request in self._in_doubt
                self._results[index] = unknown if in_doubt else error
                if request.chain is not None:
                    request.chain.broken = True

    async def _write_together(self, raw: asyncpg.Connection[Any]) -> None:
        tables = self._consecutive_by_table()
        if not tables:
            return
        requests = [self._requests[index] for indexes in tables.values() for index in indexes]
        rows = [(r.table, *to_columns(row)) for r in requests for row in r.rows]
        notes = [(r.table, *note) for r in requests for note in r.checkpoints]
        firsts = [self._requests[indexes[0]] for indexes in tables.values()]
        ends = [self._requests[indexes[-1]].end for indexes in tables.values()]
        heads = ([r.table for r in firsts], [r.expected for r in firsts], ends)
        try:
            written = await _write_in_bulk(raw, heads, rows, notes, sharded=self._sharded)
        except Exception as error:
            if not (is_bad_value(error) or is_lock_timeout(error)):
                raise
            return
        for table in written:
            for index in tables[table]:
                self._results[index] = log_rows.Appended(self._requests[index].end)

    def _consecutive_by_table(self) -> dict[bytes, list[int]]:
        """Indexes of requests by table, for tables all of whose requests follow each other."""
        by_table: dict[bytes, list[int]] = {}
        excluded = set()
        commands = set()
        for index, request in enumerate(self._requests):
            table = request.table
            earlier = by_table.setdefault(table, [])
            if (
                not request.rows
                or (request.chain is not None and request.chain.broken)
                or (earlier and self._requests[earlier[-1]].end != request.expected)
            ):
                excluded.add(table)
            else:
                command = request.rows[0].command
                if command is not None and (table, command) in commands:
                    excluded.add(table)
                commands.add((table, command))
            earlier.append(index)
        return {table: found for table, found in by_table.items() if table not in excluded}

    async def _write_singly(
        self, raw: asyncpg.Connection[Any], *, check_written: bool
    ) -> dict[int, log_rows.Result | Locked]:
        remaining = [index for index in range(len(self._requests)) if index not in self._results]
        results: dict[int, log_rows.Result | Locked] = {}
        await raw.execute("BEGIN")
        try:
            heads: dict[bytes, int] = {}
            locked: set[bytes] = set()
            for table in sorted({self._requests[index].table for index in remaining}):
                version = await raw.fetchval(_LOCK, table)
                if version is not None:
                    heads[table] = version
                elif await raw.fetchval(_HEAD, table) is not None:
                    locked.add(table)
            for index in remaining:
                request = self._requests[index]
                in_doubt = check_written or request in self._in_doubt
                result = (
                    Locked(in_doubt)
                    if request.table in locked
                    else await self._write_under_savepoint(
                        raw, request, heads, check_written=in_doubt
                    )
                )
                if isinstance(result, Locked):
                    locked.add(request.table)
                elif request.chain is not None and not isinstance(result, log_rows.Appended):
                    request.chain.broken = True
                results[index] = result
            await raw.execute("COMMIT")
        except BaseException as error:
            if not raw.is_closed():
                await raw.execute("ROLLBACK")
            if not is_lock_timeout(error):
                raise
            # An SQL table is locked as a whole, for example by a migration.
            results = {
                index: Locked(check_written or self._requests[index] in self._in_doubt)
                for index in remaining
            }
        return results

    async def _write_under_savepoint(
        self,
        raw: asyncpg.Connection[Any],
        request: log_rows.Append,
        heads: dict[bytes, int],
        *,
        check_written: bool,
    ) -> log_rows.Result | Locked:
        """The result of one request; a request that fails writes nothing."""
        await raw.execute("SAVEPOINT request")
        before = heads.get(request.table)
        try:
            result = await _write_one(raw, request, heads, check_written=check_written)
        except Exception as error:
            invalid = is_bad_value(error)
            if not (invalid or is_lock_timeout(error)):
                raise
            await raw.execute("ROLLBACK TO SAVEPOINT request")
            heads.pop(request.table, None)
            if before is not None:
                heads[request.table] = before
            result = translate(error, name=self._name) if invalid else Locked(check_written)
        await raw.execute("RELEASE SAVEPOINT request")
        return result


async def _write_one(
    raw: asyncpg.Connection[Any],
    request: log_rows.Append,
    heads: dict[bytes, int],
    *,
    check_written: bool,
) -> log_rows.Result | Locked:
    table = request.table
    if request.rows:
        first = request.rows[0]
        if check_written and await _is_stored(raw, table, first):
            return log_rows.Appended(request.end)
        # A command that was carried out is Duplicate, whatever version this request expects.
        if first.command is not None:
            found = await raw.fetchrow(_COMMAND, table, stored_text(first.command))
            if found is not None:
                return log_rows.Duplicate(found[0], decode_command(found[1], found[2])[1])
        broken = request.chain is not None and request.chain.broken
        version = heads.get(table, 0)
        if broken or version != request.expected:
            return log_rows.Conflict(version)
        if version:
            await raw.execute(_MOVE, table, request.end)
        elif await raw.execute(_CREATE, table, request.end) == "INSERT 0 0":
            # Another process, or the lost attempt, created it after the heads were locked.
            if check_written and await _is_stored(raw, table, first):
                return log_rows.Appended(request.end)
            version = await raw.fetchval(_LOCK, table)
            if version is None:
                return Locked(check_written)
            heads[table] = version
            return log_rows.Conflict(version)
        heads[table] = request.end
        rows = [(table, *to_columns(row)) for row in request.rows]
        await raw.execute(_ROWS, *columns(rows, len(COLUMNS)))
    else:
        # The head is locked, so the table cannot be archived concurrently.
        archived = await raw.fetchval(_ARCHIVED, table) is not None
        conflict = log_rows.conflict_if_missing(request, 0 if archived else heads.get(table, 0))
        if conflict is not None:
            return conflict
    for size, note in request.checkpoints:
        if await raw.execute(_NOTE, table, size, note) == "INSERT 0 0":
            stored = await raw.fetchval(_STORED_NOTE, table, size)
            merged = log_rows.merge_signatures(stored, note)
            if merged != stored:
                await raw.execute(_UPDATE_NOTE, table, size, merged)
                await raw.execute(_COSIGNED, table)
    return log_rows.Appended(request.end)


async def _is_stored(raw: asyncpg.Connection[Any], table: bytes, row: log_rows.EventRecord) -> bool:
    """Whether exactly this row is in the log."""
    found = await raw.fetchrow(_EVENT, table, row.version)
    there = None if found is None else log_rows.EventRecord(*decode(found)).columns_as_read()
    return there == row.columns_as_read()


async def _write_in_bulk(
    raw: asyncpg.Connection[Any],
    heads: tuple[list[bytes], list[int], list[int]],
    rows: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
    *,
    sharded: bool,
) -> set[bytes]:
    """The ids of the tables that were written; of the others nothing was.

    `heads` are three columns: table id, expected version, new version. `rows` are columns of
    `event`, `notes` of `checkpoint`. Raises the driver's errors.
    """
    if len(rows) <= COPY_FROM or sharded:
        sql = _ONE_BY_ONE if sharded else _ALL
        found = await raw.fetch(sql, *heads, *columns(rows, len(COLUMNS)), *columns(notes, 3))
        return {table for (table,) in found}
    return await _copy(raw, heads, rows, notes)


async def _copy(
    raw: asyncpg.Connection[Any],
    heads: tuple[list[bytes], list[int], list[int]],
    rows: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
) -> set[bytes]:
    await raw.execute("BEGIN")
    try:
        tables = {table for (table,) in await raw.fetch(_HEADS, *heads)}
        if len(tables) < len(heads[0]):
            rows = [row for row in rows if row[0] in tables]
            notes = [note for note in notes if note[0] in tables]
        if notes:
            await raw.execute(_NOTES, *columns(notes, 3))
        await raw.copy_records_to_table("event", records=rows, columns=COLUMNS)
        await raw.execute("COMMIT")
    except BaseException:
        if not raw.is_closed():
            await raw.execute("ROLLBACK")
        raise
    return tables


def to_columns(row: log_rows.EventRecord) -> Sequence[Any]:
    """The columns of a row as they are stored."""
    stored = encode(row)
    if row.command is None:
        return stored
    return (*stored[:_COMMAND_COLUMN], stored_text(row.command), *stored[_COMMAND_COLUMN + 1 :])


def columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """The columns of these rows as lists; `width` empty ones if there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
