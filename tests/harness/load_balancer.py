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
        self._node_ports: dict[asyncio.Task[None], int] = {}

    async def spread(self) -> None:
        """Break every second connection of a node that has most of them; the clients reconnect."""
        for port in set(self._node_ports.values()):
            connections = [pair for pair, target in self._node_ports.items() if target == port]
            if len(connections) > len(self._node_ports) / 2 + 1:
                await self.break_off(connections[::2])

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self._connect()
        self.connections += 1
        requests = asyncio.create_task(pass_on(reader, server_writer))
        answers = asyncio.create_task(pass_on(server_reader, writer))
        try:
            await asyncio.wait((requests, answers), return_when=asyncio.FIRST_COMPLETED)
            self.cut += not requests.done()
        finally:
            await self.break_off((requests, answers))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
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
            self._node_ports[task] = port
            task.add_done_callback(self._node_ports.pop)
            return pair
        raise ConnectionRefusedError("no node accepts connections")
