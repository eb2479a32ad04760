"""Writes the requests of a batch to PostgreSQL: most in one statement, the others one by one.

A table whose head is at the version that its requests expect is written by `postgres_together`.
Whatever is left (conflicts, commands sent again, values that do not fit, notes alone) is decided
one request after the other in a second transaction, each statement about one table alone.

No head is waited for: the requests of a table whose head another transaction has locked are
`Locked`, all of them from the first on, so that none overtakes another; the caller tries them again
later. What cannot be skipped (two nodes that create one table, a migration) is waited for no longer
than the connection's lock_timeout, which is short, and then is `Locked`, too.

A connection that is lost may have lost the answer and not the work. Then the rest of the batch is
tried again, one by one, and a request whose very rows are where they would have gone was done:
either the head had moved, or moving it now keeps the lost statement from ever doing it. A request
that is `Locked` then is in doubt until it is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from dealer.errors import DatabaseDamaged, DatabaseError
from dealer.eventlog import postgres_together as together
from dealer.eventlog.batch import not_here, signed_by_both
from dealer.eventlog.faults import explain, is_bad_value, is_lock_timeout
from dealer.eventlog.postgres_together import COLUMNS, columns
from dealer.eventlog.rows import Append, Appended, Conflict, Known, Locked, Result, Row

if TYPE_CHECKING:
    import asyncpg

_ROWS = (
    f"INSERT INTO event ({', '.join(COLUMNS)}) SELECT * FROM unnest($1::bytea[], $2::bigint[],"
    " $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[],"
    " $10::bytea[])"
)
_LOCK = "SELECT version FROM stream WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED"
_HEAD = "SELECT version FROM stream WHERE id = $1"
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
    """Requests and what became of each; `write` may be called again on another connection.

    `doubted` are those that an earlier batch gave back as `Locked` and in doubt.
    """

    def __init__(
        self,
        requests: Sequence[Append],
        *,
        name: str,
        together: bool = True,
        doubted: Collection[Append] = (),
    ) -> None:
        self._requests = requests
        self._name = name
        self._results: dict[int, Result | Locked] = {}
        self._doubtful = False
        self._doubted = doubted
        self._together = together

    @property
    def results(self) -> list[Result | Locked]:
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

    def fail(self, error: DatabaseError, unknown: DatabaseError, *, lost: bool) -> None:
        """Gives every request that has no result yet an error.

        `unknown` is for those that may have been written: before this batch, or in it if its
        connection was `lost`.
        """
        for place, request in enumerate(self._requests):
            if place not in self._results:
                in_doubt = (lost and self._doubtful) or request in self._doubted
                self._results[place] = unknown if in_doubt else error
                if request.chain is not None:
                    request.chain.broken = True

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
        heads = ([r.table for r in firsts], [r.expected for r in firsts], ends)
        try:
            taken = await together.write(raw, heads, rows, notes)
        except Exception as error:
            if not (is_bad_value(error) or is_lock_timeout(error)):
                raise
            return
        for table in taken:
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
    ) -> dict[int, Result | Locked]:
        left = [place for place in range(len(self._requests)) if place not in self._results]
        results: dict[int, Result | Locked] = {}
        await raw.execute("BEGIN")
        try:
            heads: dict[bytes, int] = {}
            locked: set[bytes] = set()
            for table in sorted({self._requests[place].table for place in left}):
                version = await raw.fetchval(_LOCK, table)
                if version is not None:
                    heads[table] = version
                elif await raw.fetchval(_HEAD, table) is not None:
                    locked.add(table)
            for place in left:
                request = self._requests[place]
                in_doubt = settle or request in self._doubted
                result = (
                    Locked(in_doubt)
                    if request.table in locked
                    else await self._guarded(raw, request, heads, settle=in_doubt)
                )
                if isinstance(result, Locked):
                    locked.add(request.table)
                elif request.chain is not None and not isinstance(result, Appended):
                    request.chain.broken = True
                results[place] = result
            await raw.execute("COMMIT")
        except BaseException as error:
            if not raw.is_closed():
                await raw.execute("ROLLBACK")
            if not is_lock_timeout(error):
                raise
            # A whole table of the database is locked, as a migration does it.
            results = {
                place: Locked(settle or self._requests[place] in self._doubted) for place in left
            }
        return results

    async def _guarded(
        self,
        raw: asyncpg.Connection[Any],
        request: Append,
        heads: dict[bytes, int],
        *,
        settle: bool,
    ) -> Result | Locked:
        """A request's own result; a bad one leaves nothing of itself."""
        await raw.execute("SAVEPOINT request")
        before = heads.get(request.table)
        try:
            result = await _one(raw, request, heads, settle=settle)
        except Exception as error:
            mine = is_bad_value(error) or isinstance(error, DatabaseDamaged)
            if not (mine or is_lock_timeout(error)):
                raise
            await raw.execute("ROLLBACK TO SAVEPOINT request")
            heads.pop(request.table, None)
            if before is not None:
                heads[request.table] = before
            result = explain(error, name=self._name) if mine else Locked(settle)
        await raw.execute("RELEASE SAVEPOINT request")
        return result


async def _one(
    raw: asyncpg.Connection[Any], request: Append, heads: dict[bytes, int], *, settle: bool
) -> Result | Locked:
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
            # Another process created it after the heads were locked.
            version = await raw.fetchval(_LOCK, table)
            if version is None:
                return Locked(settle)
            heads[table] = version
            return Conflict(version)
        heads[table] = _end(request)
        rows = [(table, *row) for row in request.rows]
        await raw.execute(_ROWS, *columns(rows, len(COLUMNS)))
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


def _end(request: Append) -> int:
    return request.expected + len(request.rows)
