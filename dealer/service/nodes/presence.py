"""Shared presence: exchanges between nodes who is connected to each table.

Once a second, with the poll of the heads, a node writes the attendance of the tables where it
changed, in one transaction that no append waits for, and reads the attendance at the other nodes of
the tables with subscribers here. A node with connections renews its heartbeat; a node whose
heartbeat stops is considered dead, and its connections no longer count.

The same rows show at which tables no other node has a connection: appends there need no hint.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dealer.errors import DealerError
from dealer.eventlog import Log, nodes
from dealer.service.tables.live_table import LiveTable

BEAT_SECONDS = 2.0
"""Seconds between heartbeats of a node that has connections."""

EXPIRY_SECONDS = 5.0
"""Seconds without a heartbeat after which a node counts as dead."""

FORGET_SECONDS = 60.0
"""Seconds after which its rows are deleted; if it is alive after all, it writes them again."""

POLL_MAX_SECONDS = 1.5
"""The most that one poll adds to a node's silence: after an outage of the database no node has
sent a heartbeat."""

HINTED_SECONDS = 5.0
"""Seconds that another node's hint counts as a connection there, until its row can be read."""

CLOSE_SECONDS = 1.0
NODE_BYTES = 8


@dataclass(slots=True)
class _Peer:
    """Another node: its heartbeat when last read, and the seconds since it changed."""

    at: int
    silent: float


class SharedPresence:
    """This node's part in the exchange."""

    def __init__(self, log: Log) -> None:
        self._listeners: list[Callable[[LiveTable], None]] = []
        self._log = log
        self._node = secrets.token_bytes(NODE_BYTES)
        self._written: dict[bytes, nodes.Attendance] = {}
        self._pending: dict[bytes, nodes.Attendance | None] = {}
        self._unsure: set[bytes] = set()  # the tables whose rows are being written, or may be
        self._elsewhere: dict[bytes, nodes.Attendance] = {}
        self._read: set[bytes] = set()  # the tables whose rows were read last
        self._hinted: dict[bytes, float] = {}  # until when
        self._peers: dict[bytes, _Peer] = {}
        self._beat_at = 0.0
        self._polled_at = 0.0
        self._writing: asyncio.Task[None] | None = None

    def on_change(self, listener: Callable[[LiveTable], None]) -> None:
        """Register a listener for tables whose connections at other nodes changed."""
        self._listeners.append(listener)

    def report(self, live_table: LiveTable, here: nodes.Attendance | None) -> None:
        """Note the connections to this node at a table, None if there are none.

        The next exchange writes them.
        """
        if here != self._written.get(live_table.id) or live_table.id in self._unsure:
            self._pending[live_table.id] = here
        else:
            self._pending.pop(live_table.id, None)

    def elsewhere(self, live_table: LiveTable) -> nodes.Attendance:
        """The connections at the other nodes, as last read."""
        return self._elsewhere.get(live_table.id, nodes.NO_CONNECTION)

    def on_hint(self, tables: set[bytes]) -> None:
        """Another node has connections at these tables, or appended to them."""
        until = asyncio.get_running_loop().time() + HINTED_SECONDS
        self._hinted |= dict.fromkeys(tables, until)

    def known(self, live_table: LiveTable) -> bool:
        """Whether the connections at the other nodes were read; not before the first exchange."""
        return live_table.id in self._read

    def alone(self, table: bytes) -> bool:
        """Whether no other node had a connection at this table when that was last read.

        False of a table without subscribers here, as nothing is read of it.
        """
        return table in self._read and table not in self._elsewhere and table not in self._hinted

    async def exchange(self, followed: Sequence[LiveTable]) -> None:
        """Write what is due, and read the other nodes' attendance of the `followed` tables.

        Raises DatabaseError if it cannot be read; the previous values stay.
        """
        loop = asyncio.get_running_loop()
        beat_due = self._written and loop.time() - self._beat_at >= BEAT_SECONDS
        if (self._pending or beat_due) and (self._writing is None or self._writing.done()):
            self._writing = loop.create_task(self._write())
        self._hinted = {
            table_id: end for table_id, end in self._hinted.items() if end > loop.time()
        }
        if not followed:
            self._elsewhere.clear()
            self._read.clear()
            return
        self._update_peers(await nodes.heartbeats(self._log), now=loop.time())
        alive = {node for node, peer in self._peers.items() if peer.silent < EXPIRY_SECONDS}
        found: dict[bytes, nodes.Attendance] = {}
        if alive:
            found = await nodes.attendance(
                self._log, [live_table.id for live_table in followed], nodes=alive
            )
        before, self._elsewhere = self._elsewhere, found
        self._read = {live_table.id for live_table in followed}
        for live_table in followed:
            if found.get(live_table.id) != before.get(live_table.id):
                for listener in self._listeners:
                    listener(live_table)

    async def close(self) -> None:
        """Delete this node's rows, if the database does that within a second."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        if not (self._written or self._pending or self._unsure):
            return
        with suppress(DealerError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await nodes.forget(self._log, [self._node])

    def _update_peers(self, found: Sequence[nodes.Heartbeat], *, now: float) -> None:
        """Update the other nodes' states from their heartbeats.

        The age by the database's clock counts only when a node is seen for the first time. After
        that it is alive as long as its heartbeat changes, so stepping a clock has no effect.
        """
        passed = min(now - self._polled_at, POLL_MAX_SECONDS)
        self._polled_at = now
        peers: dict[bytes, _Peer] = {}
        for node, at, age in found:
            if node == self._node:
                continue
            known = self._peers.get(node)
            if known is None:
                recent = 0 <= age < EXPIRY_SECONDS * 1000
                peers[node] = _Peer(at, 0.0 if recent else EXPIRY_SECONDS)
            elif known.at != at:
                peers[node] = _Peer(at, 0.0)
            else:
                peers[node] = _Peer(at, known.silent + passed)
        self._peers = peers

    async def _write(self) -> None:
        changed, self._pending = self._pending, {}
        self._unsure.update(changed)
        dead = [node for node, peer in self._peers.items() if peer.silent >= FORGET_SECONDS]
        try:
            if dead:
                await nodes.forget(self._log, dead)
            await nodes.write(self._log, self._node, changed, unchanged=dict(self._written))
        except BaseException as error:  # `close` cancels it
            self._pending = changed | self._pending
            if not isinstance(error, DealerError):
                raise
            return
        self._beat_at = asyncio.get_running_loop().time()
        self._unsure.difference_update(changed)
        for table, there in changed.items():
            if there is None:
                self._written.pop(table, None)
            else:
                self._written[table] = there
