"""Presence across nodes: writes this node's connections for the others, and reads theirs.

Once a second, with the poll of the heads, a node writes the attendance of the tables where it
changed, in one transaction that no append waits for, and reads what the other nodes have written
of the tables that are followed here. A node that has connections renews its heartbeat; one whose
heartbeat stands still has died, and its connections do not count any more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.eventlog.presence import (
    NO_CONNECTION,
    Attendance,
    Heartbeat,
    attendance,
    forget,
    heartbeats,
    write,
)
from dealer.service.resident import Resident

BEAT_SECONDS = 2.0
"""How often a node that has connections renews its heartbeat."""

EXPIRY_SECONDS = 5.0
"""How long a heartbeat may stand still before the node counts as dead."""

FORGET_SECONDS = 60.0
"""After so long its rows are deleted; should it live on, it writes them again."""

LOOK_MAX_SECONDS = 1.5
"""The most that one look adds to a node's silence: a database that was away tells of no death."""

CLOSE_SECONDS = 1.0
NODE_BYTES = 8


@dataclass(slots=True)
class _Peer:
    """Another node: its heartbeat as it was read last, and the seconds since that moved."""

    at: int
    silent: float


class SharedPresence:
    """This node's part in the exchange; `changed` is called on the loop for each table where the
    connections at other nodes changed."""

    def __init__(self, log: Log) -> None:
        self.changed: Callable[[Resident], None] = lambda resident: None
        self._log = log
        self._node = secrets.token_bytes(NODE_BYTES)
        self._written: dict[bytes, Attendance] = {}
        self._pending: dict[bytes, Attendance] = {}
        self._elsewhere: dict[bytes, Attendance] = {}
        self._peers: dict[bytes, _Peer] = {}
        self._beat_at = 0.0
        self._looked_at = 0.0
        self._writing: asyncio.Task[None] | None = None

    def report(self, resident: Resident, here: Attendance) -> None:
        """Note who is connected to this node at a table; it is written with the next exchange."""
        if here != self._written.get(resident.id, NO_CONNECTION):
            self._pending[resident.id] = here
        else:
            self._pending.pop(resident.id, None)

    def elsewhere(self, resident: Resident) -> Attendance:
        """Who is connected at the other nodes, as far as this one has read it."""
        return self._elsewhere.get(resident.id, NO_CONNECTION)

    async def exchange(self, followed: Sequence[Resident]) -> None:
        """Write what is due, and read what other nodes say of the tables that are followed here.

        Raises DatabaseError where it cannot be read; what was read before holds meanwhile.
        """
        loop = asyncio.get_running_loop()
        beat_due = self._written and loop.time() - self._beat_at >= BEAT_SECONDS
        if (self._pending or beat_due) and (self._writing is None or self._writing.done()):
            self._writing = loop.create_task(self._write())
        if not followed:
            self._elsewhere.clear()
            return
        self._listen(await heartbeats(self._log), now=loop.time())
        alive = {node for node, peer in self._peers.items() if peer.silent < EXPIRY_SECONDS}
        found: dict[bytes, Attendance] = {}
        if alive:
            found = await attendance(self._log, [one.id for one in followed], nodes=alive)
        before, self._elsewhere = self._elsewhere, found
        for resident in followed:
            if found.get(resident.id) != before.get(resident.id):
                self.changed(resident)

    async def close(self) -> None:
        """Delete this node's rows, where the database takes that at once."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        if not (self._written or self._pending):
            return
        with suppress(DealerError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await forget(self._log, [self._node])

    def _listen(self, found: Sequence[Heartbeat], *, now: float) -> None:
        """Take in the other nodes' heartbeats.

        The database's clock judges a node that is met for the first time alone. After that it is
        alive as long as its heartbeat moves, so a clock that is set changes nothing.
        """
        passed = min(now - self._looked_at, LOOK_MAX_SECONDS)
        self._looked_at = now
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
        dead = [node for node, peer in self._peers.items() if peer.silent >= FORGET_SECONDS]
        try:
            if dead:
                await forget(self._log, dead)
            await write(self._log, self._node, changed, unchanged=dict(self._written))
        except DealerError:
            self._pending = changed | self._pending
            return
        self._beat_at = asyncio.get_running_loop().time()
        for table, there in changed.items():
            if there == NO_CONNECTION:
                self._written.pop(table, None)
            else:
                self._written[table] = there
