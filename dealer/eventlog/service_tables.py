"""Rows of `service_table`: which key opened a game table, and under which id of its own.

A row is committed before the first event of its table, and never changes. After a crash between the
two there is a row without a table; the same `ref` then opens the table of that row.
"""

from __future__ import annotations

from sqlalchemy import Connection

from dealer.eventlog.read_only_log import ReadOnlyLog

_OWNER = "SELECT key FROM service_table WHERE table_id = ?"
_BY_REF = "SELECT table_id FROM service_table WHERE key = ? AND ref = ?"
_ADD = "INSERT INTO service_table (table_id, key, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


async def owner_of(log: ReadOnlyLog, table: bytes) -> int | None:
    """The id of the key that opened a table, None for a table of players; raises DatabaseError."""
    rows = await log.fetch(_OWNER, (table,))
    return rows[0][0] if rows else None


async def table_of_ref(log: ReadOnlyLog, key: int, ref: str) -> bytes | None:
    """The id of the table that a key has claimed under `ref`, if any; raises DatabaseError."""
    rows = await log.fetch(_BY_REF, (key, ref))
    return bytes(rows[0][0]) if rows else None


def claim(connection: Connection, table: bytes, *, key: int, ref: str | None) -> bytes:
    """Claim the id `table` for a key; with a `ref` that has a table already, returns that one's id.

    Of two nodes that claim the same `ref` at the same time, both get the id of the first.
    """
    connection.exec_driver_sql(_ADD, (table, key, ref))
    if ref is None:
        return table
    found: bytes = connection.exec_driver_sql(_BY_REF, (key, ref)).scalar_one()
    return bytes(found)
