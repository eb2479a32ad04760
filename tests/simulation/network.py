"""An in-memory network: byte streams between the event loop's protocols, below websockets.

Each connection has a random sequence of its own, so that what is sent on one connection does not
change the delays of another. A stream keeps its order; its bytes arrive late, and in other pieces
than they were written in. Faults are: a *cut* (both ends are told, and what was under way is lost),
a *half-open* connection (one end is told, the other hears nothing more), a *blocked* path (what is
sent arrives when the path is open again), and a refused or unanswered connection.
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

HIGH = 64 * 1024


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
        """The peers are told, unless the machine lost its power."""
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


class Link:
    """One connection: two ends."""

    def __init__(self, network: Network, random: Random, client: str, server: str) -> None:
        self.network = network
        self.random = random
        self.names = (client, server)
        self.ends = (Transport(self, client), Transport(self, server))
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]
        self.base = random.choice((0.0003, 0.002, 0.01, 0.03))

    @property
    def over(self) -> bool:
        return all(end.lost or end.dead for end in self.ends)

    def delay(self) -> float:
        """Seconds on the way, without the order of the stream and blocks of the path."""
        random = self.random
        if random.random() < 0.02:
            return random.uniform(0.05, 0.5) * self.network.slow
        return self.base * (0.5 + random.random()) * self.network.slow

    def cut(self) -> None:
        """Reset the connection; what is under way is lost."""
        for end in self.ends:
            end.reset_soon(lose=True)

    def half_open(self, side: int) -> None:
        """Reset one end; the other hears nothing more, whatever it sends."""
        self.ends[side].reset_soon(lose=True)
        self.ends[1 - side].unheard = True
        self.ends[1 - side].incoming.clear()


class Transport(asyncio.Transport):
    """One end of a connection."""

    other: Transport

    def __init__(self, link: Link, name: str) -> None:
        super().__init__()
        self.link = link
        self.name = name
        self.domain: Domain | None = None
        self.context: Context = Context()
        self.protocol: Any = None
        self.peer_address = "10.0.0." + str(1 + sum(name.encode()) % 200)
        self.incoming: deque[tuple[float, bytes | None]] = deque()
        self.last = 0.0
        self.lost = False
        self.dead = False
        self.unheard = False  # what it sends is lost, and it hears nothing
        self._closing = False
        self._eof_sent = False
        self._reading = True
        self._timer_set = False
        self._unsent = 0
        self._full = False
        self._high = HIGH
        self._low = HIGH // 4

    def begin(self, protocol: Any) -> None:
        self.protocol = protocol
        if not self.lost:
            self.context.run(protocol.connection_made, self)
            self._arrange()

    # What the peer does

    def _deliver_to(self, data: bytes | None) -> None:
        """Put data, or the end of the stream, on the way to this end."""
        if self.other.unheard or self.dead:
            return  # never acknowledged, so the sender's buffer fills
        if self.lost:
            self.other.reset_soon()
            return
        link = self.link
        loop = link.network.loop
        due = max(self.last, loop.now + link.delay())
        due = max(due, link.network.blocked_until(*link.names) + link.base)
        self.last = due
        self.incoming.append((due, data))
        self._arrange()

    def _arrange(self) -> None:
        if self._timer_set or not self.incoming or not self._reading or self.protocol is None:
            return
        if self.lost or self.dead:
            return
        self._timer_set = True
        self.link.network.loop.call_at(self.incoming[0][0], self._arrive, context=self.context)

    def _arrive(self) -> None:
        self._timer_set = False
        if self.lost or self.unheard or not self._reading or not self.incoming:
            return
        random, now = self.link.random, self.link.network.loop.now
        parts: list[bytes] = []
        at_end = False
        while self.incoming and self.incoming[0][0] <= now:
            data = self.incoming.popleft()[1]
            if data is None:
                at_end = True
                break
            parts.append(data)
            if random.random() < 0.5:
                break
        data = b"".join(parts)
        if len(data) > 1 and random.random() < 0.05:
            cut = random.randrange(1, len(data))
            self.incoming.appendleft((now, data[cut:]))
            data, at_end = data[:cut], False
        if data:
            self.other._sent(len(data))
            if not self._closing:
                self.protocol.data_received(data)
        if at_end and not self.lost:
            if not self._closing and not self.protocol.eof_received():
                self.close()
            return
        self._arrange()

    def reset_soon(self, *, lose: bool = False) -> None:
        """This end learns of a reset; with `lose` nothing under way arrives before."""
        if self.lost:
            return
        if lose:
            self.incoming.clear()
        link = self.link
        due = max(link.network.loop.now + link.delay(), link.network.blocked_until(*link.names))
        link.network.loop.call_at(due, self._reset, context=self.context)

    def _reset(self) -> None:
        if self.protocol is None:
            self.lost = True
        else:
            self._lose(ConnectionResetError(104, "Connection reset by peer"))

    def _lose(self, error: Exception | None) -> None:
        if not self.lost:
            self.lost = self._closing = True
            self.incoming.clear()
            self.link.network.loop.call_soon(
                self.protocol.connection_lost, error, context=self.context
            )

    # Flow control of the sender

    def _sent(self, count: int) -> None:
        self._unsent -= count
        if self._full and self._unsent <= self._low:
            self._full = False
            if not self.lost and not self.dead:
                self.link.network.loop.call_soon(self._resume_protocol, context=self.context)

    def _resume_protocol(self) -> None:
        if not self.lost and not self._full:
            self.protocol.resume_writing()

    # asyncio.Transport

    def write(self, data: Any) -> None:
        if self._closing or self._eof_sent or self.lost or not data:
            return
        self._unsent += len(data)
        self.other._deliver_to(bytes(data))
        if self._unsent > self._high and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._eof_sent and not self._closing:
            self._eof_sent = True
            self.other._deliver_to(None)

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._eof_sent:
            self._eof_sent = True
            self.other._deliver_to(None)
        self._lose(None)

    def abort(self) -> None:
        if self.lost:
            return
        if self.link.random.random() < 0.5:
            self.other.incoming.clear()
        self.other.reset_soon()
        self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peername":
            return self.other.peer_address, 40_000
        if name == "sockname":
            return self.peer_address, 80
        return default

    def get_protocol(self) -> Any:
        return self.protocol

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._arrange()

    def is_reading(self) -> bool:
        return self._reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unsent
