"""Writes the wishes of many tables at one go, and sorts them out one by one if some cannot be.

Everything here runs inside the writer's open transaction and never commits. `together` needs the
same few statements however many requests there are; it succeeds unless a request lost a race or
was sent before, which the counts and the unique indexes betray. Then the writer rolls back and
`one_by_one` gives each request its own answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from dealer.errors import DatabaseDamaged
from dealer.eventlog.faults import BAD_VALUES, explain
from dealer.eventlog.rows import Append, Appended, Conflict, Known, Result

_FIND = "SELECT table_id, id FROM stream WHERE table_id IN ({})"
_FOUND = "INSERT INTO stream (table_id, version, projected) VALUES (?, 0, 0)"
_MOVE = "UPDATE stream SET version = ? WHERE id = ? AND version = ?"
_ADD = (
    "INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden, command,"
    " digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_NOTE = "INSERT INTO checkpoint (stream, size, note) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_NOTE_THERE = "SELECT note FROM checkpoint WHERE stream = ? AND size = ?"
_NOTE_SIGNED = "UPDATE checkpoint SET note = ? WHERE stream = ? AND size = ?"
_COSIGNED = "UPDATE stream SET cosigned = cosigned + 1 WHERE id = ?"
_COMMAND = "SELECT version, digest FROM event WHERE stream = ? AND command = ?"
_HEAD = "SELECT version FROM stream WHERE id = ?"
_HERE = f"{_HEAD} AND NOT EXISTS (SELECT 1 FROM archived WHERE stream = ?)"

_VARIABLES = 500


def together(
    connection: Connection, requests: Sequence[Append], streams: dict[bytes, int]
) -> list[Result] | None:
    """Writes all requests, or returns None after which the transaction must be rolled back.

    `streams` is the writer's memory of tables' numbers; what is learnt here is added to it.
    """
    execute = connection.exec_driver_sql
    if any(r.chain is not None and r.chain.broken for r in requests):
        return None
    try:
        if not _number(connection, requests, streams):
            return None
        moves = [
            (r.expected + len(r.rows), streams[r.table], r.expected) for r in requests if r.rows
        ]
        if moves:
            # Several appends to one table are a chain: each finds the version the last one left.
            if execute(_MOVE, moves).rowcount != len(moves):
                return None
            execute(_ADD, [(streams[r.table], *row) for r in requests for row in r.rows])
        for request in requests:
            if request.checkpoints:
                number = streams[request.table]
                if not request.rows and _missing(connection, number, request) is not None:
                    return None
                _note(connection, number, request.checkpoints)
    except (DBAPIError, *BAD_VALUES, DatabaseDamaged) as error:
        if not _is_one_requests(error):
            raise
        return None
    return [Appended(r.expected + len(r.rows)) for r in requests]


def one_by_one(
    connection: Connection, requests: Sequence[Append], streams: dict[bytes, int], *, name: str
) -> list[Result]:
    """Gives each request its own answer, in order; a bad one leaves nothing of itself."""
    results: list[Result] = []
    for request in requests:
        connection.exec_driver_sql("SAVEPOINT request")
        try:
            result = _one(connection, request, streams)
        except (DBAPIError, *BAD_VALUES, DatabaseDamaged) as error:
            if not _is_one_requests(error):
                raise
            connection.exec_driver_sql("ROLLBACK TO request")
            # The number of a table that was founded a moment ago went with it.
            streams.pop(request.table, None)
            result = explain(error, name=name)
        if request.chain is not None and not isinstance(result, Appended):
            request.chain.broken = True
        connection.exec_driver_sql("RELEASE request")
        results.append(result)
    return results


def _one(connection: Connection, request: Append, streams: dict[bytes, int]) -> Result:
    execute = connection.exec_driver_sql
    if not _number(connection, (request,), streams):
        return Conflict(0)
    number = streams[request.table]
    if request.rows:
        # A command that was carried out has its answer, whatever version its sender now expects.
        if request.rows[0].command is not None:
            found = execute(_COMMAND, (number, request.rows[0].command)).first()
            if found is not None:
                return Known(found[0], found[1])
        head = execute(_HEAD, (number,)).first()
        if head is None:
            del streams[request.table]  # the number is from before the log was put back
            return Conflict(0)
        (version,) = head
        broken = request.chain is not None and request.chain.broken
        if broken or version != request.expected:
            return Conflict(version)
        execute(_MOVE, (version + len(request.rows), number, version))
        execute(_ADD, [(number, *row) for row in request.rows])
    else:
        missing = _missing(connection, number, request)
        if missing is not None:
            return missing
    _note(connection, number, request.checkpoints)
    return Appended(request.expected + len(request.rows))


def _number(connection: Connection, requests: Sequence[Append], streams: dict[bytes, int]) -> bool:
    """Learns the numbers of the tables, founding those that begin here; False if one is unknown."""
    unknown = {r.table: r for r in reversed(requests) if r.table not in streams}
    if not unknown:
        return True
    _find(connection, list(unknown), streams)
    founded = []
    for table, request in unknown.items():
        if table not in streams:
            if request.expected or not request.rows:
                return False
            founded.append(table)
    if founded:
        connection.exec_driver_sql(_FOUND, [(table,) for table in reversed(founded)])
        _find(connection, founded, streams)
    return True


def _find(connection: Connection, tables: list[bytes], streams: dict[bytes, int]) -> None:
    for start in range(0, len(tables), _VARIABLES):
        part = tuple(tables[start : start + _VARIABLES])
        sql = _FIND.format(",".join("?" * len(part)))
        for table, number in connection.exec_driver_sql(sql, part):
            streams[table] = number


def _missing(connection: Connection, number: int, request: Append) -> Conflict | None:
    """The answer to notes alone whose events are not here: archived, or of another time."""
    found = connection.exec_driver_sql(_HERE, (number, number)).first()
    return not_here(request, 0 if found is None else found[0])


def not_here(request: Append, version: int) -> Conflict | None:
    """The answer to notes alone where the table has events up to `version`; None if that will do.

    A note in the log without its events would make the table look altered, or outlive it.
    """
    return None if all(size <= version for size, _ in request.checkpoints) else Conflict(version)


def _note(connection: Connection, number: int, notes: Sequence[tuple[int, str]]) -> None:
    for size, note in notes:
        if connection.exec_driver_sql(_NOTE, (number, size, note)).rowcount:
            continue
        (there,) = connection.exec_driver_sql(_NOTE_THERE, (number, size)).one()
        both = signed_by_both(there, note)
        if both != there:
            connection.exec_driver_sql(_NOTE_SIGNED, (both, number, size))
            connection.exec_driver_sql(_COSIGNED, (number,))


def signed_by_both(there: str, note: str) -> str:
    """One note with the signature lines of two; two processes may add cosignatures at once.

    Each name keeps its first line: a note with two by one key is no good to anybody. Raises
    DatabaseDamaged if the texts differ: a table has one root for each size.
    """
    text, _, lines = there.partition("\n\n")
    other, _, more = note.partition("\n\n")
    if text != other:
        raise DatabaseDamaged(
            "A checkpoint of the same size but with another root stands in the log; the database "
            "was altered, restore it from a backup."
        )
    signatures: dict[str, str] = {}
    for line in filter(None, (lines + more).split("\n")):
        signatures.setdefault(line.rpartition(" ")[0], line)
    return text + "\n\n" + "".join(line + "\n" for line in signatures.values())


def _is_one_requests(error: BaseException) -> bool:
    """Whether the fault lies in a request, and not in the database or its disk."""
    if isinstance(error, DBAPIError):
        return isinstance(error.orig, BAD_VALUES)
    return isinstance(error, (*BAD_VALUES, DatabaseDamaged))
