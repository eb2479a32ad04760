"""Several nodes on one PostgreSQL server behind one load balancer; any of them can be killed."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.harness.cluster import Cluster, own_cluster
from tests.harness.load_balancer import LoadBalancer
from tests.harness.postgres import OwnServer, own_server
from tests.harness.server_process import PATIENT, ServerProcess

SOCKET = ".s.PGSQL.5432"

Route = Callable[[OwnServer, str], str]
"""Builds the database URL of a node from the server and the name of its database."""


class Node(ServerProcess):
    """`dealer serve` on a PostgreSQL database, with the house key of the other nodes."""

    def __init__(self, folder: Path, *, name: str, address: str, **options: Any) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.ops_port: int = free.getsockname()[1]
        shared = {"house-key": folder / "house.key", "ops-port": self.ops_port}
        super().__init__(folder, name=name, **(shared | options))
        self._address = address

    @property
    def address(self) -> str:
        return self._address

    async def is_ready(self) -> bool:
        """Whether `/readyz` answers 200."""
        return await asyncio.to_thread(self._ready)

    def _ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.ops_port}/readyz", timeout=PATIENT) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


class Nodes:
    """`count` nodes on a server that survives a crash; has the interface of ServerProcess.

    `port` is the load balancer's. `kill` kills one node at a time: the one that is starting, else a
    random one; `open` starts it again. `route` builds the database URL of the nodes, `program` is
    what Python runs instead of `dealer`, and `environment` has its additional variables. With
    `workers` the server is a cluster, of which the addresses name all servers, and first another
    worker for each node. `place` is a running server with the URL of a migrated
    database, instead of one of its own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        count: int = 2,
        seed: int = 0,
        route: Route | None = None,
        workers: int = 0,
        program: tuple[str, ...] = ("-m", "dealer"),
        environment: dict[str, str] | None = None,
        place: tuple[OwnServer, str] | None = None,
        **options: Any,
    ) -> None:
        self.nodes: list[Node] = []
        self.server: OwnServer
        self.balancer = LoadBalancer(self._ports)
        self.folder = folder
        self._count = count
        self._chance = random.Random(seed)
        self._route = route or (lambda server, database: server.url(database))
        self._workers = workers
        self._program = program
        self._environment = environment or {}
        self._place = place
        self._options = options
        self._database = ""
        self._down: Node | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Nodes:
        async with self._stack as stack:
            if self._place is None:
                made = (
                    own_cluster(workers=self._workers, safe=True)
                    if self._workers
                    else own_server(safe=True)
                )
                self.server = await asyncio.to_thread(stack.enter_context, made)
                self._database = await asyncio.to_thread(self.server.database)
                address = self._route(self.server, self._database)
            else:
                self.server, address = self._place
            for number in range(self._count):
                if self._workers and isinstance(self.server, Cluster):
                    address = self.server.url_by_worker(self._database, number)
                node = Node(self.folder, name=f"node{number}", address=address, **self._options)
                node.program, node.environment = self._program, self._environment
                self.nodes.append(node)
                stack.push_async_callback(node.close)
            await asyncio.gather(*(node.open() for node in self.nodes))
            await stack.enter_async_context(self.balancer)
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
        return self.balancer.port

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def address(self) -> str:
        """The database's URL, without the `route`."""
        return self._place[1] if self._place else self.server.url(self._database)

    async def ask(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement, on a connection of its own."""
        return await asyncio.to_thread(self.server.ask, self._database, sql, *parameters)

    # Failure of one node

    async def kill(self) -> None:
        """Send SIGKILL to the node that is starting, else to a random one."""
        if self._down is None:
            self._down = self._chance.choice(self.nodes)
        await self._down.kill()

    async def start(self) -> None:
        """Start the node that was killed, without waiting."""
        assert self._down is not None
        await self._down.start()

    async def open(self) -> None:
        """Start the node that was killed; when it is ready, half of the clients move to it."""
        await self.start()
        assert self._down is not None
        await self._down.ready()
        self._down = None
        await self.balancer.spread()

    # Failure of the database server

    async def stop_server(self) -> None:
        """Break every connection and write nothing more, like SIGKILL."""
        await asyncio.to_thread(self.server.stop, "immediate")

    async def start_server(self) -> None:
        """Recover from the write-ahead log; returns when the server accepts connections."""
        await asyncio.to_thread(self.server.start)

    async def all_ready(self) -> None:
        async with asyncio.timeout(PATIENT):
            for node in self.nodes:
                while not await node.is_ready():  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.02)

    async def all_unready(self) -> int:
        """Wait until each node reports that it is not ready; the number of nodes."""
        async with asyncio.timeout(PATIENT):
            for node in self.nodes:
                while await node.is_ready():  # noqa: ASYNC110  another process
                    await asyncio.sleep(0.02)
        return len(self.nodes)

    # Failure of one worker of a cluster

    async def kill_worker(self) -> str:
        """Kill a random worker, like SIGKILL; its folder, by which the nodes name it."""
        assert isinstance(self.server, Cluster)
        worker = self._chance.choice(self.server.workers)
        await asyncio.to_thread(worker.stop, "immediate")
        return str(worker.folder)

    async def start_workers(self) -> None:
        """Start the worker that was killed."""
        assert isinstance(self.server, Cluster)
        for worker in self.server.workers:
            if not worker.runs:
                await asyncio.to_thread(worker.start)

    async def readyz(self) -> list[str]:
        """What `/readyz` of each node answers."""
        ports = [node.ops_port for node in self.nodes]
        return [await asyncio.to_thread(self._text, port) for port in ports]

    @staticmethod
    def _text(port: int) -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENT) as answer:
                return str(answer.read().decode())
        except HTTPError as error:
            return error.read().decode()

    # Public data

    async def fetch(self, path: str) -> bytes:
        """The body of a GET of the first node."""
        return await self.nodes[0].fetch(path)

    async def bundle(self, table: str) -> bytes:
        return await self.nodes[0].bundle(table)


@asynccontextmanager
async def open_server(
    folder: Path, *, nodes: int, seed: int, **options: Any
) -> AsyncIterator[ServerProcess | Nodes]:
    """One server on an SQLite file, or several `nodes` on PostgreSQL."""
    if nodes == 1:
        async with ServerProcess(folder, **options) as server:
            yield server
    else:
        async with Nodes(folder, count=nodes, seed=seed, **options) as several:
            yield several
