"""A TCP load balancer for several nodes: connections go to the next node that accepts them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.harness.relay import Relay, pass_on


class LoadBalancer(Relay):
    """Relays to one of `ports()` in turn; ports that refuse connections are skipped.

    `connections` counts relayed connections, `cut` those that the node, and not the client, ended.
    `spread` breaks every second connection of the busiest node.
    """

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        super().__init__()
        self.connections = 0
        self.cut = 0
        self._ports = ports
        self._turn = 0
        self._led: dict[asyncio.Task[None], int] = {}

    async def spread(self) -> None:
        """Break every second connection of a node that has most of them; the clients reconnect."""
        for port in set(self._led.values()):
            there = [pair for pair, to in self._led.items() if to == port]
            if len(there) > len(self._led) / 2 + 1:
                await self.break_off(there[::2])

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await self._lead()
        self.connections += 1
        asked = asyncio.create_task(pass_on(reader, back))
        answered = asyncio.create_task(pass_on(there, writer))
        try:
            await asyncio.wait((asked, answered), return_when=asyncio.FIRST_COMPLETED)
            self.cut += not asked.done()
        finally:
            await self.break_off((asked, answered))

    async def _lead(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ports = list(self._ports())
        for _ in ports:
            self._turn += 1
            port = ports[self._turn % len(ports)]
            try:
                pair = await self.reach(port)
            except OSError:
                continue
            task = asyncio.current_task()
            assert task is not None
            self._led[task] = port
            task.add_done_callback(self._led.pop)
            return pair
        raise ConnectionRefusedError("all houses are shut")
