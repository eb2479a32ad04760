"""Health of the database: whether it can be written, how far the read models lag, and which tables
this process has found not to be what the house wrote.

A check of a healthy database writes nothing, and its cost does not depend on what is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dealer.errors import DatabaseDamaged
from dealer.eventlog.log import Log
from dealer.eventlog.protocols import Connection
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import lagging

LAGGING_MAX = 1000
"""Tables with events that are not projected, of which at most so many are counted."""

# Takes the locks of a write and writes no row. In SQLite BEGIN IMMEDIATE alone succeeds on a file
# that is read-only; a PostgreSQL server that is a standby refuses the statement.
_LOCK = "INSERT INTO house (name, value) SELECT name, value FROM house WHERE 1 = 0"

_PROBE_NODE = b"\0" * 8
_WRITE = "INSERT INTO node (id, at) VALUES (?, 0)"
_DELETE = "DELETE FROM node WHERE id = ?"

_LAG = f"""
SELECT coalesce(sum(events), 0), count(*)
FROM (SELECT version - projected AS events FROM stream WHERE {{}}
      LIMIT {LAGGING_MAX}) AS lagging
"""


class ProjectorLag(NamedTuple):
    """Events that are not in the read models yet, and the tables that have such events."""

    events: int
    tables: int


async def require_write_lock(log: Log) -> None:
    """Raise DatabaseError unless a transaction can begin to write; nothing is written.

    A full disk is not found in this way.
    """
    await log.run_in_transaction(lambda connection: connection.exec_driver_sql(_LOCK))


async def require_write(log: Log) -> None:
    """Raise DatabaseError unless a row can be written durably; none of it remains."""
    await log.run_in_transaction(_write)


async def projector_lag(log: ReadOnlyLog) -> ProjectorLag:
    """The lag of the read models, of at most LAGGING_MAX tables; raises DatabaseError."""
    ((events, tables),) = await log.fetch(_LAG.format(lagging(log.dialect)))
    return ProjectorLag(int(events), int(tables))


def _write(connection: Connection) -> None:
    # In a table whose rows a node may delete; a node id of zeros is never drawn.
    connection.exec_driver_sql(_WRITE, (_PROBE_NODE,))
    connection.exec_driver_sql(_DELETE, (_PROBE_NODE,))


SHOWN = 10
"""Tables that `/readyz` names for one reason."""

log = logging.getLogger(__name__)


class _Damage(NamedTuple):
    """What is wrong with a table; `version` is the last that is missing or altered, if known."""

    sentence: str
    version: int


class DamagedTables:
    """The tables, by their ids in hex, that were damaged when they were last read.

    Every other table plays on, so the server stays ready, and `/readyz` names these.
    """

    def __init__(self) -> None:
        self._tables: dict[str, _Damage] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def __contains__(self, table_id: str) -> bool:
        return table_id in self._tables

    @contextmanager
    def noticed(self, table_id: str) -> Iterator[None]:
        """Note the table if the block, which reads it, raises DatabaseDamaged.

        The error is `logged`, so that no request that meets the damage has another line.
        """
        try:
            yield
        except DatabaseDamaged as error:
            self.note(table_id, str(error))
            error.logged = True
            raise

    def note(self, table_id: str, sentence: str, *, version: int = 0) -> None:
        """The table is damaged, as the sentence says; the first time has a line in the log.

        `version` is the last of the versions that are missing or altered, 0 if it is not known.
        """
        if table_id not in self._tables:
            log.error("table damaged", extra={"fields": {"table": table_id, "says": sentence}})
        self._tables[table_id] = _Damage(sentence, version)

    def intact(self, table_id: str, *, version: int) -> None:
        """The table was loaded, and its rows are what the house wrote: it was repaired.

        Unless a version past the loaded `version` is missing: of that a load says nothing.
        """
        known = self._tables.get(table_id)
        if known is not None and known.version <= version:
            del self._tables[table_id]
            log.info("table repaired", extra={"fields": {"table": table_id}})

    def lines(self) -> list[str]:
        """A line about each of the first `SHOWN` tables, and one that counts the rest."""
        found = (f"damaged table {id}: {one.sentence}" for id, one in self._tables.items())
        return first_lines(found, "more tables are damaged")


def first_lines(lines: Iterable[str], rest: str) -> list[str]:
    """The first `SHOWN` lines, and one that counts the others and ends with `rest`."""
    found = list(lines)
    more = len(found) - SHOWN
    return [*found[:SHOWN], f"{more} {rest}"] if more > 0 else found
