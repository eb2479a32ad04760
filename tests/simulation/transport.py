"""Connections of the simulated network: two ends with streams of bytes between them."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.loop import Domain

if TYPE_CHECKING:
    from tests.simulation.network import Network

HIGH = 64 * 1024
"""Bytes that wait to be sent above which a protocol has to pause, unless it sets another."""


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
