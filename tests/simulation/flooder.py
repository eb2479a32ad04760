"""A client that sends more than its address may, and connects again and again.

In the runs whose plan says so, addresses have rates. A debt belongs to the address: a node never
grants it more than a full bucket, and what has come into the bucket since, however often it
connects.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING, Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from dealer.client.connection import SUBPROTOCOL
from tests.simulation.loop import Domain
from tests.simulation.node import PORT, Node

if TYPE_CHECKING:
    from tests.simulation.world import World

RATES: dict[str, Any] = {"address_rate": 20.0, "address_burst": 40.0}
"""Limits of the nodes in such a run: messages a second, and at once. Players send fewer."""

AT_ONCE = 15
"""Messages of the flooder that are not answered yet."""


class Flooder:
    """Floods one node at a time, from the first table until the faults end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.domain = Domain("flooder")
        world.domains.append(self.domain)
        self._random = Random(f"flooder {world.plan.seed}")
        self._granted: dict[tuple[str, int], int] = {}
        self._since: dict[tuple[str, int], float] = {}

    def start(self) -> None:
        self.world.loop.create_task(self._run(), context=self.domain.context)

    async def _run(self) -> None:
        while not self.world.quiet:
            node = self._random.choice(self.world.nodes)
            try:
                async with asyncio.timeout(4.0):
                    await self._flood(node, messages=self._random.randrange(1, 60))
            except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake):
                self.world.seen("flooder refused or cut")
            await asyncio.sleep(self._random.choice((0.0, 0.1, 1.0)))

    async def _flood(self, node: Node, *, messages: int) -> None:
        life = node.name, node.starts
        self._since.setdefault(life, self.world.loop.now)
        async with connect(
            "ws://house/ws",
            host=node.name,
            port=PORT,
            subprotocols=[SUBPROTOCOL],
            compression=None,
            ping_interval=None,
            close_timeout=1.0,
            proxy=None,
        ) as socket:
            self._was_granted(node, life)
            for first in range(0, messages, AT_ONCE):
                ids = range(first, min(first + AT_ONCE, messages))
                for number in ids:
                    ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
                    await socket.send(json.dumps(ping))
                for _ in ids:
                    if "result" in json.loads(await socket.recv()):
                        self._was_granted(node, life)

    def _was_granted(self, node: Node, life: tuple[str, int]) -> None:
        """Count a handshake or a message; `life` is the node from one start to the next."""
        if node.starts != life[1]:
            return
        self.world.seen("flooder granted")
        granted = self._granted[life] = self._granted.get(life, 0) + 1
        seconds = self.world.loop.now - self._since[life]
        if granted > RATES["address_burst"] + RATES["address_rate"] * seconds + 1:
            self.world.fault(f"{node.name} granted {granted} messages in {seconds:.2f} s")
