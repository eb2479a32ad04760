"""A game on two nodes whose database connections are cut in the middle of an append.

    python tests/chaos/commits.py 200

Either only some bytes of an append reach the server, or all of them and the node does not get the
answer, or it gets only some bytes of it. What the client is then answered must be true.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos import game_under_faults
from tests.harness.nodes import SOCKET, Nodes, Route
from tests.harness.postgres import OwnServer
from tests.harness.relay import CHUNK, Relay, pass_on
from tests.harness.script import run

_INSERTS = re.compile(rb"(__asyncpg_stmt_\w+)\0[^\0]*INSERT INTO event\b")
"""The name of a prepared statement, before its text."""

OFTEN = 0.25
"""Share of the appends that are cut."""


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the game, and the three kinds of cuts."""

    cuts: int = 0
    in_the_request: int = 0
    before_the_answer: int = 0
    in_the_answer: int = 0


class Cutter(Relay):
    """Relays to the server's socket at `to`, and cuts appends until it is `reliable`."""

    def __init__(self, *, chance: random.Random, figures: Figures) -> None:
        super().__init__()
        self.to = Path()
        self.reliable = True
        self._chance = chance
        self._figures = figures

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server, to_server = await self.reach_file(str(self.to))
        back = asyncio.create_task(self._pass_back(server, writer))
        appends: set[bytes] = set()
        try:
            while data := await reader.read(CHUNK):
                if self._is_append(data, appends) and self._chance.random() < OFTEN:
                    await self.break_off((back,))
                    await self._cut(data, server, to_server, writer)
                    return
                to_server.write(data)
                await to_server.drain()
        finally:
            await self.break_off((back,))

    def _is_append(self, data: bytes, names: set[bytes]) -> bool:
        """Whether a connection sends events: by COPY, or by a prepared statement that inserts them.

        `names` are those of the connection's statements, between the zero bytes that end them.
        """
        names |= {b"\0%b\0" % name for name in _INSERTS.findall(data)}
        sends = b"COPY " in data or any(name in data for name in names)
        return not self.reliable and sends

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
    """Play until this many appends were cut; `seed` determines which, and where."""
    figures, chance = Figures(), random.Random(seed)
    cutter = Cutter(chance=chance, figures=figures)
    await cutter.listen()

    async def inject_faults(playing: asyncio.Task[None]) -> None:
        cutter.reliable = False
        while figures.cuts < cuts and not await game_under_faults.ended_within(playing, 0.02):
            pass
        cutter.reliable = True

    try:
        async with Nodes(folder, seed=seed, busy=2, route=cutter_way(cutter)) as server:
            game = game_under_faults.Figures()
            await game_under_faults.play_through(server, folder, inject_faults, game)
            figures.add(game)
    finally:
        await cutter.shut()
    return figures


def cutter_way(cutter: Cutter) -> Route:
    """Every node connects to the server through the cutter."""

    def route(server: OwnServer, database: str) -> str:
        cutter.to = server.folder / SOCKET
        return f"postgresql://dealer@127.0.0.1:{cutter.port}/{database}"

    return route


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_cut, count="cuts", default=200))
