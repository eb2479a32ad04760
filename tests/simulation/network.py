"""An in-memory network: byte streams between the event loop's protocols, below websockets.

Each connection has a random sequence of its own, so that what is sent on one connection does not
change the delays of another. A stream keeps its order; its bytes arrive late, and in other pieces
than they were written in. Faults are: a *cut* (both ends get a reset, and what was under way is
lost), a *half-open* connection (one end gets a reset, the other hears nothing more), a *blocked*
path (what is sent arrives when the path is open again), and a refused or unanswered connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random
from socket import AF_INET
from typing import Any

from tests.simulation.loop import DOMAIN, Domain, SimulatedLoop
from tests.simulation.transport import Link, Transport


class Network:
    """All listening sockets and connections of one run.

    `resolve` names the address to which a client's connection goes.
    """

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        self.seed = seed
        self.listening: dict[tuple[str, int], ListeningSocket] = {}
        self.links: list[Link] = []
        self.blocked: dict[tuple[str, str], float] = {}
        self.resolve: Callable[[str, str, Random], str | None] = lambda host, name, random: host
        self.slow = 1.0
        self._count = 0

    def live_links(self) -> list[Link]:
        self.links = [link for link in self.links if not link.over]
        return self.links

    def block(self, one: str, other: str, seconds: float) -> None:
        """Block the path between two machines: what is sent arrives at the end of the time."""
        until = self.loop.now + seconds
        self.blocked[one, other] = max(until, self.blocked.get((one, other), 0.0))
        self.blocked[other, one] = self.blocked[one, other]

    def open_paths(self) -> None:
        """End all blocks; what waits arrives at the time that was set."""
        self.blocked.clear()

    def blocked_until(self, one: str, other: str) -> float:
        return self.blocked.get((one, other), 0.0)

    def machine_died(self, domain: Domain, *, silently: bool) -> None:
        """The peers get a reset, unless the machine lost its power."""
        for key, socket in list(self.listening.items()):
            if socket.domain is domain:
                del self.listening[key]
                socket.refuse_waiting()
        for link in self.live_links():
            for end in link.ends:
                if end.domain is domain:
                    end.dead = True
                    if not silently:
                        end.other.reset_soon()

    def machine_started(self, name: str) -> None:
        """A machine that is up again answers packets of earlier connections with a reset."""
        for link in self.live_links():
            for end in link.ends:
                if end.dead and end.name == name:
                    end.other.reset_soon()

    async def connect(
        self, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Transport, Any]:
        loop = self.loop
        domain = DOMAIN.get()
        name = "" if domain is None else domain.name
        self._count += 1
        random = Random(f"{self.seed} {name} {self._count}")
        target = self.resolve(host, name, random)
        await asyncio.sleep(random.uniform(0.0002, 0.02) * self.slow)
        socket = self.listening.get((target or "", port))
        if target is not None and loop.now < self.blocked_until(name, target):
            await asyncio.sleep(30.0)
            raise TimeoutError("timed out")
        if socket is None or socket.domain.dead:
            raise ConnectionRefusedError(111, "Connection refused")
        link = Link(self, random, name, socket.domain.name)
        protocol = factory()
        client, server = link.ends
        client.domain, server.domain = domain, socket.domain
        client.context = copy_context()
        self.links.append(link)
        socket.arrived(AcceptedSocket(server, socket))
        client.begin(protocol)
        return client, protocol


class ListeningSocket:
    """What `Listener` uses of a listening socket."""

    family = AF_INET

    def __init__(self, network: Network, domain: Domain, host: str, port: int) -> None:
        self.network = network
        self.domain = domain
        self.host = host
        self.port = port
        self._waiting: deque[AcceptedSocket] = deque()
        self._callback: Callable[[], Any] | None = None
        self._context: Context | None = None
        network.listening[host, port] = self

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port

    def on_arrival(
        self, callback: Callable[..., Any] | None, args: tuple[Any, ...], context: Context | None
    ) -> None:
        self._callback = None if callback is None else lambda: callback(*args)
        self._context = context
        if self._waiting:
            self._call()

    def arrived(self, socket: AcceptedSocket) -> None:
        self._waiting.append(socket)
        self._call()

    def _call(self) -> None:
        if self._callback is not None and self._waiting:
            self.network.loop.call_soon(self._callback, context=self._context)

    def accept(self) -> tuple[AcceptedSocket, tuple[str, int]]:
        if not self._waiting:
            raise BlockingIOError
        socket = self._waiting.popleft()
        return socket, socket.address

    def refuse_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().close()

    def close(self) -> None:
        self.network.listening.pop((self.host, self.port), None)
        self.refuse_waiting()


class AcceptedSocket:
    """The server's end of a connection before it has a transport."""

    def __init__(self, end: Transport, listening: ListeningSocket) -> None:
        self._end = end
        self.address = (end.other.peer_address, 40_000)

    def setblocking(self, flag: bool) -> None:
        pass

    def setsockopt(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        self._end.other.reset_soon()

    def accept_into(self, protocol: Any) -> tuple[Transport, Any]:
        self._end.context = copy_context()
        self._end.begin(protocol)
        return self._end, protocol
