"""Writes the wishes of many tables to PostgreSQL: the good ones at one go, each other one alone.

The heads of a batch are locked in the order of their ids, so two nodes never wait for each other
in a circle. A head that stands where its requests expect it is moved and its rows go in, all in
one statement that is its own transaction; the heads that it gives back are those that it moved.
Whatever is left (conflicts, commands sent again, values that do not fit, notes alone) is sorted
out one request after the other in a second transaction, each statement about one table alone.

A connection that is lost may have lost the answer and not the work. Then the rest of the batch is
tried again, one by one, and a request whose very rows stand where they would have gone was done:
either the head had moved, or moving it now keeps the lost statement from ever doing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dealer.errors import DatabaseDamaged, DatabaseError
from dealer.eventlog.batch import not_here, signed_by_both
from dealer.eventlog.faults import explain, is_bad_value
from dealer.eventlog.rows import Append, Appended, Conflict, Known, Result, Row

if TYPE_CHECKING:
    import asyncpg

COPIED = 200
"""From so many rows on they go in by COPY: three more ways to the server, and each row cheaper."""

COLUMNS = (
    "stream", "version", "type", "schema", "at", "public", "commitment", "hidden", "command",
    "digest",
)  # fmt: skip

_TAKE = """
WITH wish AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) AS w (id, expected, version)
), held AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN wish w ON s.id = w.id WHERE w.expected > 0
    ORDER BY s.id FOR NO KEY UPDATE OF s
), moved AS (
    UPDATE stream s SET version = w.version FROM held h JOIN wish w ON w.id = h.id
    WHERE s.id = h.id AND s.version = w.expected RETURNING s.id
), founded AS (
    INSERT INTO stream (id, version, projected)
    SELECT id, version, 0 FROM wish WHERE expected = 0 ORDER BY id
    ON CONFLICT (id) DO NOTHING RETURNING id
), taken AS MATERIALIZED (
    SELECT id FROM founded UNION ALL SELECT id FROM moved
)"""
_HEADS = f"{_TAKE} SELECT id FROM taken"
_ALL = f"""{_TAKE}, noted AS (
    INSERT INTO checkpoint (stream, size, note)
    SELECT c.stream, c.size, c.note
    FROM unnest($14::bytea[], $15::bigint[], $16::text[]) AS c (stream, size, note)
    JOIN taken t ON t.id = c.stream
), added AS (
    INSERT INTO event ({", ".join(COLUMNS)})
    SELECT r.* FROM unnest(
        $4::bytea[], $5::bigint[], $6::text[], $7::integer[], $8::bigint[], $9::text[],
        $10::bytea[], $11::bytea[], $12::text[], $13::bytea[]
    ) AS r ({", ".join(COLUMNS)}) JOIN taken t ON t.id = r.stream
) SELECT id FROM taken"""
_NOTES = (
    "INSERT INTO checkpoint (stream, size, note)"
    " SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::text[])"
)
_ROWS = (
    f"INSERT INTO event ({', '.join(COLUMNS)}) SELECT * FROM unnest($1::bytea[], $2::bigint[],"
    " $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[],"
    " $10::bytea[])"
)
_LOCK = "SELECT version FROM stream WHERE id = $1 FOR NO KEY UPDATE"
_FOUND = "INSERT INTO stream (id, version, projected) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING"
_MOVE = "UPDATE stream SET version = $2 WHERE id = $1"
_COMMAND = "SELECT version, digest FROM event WHERE stream = $1 AND command = $2"
_FIRST = f"SELECT {', '.join(COLUMNS[1:])} FROM event WHERE stream = $1 AND version = $2"
_ARCHIVED = "SELECT size FROM archived WHERE stream = $1"
_NOTE = "INSERT INTO checkpoint (stream, size, note) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_NOTE_THERE = "SELECT note FROM checkpoint WHERE stream = $1 AND size = $2 FOR NO KEY UPDATE"
_NOTE_SIGNED = "UPDATE checkpoint SET note = $3 WHERE stream = $1 AND size = $2"
_COSIGNED = "UPDATE stream SET cosigned = cosigned + 1 WHERE id = $1"


class Batch:
    """Requests and what became of each; `write` may be called again on another connection."""

    def __init__(self, requests: Sequence[Append], *, name: str, together: bool = True) -> None:
        self._requests = requests
        self._name = name
        self._results: dict[int, Result] = {}
        self._doubtful = False
        self._together = together

    @property
    def results(self) -> list[Result]:
        """One for each request, in their order, once `write` has returned."""
        return [self._results[place] for place in range(len(self._requests))]

    async def write(self, raw: asyncpg.Connection[Any]) -> None:
        """Gives every request its result; after an error the rest may be tried again.

        Raises what the driver raises, except where that is one request's own fault.
        """
        if self._together:
            # An answer that never comes leaves open whether this was done.
            self._together, doubtful, self._doubtful = False, self._doubtful, True
            await self._write_together(raw)
            self._doubtful = doubtful
        if len(self._results) < len(self._requests):
            doubtful, self._doubtful = self._doubtful, True
            found = await self._write_singly(raw, settle=doubtful)
            self._results |= found
        self._doubtful = False

    def fail(self, error: DatabaseError) -> None:
        """Gives every request that has no result yet this one."""
        for place, request in enumerate(self._requests):
            if place not in self._results:
                self._results[place] = error
                if request.chain is not None:
                    request.chain.broken = True

    @property
    def doubtful(self) -> bool:
        """Whether a lost connection leaves open if something was written."""
        return self._doubtful

    # At one go

    async def _write_together(self, raw: asyncpg.Connection[Any]) -> None:
        tables = self._by_table()
        if not tables:
            return
        requests = [self._requests[place] for places in tables.values() for place in places]
        rows = [(r.table, *row) for r in requests for row in r.rows]
        notes = [(r.table, *note) for r in requests for note in r.checkpoints]
        firsts = [self._requests[places[0]] for places in tables.values()]
        ends = [_end(self._requests[places[-1]]) for places in tables.values()]
        wish = ([r.table for r in firsts], [r.expected for r in firsts], ends)
        try:
            if len(rows) <= COPIED:
                taken = await raw.fetch(
                    _ALL, *wish, *_columns(rows, len(COLUMNS)), *_columns(notes, 3)
                )
            else:
                taken = await _copy(raw, wish, rows, notes)
        except Exception as error:
            if not is_bad_value(error):
                raise
            return
        for (table,) in taken:
            for place in tables[table]:
                self._results[place] = Appended(_end(self._requests[place]))

    def _by_table(self) -> dict[bytes, list[int]]:
        """Places of requests by table, of tables of which all requests follow each other."""
        places: dict[bytes, list[int]] = {}
        odd = set()
        commands = set()
        for place, request in enumerate(self._requests):
            table = request.table
            there = places.setdefault(table, [])
            if (
                not request.rows
                or (request.chain is not None and request.chain.broken)
                or (there and _end(self._requests[there[-1]]) != request.expected)
            ):
                odd.add(table)
            else:
                command = request.rows[0].command
                if command is not None and (table, command) in commands:
                    odd.add(table)
                commands.add((table, command))
            there.append(place)
        return {table: found for table, found in places.items() if table not in odd}

    # One by one

    async def _write_singly(
        self, raw: asyncpg.Connection[Any], *, settle: bool
    ) -> dict[int, Result]:
        left = [place for place in range(len(self._requests)) if place not in self._results]
        results: dict[int, Result] = {}
        await raw.execute("BEGIN")
        try:
            heads: dict[bytes, int] = {}
            for table in sorted({self._requests[place].table for place in left}):
                version = await raw.fetchval(_LOCK, table)
                if version is not None:
                    heads[table] = version
            for place in left:
                request = self._requests[place]
                result = await self._guarded(raw, request, heads, settle=settle)
                if request.chain is not None and not isinstance(result, Appended):
                    request.chain.broken = True
                results[place] = result
            await raw.execute("COMMIT")
        except BaseException:
            if not raw.is_closed():
                await raw.execute("ROLLBACK")
            raise
        return results

    async def _guarded(
        self,
        raw: asyncpg.Connection[Any],
        request: Append,
        heads: dict[bytes, int],
        *,
        settle: bool,
    ) -> Result:
        """A request's own result; a bad one leaves nothing of itself."""
        await raw.execute("SAVEPOINT request")
        before = heads.get(request.table)
        try:
            result = await _one(raw, request, heads, settle=settle)
        except Exception as error:
            if not (is_bad_value(error) or isinstance(error, DatabaseDamaged)):
                raise
            await raw.execute("ROLLBACK TO SAVEPOINT request")
            heads.pop(request.table, None)
            if before is not None:
                heads[request.table] = before
            result = explain(error, name=self._name)
        await raw.execute("RELEASE SAVEPOINT request")
        return result


