"""One door to several houses: whoever comes is led to the next one that is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.relay import Relay, pass_on


class Switch(Relay):
    """Leads to one of `ports()`, each in its turn, past those that are shut.

    `connections` counts those that were led somewhere, `cut` those of them that the house, and
    not the guest, broke or ended. `spread` breaks every other one itself.
    """

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        super().__init__()
        self.connections = 0
        self.cut = 0
        self._ports = ports
        self._turn = 0
        self._led: dict[asyncio.Task[None], int] = {}

    async def spread(self) -> None:
        """Have every other guest of the fullest house come again, to whoever is next."""
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
