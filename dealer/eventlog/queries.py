"""SELECT statements of the log, for SQLite and PostgreSQL.

On SQLite a table's row number is looked up by its id; on PostgreSQL the id is the key itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dealer.eventlog import stored_form
from dealer.eventlog.rows import ROW_COLUMNS
from dealer.eventlog.store import Dialect

COLUMNS = ", ".join(ROW_COLUMNS)

TABLE_ID = {"sqlite": "table_id", "postgresql": "id"}
"""The column of `stream` with the table's id and an index on it."""

_MAX_VARIABLES = 500


def select_in(
    dialect: str, select: str, column: str, ids: Sequence[bytes | int]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Statements, each with its parameters, that together select the rows with these ids."""
    if dialect == "postgresql":
        if ids:
            yield f"{select} WHERE {column} = ANY(?)", (list(ids),)
        return
    for start in range(0, len(ids), _MAX_VARIABLES):
        part = tuple(ids[start : start + _MAX_VARIABLES])
        yield f"{select} WHERE {column} IN ({','.join('?' * len(part))})", part


def lagging(dialect: str) -> str:
    """The condition that a row of `stream` has events to be projected, for which there is an index.

    On PostgreSQL the index has all rows that may have such events.
    """
    condition = "stream.version > stream.projected"
    return f"stream.behind AND {condition}" if dialect == "postgresql" else condition


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
        self.head = f"SELECT version FROM stream WHERE {table} = ?"
        self.between = (
            f"SELECT {table} FROM stream WHERE {table} BETWEEN ? AND ? ORDER BY {table} LIMIT ?"
        )
        self.end = (
            "SELECT s.version, coalesce((SELECT max(e.version) FROM event e WHERE e.stream = s.id),"
            " 0), coalesce((SELECT CASE WHEN e.type = 'RoundOpened' THEN e.version ELSE 0 END"
            " FROM event e WHERE e.stream = s.id AND e.type IN ('RoundOpened', 'RoundClosed')"
            f" ORDER BY e.version DESC LIMIT 1), 0) FROM stream s WHERE s.{table} = ?"
        )
        self._dialect = dialect

    def of_types(self, count: int) -> str:
        """The SELECT of events of `count` types: table, after, upto, the types, limit."""
        marks = ", ".join("?" * count)
        of_types = f"AND type IN ({marks}) ORDER BY version LIMIT ?"
        return f"{self._events} AND version > ? AND version <= ? {of_types}"

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
