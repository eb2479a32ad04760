"""Health of the database: whether it can be written, and how far the read models lag.

A check of a healthy database writes nothing, and its cost does not depend on what is stored.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from dealer.eventlog.log import Log
from dealer.eventlog.queries import lagging
from dealer.eventlog.read_only_log import ReadOnlyLog

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
    await log.run_in_transaction(_lock)


async def require_write(log: Log) -> None:
    """Raise DatabaseError unless a row can be written durably; none of it remains."""
    await log.run_in_transaction(_write)


async def projector_lag(log: ReadOnlyLog) -> ProjectorLag:
    """The lag of the read models, of at most LAGGING_MAX tables; raises DatabaseError."""
    ((events, tables),) = await log.fetch(_LAG.format(lagging(log.dialect)))
    return ProjectorLag(int(events), int(tables))


def _lock(connection: Connection) -> None:
    connection.exec_driver_sql(_LOCK)


def _write(connection: Connection) -> None:
    # In a table whose rows a node may delete; a node id of zeros is never drawn.
    connection.exec_driver_sql(_WRITE, (_PROBE_NODE,))
    connection.exec_driver_sql(_DELETE, (_PROBE_NODE,))
