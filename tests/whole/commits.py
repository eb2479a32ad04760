"""A game at two nodes whose lines to the database are cut in the middle of what they write.

    python tests/whole/commits.py 200

Of an append only some bytes reach the server, or all of them and nobody waits for the answer, or
of the answer only some bytes come back. What a guest is told then has to be the truth.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.postgres import OwnServer
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


class Cutter:
    """A port that leads to a server's socket, and cuts appends until it is `mended`."""

    def __init__(self, *, chance: random.Random, figures: Figures) -> None:
        self.to = Path()
        self.port = 0
        self.mended = True
        self._chance = chance
        self._figures = figures
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._arrived, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for line in list(self._lines):
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = asyncio.ensure_future(self._carry(reader, writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)
        await asyncio.gather(line, return_exceptions=True)

    async def _carry(self, node: asyncio.StreamReader, to_node: asyncio.StreamWriter) -> None:
        ends = [to_node]
        try:
            server, to_server = await asyncio.open_unix_connection(str(self.to))
            ends.append(to_server)
            back = asyncio.create_task(self._pass_back(server, to_node))
            try:
                while data := await node.read(65536):
                    if self._is_append(data) and self._chance.random() < OFTEN:
                        back.cancel()
                        await asyncio.gather(back, return_exceptions=True)
                        await self._cut(data, server, to_server, to_node)
                        return
                    to_server.write(data)
                    await to_server.drain()
            finally:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
        except OSError:
            return
        finally:
            for end in ends:
                end.transport.abort()

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
        answer = await server.read(65536)
        to_node.write(answer[: self._chance.randrange(max(len(answer), 1))])
        await to_node.drain()

    @staticmethod
    async def _pass_back(server: asyncio.StreamReader, to_node: asyncio.StreamWriter) -> None:
        try:
            while data := await server.read(65536):
                to_node.write(data)
                await to_node.drain()
        except OSError:
            return
        to_node.close()


async def play_while_cut(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Play until so many appends were cut; `seed` sets which, and where."""
    figures, chance = Figures(), random.Random(seed)
    cutter = Cutter(chance=chance, figures=figures)
    await cutter.open()

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
        await cutter.close()
    return figures


def cutter_way(cutter: Cutter) -> Way:
    """Every node comes to the server through the cutter."""

    def way(server: OwnServer, database: str) -> str:
        cutter.to = server.folder / SOCKET
        return f"postgresql://dealer@127.0.0.1:{cutter.port}/{database}"

    return way


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_cut, count="cuts", default=200))
