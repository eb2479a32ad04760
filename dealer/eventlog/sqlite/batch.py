"""Writes a batch of append requests to SQLite: in bulk, or each on its own if the bulk write fails.

Everything here runs inside the writer's open transaction and never commits. `write_batch` needs the
same few statements for any number of requests. It fails if a request has a version conflict, was
written before or has invalid values, which row counts and unique indexes show. Then the writer
rolls back, and `write_individually` gives each request its own result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from dealer.eventlog.db_errors import BAD_VALUES, is_bad_value, translate
from dealer.eventlog.rows import (
    COLUMNS,
    Append,
    Appended,
    Conflict,
    Duplicate,
    Result,
    conflict_if_missing,
    merge_signatures,
)
from dealer.eventlog.schema import select_in
from dealer.eventlog.sqlite import direct
from dealer.eventlog.stored_form import decode_command, encode_all, stored_command

_FIND = "SELECT table_id, id FROM stream"
_CREATE = "INSERT INTO stream (table_id, version, projected) VALUES (?, 0, 0)"
_MOVE = "UPDATE stream SET version = ? WHERE id = ? AND version = ?"
_ADD = f"INSERT INTO event (stream, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NOTE = "INSERT INTO checkpoint (stream, size, note) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_STORED_NOTE = "SELECT note FROM checkpoint WHERE stream = ? AND size = ?"
_UPDATE_NOTE = "UPDATE checkpoint SET note = ? WHERE stream = ? AND size = ?"
_COSIGNED = "UPDATE stream SET cosigned = cosigned + 1 WHERE id = ?"
_COMMAND = "SELECT version, command, digest FROM event WHERE stream = ? AND command = ?"
_HEAD = "SELECT version FROM stream WHERE id = ?"
_HEAD_UNLESS_ARCHIVED = f"{_HEAD} AND NOT EXISTS (SELECT 1 FROM archived WHERE stream = ?)"


def write_batch(
    connection: Connection,
    driver: sqlite3.Connection,
    requests: Sequence[Append],
    streams: dict[bytes, int],
) -> list[Result] | None:
    """Write all requests; None if that failed, and then the transaction must be rolled back.

    `driver` is the driver's connection of `connection`. `streams` caches the row numbers of tables
    by id; numbers found here are added to it.
    """
    for request in requests:
        if request.chain is not None and request.chain.broken:
            return None
    try:
        if not _load_numbers(connection, requests, streams):
            return None
        moves, parts = [], []
        for request in requests:
            if request.rows:
                number, expected = streams[request.table], request.expected
                moves.append((expected + len(request.rows), number, expected))
                parts.append((number, request.rows))
        if moves:
            # Each of several appends to one table expects the version of the one before.
            if direct.executemany(driver, _MOVE, moves) != len(moves):
                return None
            direct.executemany(driver, _ADD, encode_all(parts))
        for request in requests:
            if request.checkpoints:
                number = streams[request.table]
                if (
                    not request.rows
                    and _conflict_if_missing(connection, number, request) is not None
                ):
                    return None
                _note(connection, number, request.checkpoints)
    except (DBAPIError, *BAD_VALUES) as error:
        if not is_bad_value(error):
            raise
        return None
    return [Appended(request.expected + len(request.rows)) for request in requests]


def write_individually(
    connection: Connection,
    requests: Sequence[Append],
    streams: dict[bytes, int],
    *,
    name: str,
) -> list[Result]:
    """Write each request under a savepoint, in order; a request that fails writes nothing."""
    results: list[Result] = []
    for request in requests:
        connection.exec_driver_sql("SAVEPOINT request")
        try:
            result = _write_one(connection, request, streams)
        except (DBAPIError, *BAD_VALUES) as error:
            if not is_bad_value(error):
                raise
            connection.exec_driver_sql("ROLLBACK TO request")
            # The row of a table that this request created is rolled back with it.
            streams.pop(request.table, None)
            result = translate(error, name=name)
        if request.chain is not None and not isinstance(result, Appended):
            request.chain.broken = True
        connection.exec_driver_sql("RELEASE request")
        results.append(result)
    return results


def _write_one(connection: Connection, request: Append, streams: dict[bytes, int]) -> Result:
    execute = connection.exec_driver_sql
    if not _load_numbers(connection, (request,), streams):
        return Conflict(0)
    number = streams[request.table]
    if request.rows:
        # A command that was carried out is Duplicate, whatever version this request expects.
        known = _find_command(connection, number, request)
        if known is not None:
            return known
        head = execute(_HEAD, (number,)).first()
        if head is None:
            del streams[request.table]  # cached before the log was restored from a backup
            return Conflict(0)
        (version,) = head
        broken = request.chain is not None and request.chain.broken
        if broken or version != request.expected:
            return Conflict(version)
        execute(_MOVE, (version + len(request.rows), number, version))
        execute(_ADD, encode_all([(number, request.rows)]))
    else:
        conflict = _conflict_if_missing(connection, number, request)
        if conflict is not None:
            return conflict
    _note(connection, number, request.checkpoints)
    return Appended(request.end)


def _find_command(connection: Connection, number: int, request: Append) -> Duplicate | None:
    """Where the log has the request's command."""
    command = request.rows[0].command
    if command is None:
        return None
    found = connection.exec_driver_sql(_COMMAND, (number, stored_command(command))).first()
    if found is None:
        return None
    version, stored, digest = found
    return Duplicate(version, decode_command(stored, digest)[1])


def _load_numbers(
    connection: Connection, requests: Sequence[Append], streams: dict[bytes, int]
) -> bool:
    """Cache the tables' row numbers, and create new tables; False if a table does not exist."""
    unknown = {r.table: r for r in reversed(requests) if r.table not in streams}
    if not unknown:
        return True
    _find(connection, list(unknown), streams)
    created = []
    for table, request in unknown.items():
        if table not in streams:
            if request.expected or not request.rows:
                return False
            created.append(table)
    if created:
        connection.exec_driver_sql(_CREATE, [(table,) for table in reversed(created)])
        _find(connection, created, streams)
    return True


def _find(connection: Connection, tables: list[bytes], streams: dict[bytes, int]) -> None:
    for sql, part in select_in("sqlite", _FIND, "table_id", tables):
        for table, number in connection.exec_driver_sql(sql, part):
            streams[table] = number


def _conflict_if_missing(connection: Connection, number: int, request: Append) -> Conflict | None:
    """The result for checkpoints whose events are not stored: archived, or lost by a restore."""
    found = connection.exec_driver_sql(_HEAD_UNLESS_ARCHIVED, (number, number)).first()
    return conflict_if_missing(request, 0 if found is None else found[0])


def _note(connection: Connection, number: int, notes: Sequence[tuple[int, str]]) -> None:
    for size, note in notes:
        if connection.exec_driver_sql(_NOTE, (number, size, note)).rowcount:
            continue
        (stored,) = connection.exec_driver_sql(_STORED_NOTE, (number, size)).one()
        merged = merge_signatures(stored, note)
        if merged != stored:
            connection.exec_driver_sql(_UPDATE_NOTE, (merged, number, size))
            connection.exec_driver_sql(_COSIGNED, (number,))
