"""A game at two nodes whose lines to the database are cut in the middle of what they write.

    python tests/whole/commits.py 200

Of an append only some bytes reach the server, or all of them and nobody waits for the answer, or
of the answer only some bytes come back. What a guest is told then has to be the truth.
"""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.postgres import OwnServer
from tests.relay import CHUNK, Relay, pass_on
from tests.whole import ordeal
from tests.whole.nodes import SOCKET, Nodes, Way
from tests.whole.script import run

OFTEN = 0.25
"""Of the appends so many are cut."""


@dataclass
class Figures(ordeal.Figures):
    """Beside what the game tells; the last three are the kinds of cuts."""

    cuts: int = 0
    in_the_request: int = 0
    before_the_answer: int = 0
    in_the_answer: int = 0


class Cutter(Relay):
    """Leads to the server's socket at `to`, and cuts appends until it is `mended`."""

    def __init__(self, *, chance: random.Random, figures: Figures) -> None:
        super().__init__()
        self.to = Path()
        self.mended = True
        self._chance = chance
        self._figures = figures

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server, to_server = await self.reach_file(str(self.to))
        back = asyncio.create_task(self._pass_back(server, writer))
        try:
            while data := await reader.read(CHUNK):
                if self._is_append(data) and self._chance.random() < OFTEN:
                    await self.break_off((back,))
                    await self._cut(data, server, to_server, writer)
                    return
                to_server.write(data)
                await to_server.drain()
        finally:
            await self.break_off((back,))

    def _is_append(self, data: bytes) -> bool:
        """Only who writes sends JSON: the public part of an event."""
        return not self.mended and b'{"' in data

    async def _cut(
        self,
        data: bytes,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        to_node: asyncio.StreamWriter,
    ) -> None:
        figures, kind = self._figures, self._chance.randrange(3)
        figures.cuts += 1
        if kind == 0:
            figures.in_the_request += 1
            to_server.write(data[: self._chance.randrange(len(data))])
            await to_server.drain()
            return
        to_server.write(data)
        await to_server.drain()
        if kind == 1:
            figures.before_the_answer += 1
            await asyncio.sleep(self._chance.choice((0.0, 0.001, 0.003)))
            return
        figures.in_the_answer += 1
        answer = await server.read(CHUNK)
        to_node.write(answer[: self._chance.randrange(max(len(answer), 1))])
        await to_node.drain()

    @staticmethod
    async def _pass_back(server: asyncio.StreamReader, to_node: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await pass_on(server, to_node)
            to_node.close()


async def play_while_cut(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Play until so many appends were cut; `seed` sets which, and where."""
    figures, chance = Figures(), random.Random(seed)
    cutter = Cutter(chance=chance, figures=figures)
    await cutter.listen()

    async def trouble(playing: asyncio.Task[None]) -> None:
        cutter.mended = False
        while figures.cuts < cuts and not await ordeal.over(playing, 0.02):
            pass
        cutter.mended = True

    try:
        async with Nodes(folder, seed=seed, busy=2, way=cutter_way(cutter)) as house:
            game = ordeal.Figures()
            await ordeal.play_through(house, folder, trouble, game)
            figures.add(game)
    finally:
        await cutter.shut()
    return figures


def cutter_way(cutter: Cutter) -> Way:
    """Every node comes to the server through the cutter."""

    def way(server: OwnServer, database: str) -> str:
        cutter.to = server.folder / SOCKET
        return f"postgresql://dealer@127.0.0.1:{cutter.port}/{database}"

    return way


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_cut, count="cuts", default=200))