async def _one(
    raw: asyncpg.Connection[Any], request: Append, heads: dict[bytes, int], *, settle: bool
) -> Result:
    table = request.table
    if request.rows:
        first = request.rows[0]
        if settle:
            there = await raw.fetchrow(_FIRST, table, first.version)
            if there is not None and Row._make(there) == Row._make(first):
                return Appended(_end(request))
        # A command that was carried out has its answer, whatever version its sender now expects.
        if first.command is not None:
            found = await raw.fetchrow(_COMMAND, table, first.command)
            if found is not None:
                return Known(found[0], found[1])
        broken = request.chain is not None and request.chain.broken
        version = heads.get(table, 0)
        if broken or version != request.expected:
            return Conflict(version)
        if version:
            await raw.execute(_MOVE, table, _end(request))
        elif await raw.execute(_FOUND, table, _end(request)) == "INSERT 0 0":
            # Another process founded it after the heads were locked.
            heads[table] = await raw.fetchval(_LOCK, table)
            return Conflict(heads[table])
        heads[table] = _end(request)
        rows = [(table, *row) for row in request.rows]
        await raw.execute(_ROWS, *_columns(rows, len(COLUMNS)))
    else:
        # The head is locked: who takes the table to archive comes before this, or after it.
        archived = await raw.fetchval(_ARCHIVED, table) is not None
        missing = not_here(request, 0 if archived else heads.get(table, 0))
        if missing is not None:
            return missing
    for size, note in request.checkpoints:
        if await raw.execute(_NOTE, table, size, note) == "INSERT 0 0":
            there = await raw.fetchval(_NOTE_THERE, table, size)
            both = signed_by_both(there, note)
            if both != there:
                await raw.execute(_NOTE_SIGNED, table, size, both)
                await raw.execute(_COSIGNED, table)
    return Appended(_end(request))


async def _copy(
    raw: asyncpg.Connection[Any],
    wish: tuple[list[bytes], list[int], list[int]],
    rows: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
) -> list[Any]:
    await raw.execute("BEGIN")
    try:
        taken: list[Any] = await raw.fetch(_HEADS, *wish)
        tables = {table for (table,) in taken}
        if len(tables) < len(wish[0]):
            rows = [row for row in rows if row[0] in tables]
            notes = [note for note in notes if note[0] in tables]
        if notes:
            await raw.execute(_NOTES, *_columns(notes, 3))
        await raw.copy_records_to_table("event", records=rows, columns=COLUMNS)
        await raw.execute("COMMIT")
    except BaseException:
        if not raw.is_closed():
            await raw.execute("ROLLBACK")
        raise
    return taken


def _end(request: Append) -> int:
    return request.expected + len(request.rows)


def _columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
