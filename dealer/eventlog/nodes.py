"""SQL tables `node` and `presence`: the players connected to each node; not part of the log.

A node that has connections at tables keeps a row in `node`, whose `at` it renews as a heartbeat,
and for each such table a row in `presence`, even if its connections are neither seats nor
spectators. Another node reads the rows of nodes that are alive. These writes run while no append is
queued, and are not fsynced.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from dealer.eventlog.log import Log
from dealer.eventlog.protocols import Connection
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import select_in

CLOCK = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
}
"""Milliseconds since 1970 by the database's own clock: the machine's, or the server's."""

_RENEW = "UPDATE node SET at = {} WHERE id = ?"
_ADD = "INSERT INTO node (id, at) VALUES (?, {})"
_PUT = (
    "INSERT INTO presence (table_id, node, seats, watching) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (table_id, node)"
    " DO UPDATE SET seats = excluded.seats, watching = excluded.watching"
)
_DROP = "DELETE FROM presence WHERE table_id = ? AND node = ?"
_FORGET = ("DELETE FROM presence WHERE node = ?", "DELETE FROM node WHERE id = ?")
_NODES = "SELECT id, at, {} - at FROM node"
_PRESENT = "SELECT table_id, node, seats, watching FROM presence"


class Attendance(NamedTuple):
    """The connections at a table: seats, each with the version of its SeatTaken, and spectators.

    Seat 0 at version 0 stands for the connections with the host token.
    """

    seats: frozenset[tuple[int, int]] = frozenset()
    watching: int = 0


NO_CONNECTION = Attendance()


class Heartbeat(NamedTuple):
    """A node's row: its id, the time of its last heartbeat, and its age, in milliseconds."""

    node: bytes
    at: int
    age: int


async def write(
    log: Log,
    node: bytes,
    changed: Mapping[bytes, Attendance | None],
    *,
    unchanged: Mapping[bytes, Attendance],
) -> None:
    """Renew a node's heartbeat and write the attendance of the `changed` tables.

    None stands for a table without connections. If another node has deleted this node's rows, after
    missed heartbeats, all are written again. Raises DatabaseError.
    """

    def work(connection: Connection) -> bool:
        execute = connection.exec_driver_sql
        clock = CLOCK[connection.dialect.name]
        written = changed
        if not execute(_RENEW.format(clock), (node,)).rowcount:
            execute(_ADD.format(clock), (node,))
            written = {**unchanged, **changed}
        rows = [
            (table, node, json.dumps(sorted(there.seats)), there.watching)
            for table, there in sorted(written.items(), key=itemgetter(0))
            if there is not None
        ]
        if rows:
            execute(_PUT, rows)
        left = [(table, node) for table, there in written.items() if there is None]
        if left:
            execute(_DROP, sorted(left))
        return False

    await log.run_when_idle(work)


async def forget(log: Log, nodes: Collection[bytes]) -> None:
    """Delete the rows of these nodes; raises DatabaseError."""

    def work(connection: Connection) -> bool:
        for node in sorted(nodes):
            for statement in _FORGET:
                connection.exec_driver_sql(statement, (node,))
        return False

    await log.run_when_idle(work)


async def heartbeats(log: ReadOnlyLog) -> list[Heartbeat]:
    """All nodes that have a row; raises DatabaseError."""
    clock = CLOCK[log.dialect]
    return [Heartbeat(*row) for row in await log.fetch(_NODES.format(clock))]


async def attendance(
    log: ReadOnlyLog, tables: Sequence[bytes], *, nodes: Collection[bytes]
) -> dict[bytes, Attendance]:
    """The connections to these nodes, by table; raises DatabaseError."""
    found: dict[bytes, Attendance] = {}
    for sql, parameters in select_in(log.dialect, _PRESENT, "table_id", tables):
        for table, node, seats, watching in await log.fetch(sql, parameters):
            if node in nodes:
                earlier = found.get(table, NO_CONNECTION)
                taken = frozenset((seat, since) for seat, since in json.loads(seats))
                found[table] = Attendance(earlier.seats | taken, earlier.watching + watching)
    return found
