"""Several houses over one PostgreSQL server, behind one door; any of them may die, and it, too."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tests.postgres import OwnServer, own_server
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.switch import Switch

SOCKET = ".s.PGSQL.5432"

Way = Callable[[OwnServer, str], str]
"""From a server and the name of its database to the address that a node is given."""


class Node(HouseProcess):
    """`dealer serve` on a server's database, with the key of the others."""

    def __init__(self, folder: Path, *, name: str, address: str, **options: object) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.ops_port: int = free.getsockname()[1]
        shared = {"house-key": folder / "house.key", "ops-port": self.ops_port}
        super().__init__(folder, name=name, **(shared | options))
        self._address = address

    @property
    def address(self) -> str:
        return self._address

    async def is_ready(self) -> bool:
        """What `/readyz` says; a node that does not answer is not ready."""
        return await asyncio.to_thread(self._ready)

    def _ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.ops_port}/readyz", timeout=PATIENT) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


class Nodes:
    """`count` nodes over a server that survives a crash; to be used where a HouseProcess is.

    `port` leads to any of them. `kill` is for one at a time: the one that starts, else any, and
    `open` brings it back. `way` is by which address the nodes come to the server, and `program`
    what Python runs in their place.
    """

    def __init__(
        self,
        folder: Path,
        *,
        count: int = 2,
        seed: int = 0,
        way: Way | None = None,
        program: tuple[str, ...] = ("-m", "dealer.cli"),
        **options: object,
    ) -> None:
        self.nodes: list[Node] = []
        self.server: OwnServer
        self.switch = Switch(self._ports)
        self._folder = folder
        self._count = count
        self._chance = random.Random(seed)
        self._way = way or (lambda server, database: server.url(database))
        self._program = program
        self._options = options
        self._database = ""
        self._down: Node | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Nodes:
        async with self._stack as stack:
            self.server = await asyncio.to_thread(stack.enter_context, own_server(safe=True))
            self._database = await asyncio.to_thread(self.server.database)
            address = self._way(self.server, self._database)
            for number in range(self._count):
                node = Node(self._folder, name=f"node{number}", address=address, **self._options)
                node.program = self._program
                self.nodes.append(node)
                stack.push_async_callback(node.close)
            await asyncio.gather(*(node.open() for node in self.nodes))
            await stack.enter_async_context(self.switch)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def _ports(self) -> list[int]:
        return [node.port for node in self.nodes]

    @property
    def port(self) -> int:
        return self.switch.port

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def address(self) -> str:
        """The database's, without any detour."""
        return self.server.url(self._database)

    async def ask(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement, from outside of any node."""
        return await asyncio.to_thread(self.server.ask, self._database, sql, *parameters)

    # One node's death

    async def kill(self) -> None:
        """SIGKILL for the node that is on its way up, else for any."""
        if self._down is None:
            self._down = self._chance.choice(self.nodes)
        await self._down.kill()

    async def start(self) -> None:
        """Start the node that was killed, and wait for nothing."""
        assert self._down is not None
        await self._down.start()

    async def open(self) -> None:
        """Start the node that was killed; when it is there, half of the guests come to it."""
        await self.start()
        assert self._down is not None
        await self._down.ready()
        self._down = None
        await self.switch.spread()

    # The server's death

    async def stop_server(self) -> None:
        """Every connection breaks, nothing is written any more, as if it was killed."""
        await asyncio.to_thread(self.server.stop, "immediate")

    async def start_server(self) -> None:
        """It recovers from its log; when this returns it takes connections."""
        await asyncio.to_thread(self.server.start)

    async def all_ready(self) -> None:
        async with asyncio.timeout(PATIENT):
            for node in self.nodes:
                while not await node.is_ready():  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.02)

    # In the end

    async def fetch(self, path: str) -> bytes:
        """What a browser gets at a path of the first node."""
        return await self.nodes[0].fetch(path)

    async def bundle(self, table: str) -> bytes:
        return await self.nodes[0].bundle(table)


@asynccontextmanager
async def house_of(
    folder: Path, *, nodes: int, seed: int, **options: object
) -> AsyncIterator[HouseProcess | Nodes]:
    """One house over a file, or several `nodes` over a server."""
    if nodes == 1:
        async with HouseProcess(folder, **options) as house:
            yield house
    else:
        async with Nodes(folder, count=nodes, seed=seed, **options) as several:
            yield several
