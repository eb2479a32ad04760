"""The connections of clients: what each is for, counted by address, pinged in turn, and closed."""

from __future__ import annotations

import asyncio
import logging
import re
from asyncio import sleep
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote

from websockets.exceptions import NegotiationError
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from dealer.gateway.close_codes import RESTART, CloseCode
from dealer.gateway.net.connection import Connection
from dealer.gateway.net.proxies import Seen, client_network
from dealer.gateway.net.websocket import PING_FRAME
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.session.context import GatewayContext
from dealer.gateway.session.dispatcher import Dispatcher
from dealer.gateway.session.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service.identity.service_keys import ServiceKey

BEATS = 16
"""Groups in which clients are pinged one after the other, to spread the load."""

PACE = 0.002
"""Seconds between two disconnections of a drain, so that the other nodes get at most 500 resumes a
second."""

_SILENT_PINGS = 2
_WS = re.compile(r"/ws(?:/(?P<table>[0-9a-f]{32}))?[^0-9A-Za-z]*")


class Endpoint:
    """What requests to some paths are for: the WebSocket, `/rpc`, decks, and pages.

    `keeps` says whether they have bodies, and their connections are kept. `admit` is the check of a
    request by its head, one of `Admission`.
    """

    keeps = False

    def __init__(
        self, context: GatewayContext, admit: Callable[[ClientConnection, Request], Response | None]
    ) -> None:
        self._context = context
        self._admit = admit

    def check(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a request that is refused by its head; None for any other."""
        return self._admit(connection, request)

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        """Have the request answered, now or later."""
        raise NotImplementedError

    def count(self, status: int) -> None:
        """A request was answered with this status."""

    def answer_later(
        self, connection: ClientConnection, work: Callable[[], Coroutine[Any, Any, Response | None]]
    ) -> None:
        """Answer with what `work()` returns, which the client pays for; None: it was answered."""
        self._context.tasks.start(self._answer(connection, work))

    async def _answer(
        self, connection: ClientConnection, work: Callable[[], Coroutine[Any, Any, Response | None]]
    ) -> None:
        try:
            answer = await metered(work, connection.budget)
            if answer is not None:
                connection.answer(answer, close=self._context.draining)
        except BaseException:
            connection.abort()
            raise


class ClientConnection(Connection):
    """The connection of one client at a time; the `Transport` that the client's session writes to.

    `peer` is the IP address at the other end, possibly a proxy's; `address` the client's as limits
    count it, see `proxies.client_network`, and `budget` this address's, or that of the valid
    `service_key` that the client gave. `seen` is what the client sees of its newest request.
    `keys_only` says that its port accepts no client without a key. It is pinged at `beat`.
    """

    address: str
    seen: Seen
    budget: ClientBudget
    _endpoint: Endpoint

    def __init__(
        self,
        registry: ConnectionRegistry,
        endpoint_of: Callable[[Request], Endpoint],
        *,
        path: str,
        keys_only: bool = False,
    ) -> None:
        super().__init__(registry.context.limits, path=path)
        self.keys_only = keys_only
        self.peer = ""
        self.beat = 0
        self.service_key: ServiceKey | None = None
        self.long_answers = registry.context.long_answers  # for what takes long to make
        self._registry = registry
        self._endpoint_of = endpoint_of

    def charge_to(self, budget: ClientBudget, key: ServiceKey | None) -> None:
        """Count the connection, from now on, as one of this address or service key."""
        self.budget.connections -= 1
        self.budget = budget
        self.service_key = key
        budget.connections += 1

    def budget_at(self, address: str) -> ClientBudget:
        """Set the address by which the connection is counted; the budget of the address."""
        self.address, context = client_network(address), self._registry.context
        return context.budgets.client(self.address, context.clock())

    def end_service(self) -> None:
        """End the connection of a service whose key was revoked."""
        if self.receiver is None:
            self.abort()
        else:
            self.close_with(CloseCode.KEY_REVOKED, "the service key was revoked")

    # What `Connection` asks

    def keeps(self, request: Request) -> bool:
        self._endpoint = self._endpoint_of(request)
        return self._endpoint.keeps

    def check(self, request: Request) -> Response | None:
        return self._endpoint.check(self, request)

    def run(self, request: Request, body: bytes) -> None:
        self._endpoint.run(self, request, body)

    def answered(self, status: int) -> None:
        self._endpoint.count(status)

    def spent(self, seconds: float) -> None:
        self.budget.step(seconds, self._registry.context.clock())

    def closes(self, code: CloseCode) -> None:
        context = self._registry.context
        context.metrics.closed[code] += 1
        if code is CloseCode.TOO_SLOW:
            context.log_throttle.log(logging.INFO, "slow consumer dropped", code=int(code))
        elif code is not CloseCode.SERVICE_RESTART:
            context.log_throttle.log(logging.INFO, "connection closed", code=int(code))

    def made(self) -> None:
        peer = self.transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        self._registry.arrivals += 1
        self.beat = self._registry.arrivals % BEATS
        self._registry.connections.add(self)
        self.budget = self.budget_at(self.peer)
        self.budget.connections += 1

    def lost(self) -> None:
        self._registry.connections.discard(self)
        self.budget.connections -= 1


class ConnectionRegistry:
    """The open connections of one gateway."""

    def __init__(self, context: GatewayContext) -> None:
        self.connections: set[ClientConnection] = set()
        self.context = context
        self.arrivals = 0

    def clients(self) -> list[ClientConnection]:
        """The connections that have a session."""
        return [one for one in self.connections if one.speaks]

    def end_service(self, key: ServiceKey) -> None:
        """End the connections of a key that is no longer valid."""
        for connection in list(self.connections):
            if connection.service_key == key:
                connection.end_service()

    def ping(self, beat: int) -> None:
        """Ping one of `BEATS` groups of clients, and close those that missed two pings."""
        turn = beat % BEATS
        due = [one for one in self.connections if one.beat == turn and one.speaks]
        for connection in due:
            if connection.silent >= _SILENT_PINGS:
                connection.close_with(
                    CloseCode.TOO_SLOW, "no answer to pings: reconnect and resume"
                )
                continue
            connection.silent += 1
            if not connection.paused:
                connection.write(PING_FRAME)

    def close_all(self) -> None:
        """Close what is still open at the end of a drain."""
        for connection in self.clients():
            connection.close_with(CloseCode.SERVICE_RESTART, RESTART)


def announce_drain(clients: Sequence[ClientConnection], pace: float) -> None:
    """Send each client the time after which it is disconnected and may reconnect."""
    for index, connection in enumerate(clients):
        delay = int(1000 * pace * index)
        notice = wire.notification("session.drain", r.Drain(reconnect_in_ms=delay))
        connection.write(wire.text_frame(notice))


async def disconnect(clients: Sequence[ClientConnection], *, within: float) -> None:
    """Close each connection at its own time, the last within so many seconds.

    Until then a client's requests are run as ever: a player is away for one reconnect, however many
    others there are.
    """
    loop = asyncio.get_running_loop()
    pace = min(PACE, max(within, 0.0) / max(len(clients), 1))
    announce_drain(clients, pace)
    started_at = loop.time()
    for index, connection in enumerate(clients):
        await sleep(max(started_at + pace * index - loop.time(), 0))
        connection.drain()


class WebSocketEndpoint(Endpoint):
    """`/ws`, with or without a table: answers the handshake, and begins a session."""

    def run(self, connection: ClientConnection, request: Request, body: bytes) -> None:
        if not connection.upgrade(request, wire.PROTOCOL, _select_subprotocol):
            return
        self._context.metrics.accepted += 1
        key, table = connection.service_key, _socket_in(request.path)
        named = None if table is None else table["table"]
        session = Session(self._context, connection, table=named, service_key=key)
        connection.open(Dispatcher(session))
        if key is not None and not self._context.service.service_keys.is_valid(key):
            connection.end_service()


def is_socket(path: str) -> bool:
    """Whether a request path leads to the WebSocket endpoint."""
    return _socket_in(path) is not None


def _socket_in(path: str) -> re.Match[str] | None:
    return _WS.fullmatch(unquote(path.partition("?")[0]))


def _select_subprotocol(
    protocol: ServerProtocol, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """`dealer.v1` if it is offered; none if none is; 400 if only others are."""
    if wire.PROTOCOL in offered:
        return Subprotocol(wire.PROTOCOL)
    if offered:
        raise NegotiationError(f"this server speaks {wire.PROTOCOL}")
    return None
