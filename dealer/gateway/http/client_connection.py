"""A client's connection up to its handshake: deadlines, flow control, and several POSTs in a row.

A connection that is kept after a POST waits for the next request until its idle deadline; the
request that follows may be any other, also a handshake.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, NamedTuple

from websockets.asyncio.server import Server
from websockets.server import ServerProtocol

from dealer.gateway.http.connection import HttpConnection
from dealer.gateway.http.request_head import ROOT
from dealer.gateway.limits import Limits
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.service.service_keys import ServiceKey


class Seen(NamedTuple):
    """A request as its client sees it: from `address`, to `scheme` (http or https) and `host`.

    `host` has the port if there is one; it is empty where no header names it. `unread` is the
    member of a header at which the search for the client ended: `address` is then the trusted
    proxy's that sent it.
    """

    address: str
    scheme: str
    host: str
    unread: str | None = None


class ClientConnection(HttpConnection):
    """The connection of one client at a time.

    `peer` is the IP address at the other end, possibly a proxy's; `address` the client's as limits
    count it, see `client_ip.client_network`, and `budget` that of this address, or of the valid
    `service_key` that the client gave. `seen` is what the client sees of its newest request.
    `keys_only` says that its port accepts no client without a key. `limits` are the server's, and
    `path` is the path under which clients reach it, such as `/cards/`.
    """

    def __init__(
        self,
        limits: Limits,
        protocol: ServerProtocol,
        server: Server,
        *,
        keys_only: bool = False,
        path: str = ROOT,
        **settings: Any,
    ) -> None:
        super().__init__(protocol, server, path=path, **settings)
        self.limits = limits
        self.sending = limits.sending  # seconds until the client has read a full write buffer
        self.keys_only = keys_only
        self.peer = ""
        self.address = ""
        self.seen: Seen
        self.budget: ClientBudget
        self.service_key: ServiceKey | None = None
        self._leftover = b""  # of what was read, the part after the last request
        self._idle = False  # kept after a POST: no byte of another request has arrived
        self._reading_paused = False
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._eof = False
        self._open_timer: asyncio.TimerHandle | None = None  # handshake, request, next request
        self._close_timer: asyncio.TimerHandle | None = None  # closing handshake

    def charge_to(self, budget: ClientBudget, key: ServiceKey | None) -> None:
        """Count the connection, from now on, as one of this address or service key."""
        self.budget.connections -= 1
        self.budget = budget
        self.service_key = key
        budget.connections += 1

    def abort(self) -> None:
        self.transport.abort()

    # Lifecycle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start_open_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel(self._open_timer)
        self._cancel(self._close_timer)

    def eof_received(self) -> None:
        self._eof = True
        super().eof_received()

    def data_received(self, data: bytes) -> None:
        if self._idle and data != b"\r\n":  # an empty line is skipped
            self._idle = False
            self._start_open_timer()
        super().data_received(data)

    def start_http_answer(self) -> None:
        """The request is plain HTTP: from now on the answer's own deadlines apply."""
        self._cancel(self._open_timer)
        self._open_timer = None

    def close_if_idle(self) -> None:
        """Close a connection that is kept and not used."""
        if self._idle:
            self.transport.close()

    def _start_open_timer(self) -> None:
        self._cancel(self._open_timer)
        self._open_timer = self.loop.call_later(self.limits.opening, self._on_open_timeout)

    def _on_open_timeout(self) -> None:
        if self.exchange is None:
            self.transport.abort()
        else:
            self.exchange.time_out()

    def _start_close_timer(self) -> None:
        if self._close_timer is None:
            self._close_timer = self.loop.call_later(self.limits.closing, self.transport.abort)

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    # Flow control

    def pause(self) -> None:
        """Stop reading."""
        if not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Start reading again, unless the client does not read."""
        if self._reading_paused and not self.paused and not self.transport.is_closing():
            if self._leftover:
                # In a step of its own: else each pipelined request would be a level of recursion.
                self.loop.call_soon(self._go_on)
                return
            self._reading_paused = False
            self.transport.resume_reading()

    def wait_for_reader(self, seconds: float) -> None:
        """Wait so long for a client that does not read, for an answer that is made as it is read.

        The kernel would take megabytes of it, and then report no progress for minutes of a slow
        client: it may hold no more than the write buffer of what it has not yet sent.
        """
        self.sending = seconds
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, self.limits.buffer)

    async def http_drained(self) -> bool:
        """Wait until the write buffer is below its limit; False once the connection is closed."""
        while self.paused and not self.transport.is_closing():
            await self._wait_for_drain()
        # After the client's EOF websockets has sent one, too, and nothing can be written.
        return not (self.transport.is_closing() or self._eof)

    async def _wait_for_drain(self) -> None:
        future = self.loop.create_future()
        self._drain_waiters.append(future)
        await future

    def _wake_drain_waiters(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    # Exchanges

    def write_http(self, data: bytes) -> None:
        """Write the answer of an exchange, unless the connection is lost."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def body_complete(self) -> None:
        """The request of an exchange was read: no deadline applies, and no more is read for now."""
        self.start_http_answer()
        self.pause()

    def next_request(self, leftover: bytes) -> None:
        """An answer was written: read the next request, which begins with these bytes."""
        self.end_exchange()
        self._leftover = leftover.removeprefix(b"\r\n")
        if not self._leftover:
            self._idle = True
            self._open_timer = self.loop.call_later(self.limits.idle, self.transport.close)
        self.resume()

    def _go_on(self) -> None:
        leftover = self._leftover
        if leftover and not self.transport.is_closing():
            self._leftover = b""
            self._start_open_timer()
            self.resume()
            self.data_received(leftover)

    def linger(self) -> None:
        """The same, and drop what arrives no longer than the limit `closing`."""
        super().linger()
        if not self.transport.is_closing():
            self.resume()
            self._start_close_timer()
