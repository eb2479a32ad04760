"""The door: who is let in, who is asked to come later, and who has fallen silent."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import MultipleValuesError
from websockets.exceptions import NegotiationError
from websockets.http11 import Request, Response
from websockets.protocol import OPEN
from websockets.typing import Subprotocol

from dealer.gateway.connection import TOO_SLOW, GuestConnection
from dealer.gateway.floor import Floor
from dealer.gateway.hops import Hops, client_network
from dealer.gateway.host_names import HostNames
from dealer.gateway.questions import PROTOCOL
from dealer.gateway.refusals import body_refused, host_refused, later, request_weight

_LOCAL = ("localhost", "127.0.0.1", "::1")
_WS = re.compile(r"/ws(?:/(?P<table>[0-9a-f]{32}))?/?")
_PING = b"\x89\x00"
_SILENT_PINGS = 2
GOING = 1012

CROWD = 4
"""Times `connections_per_address` that one address has when it gets no page any more, either: pages
come over connections of their own, some at a time for each guest."""

FLOOD = 2 * CROWD
"""Times `connections_per_address` that one address has, requests or not, when more are cut off."""

BEATS = 16
"""In how many parts the guests are asked whether they are there, lest all are at once."""


class Door:
    """Keeps count of the connections of one gateway, by address too.

    `origins` are the web origins whose pages may connect beside the house's own, `*` for all;
    by default those of this machine. Requests are taken under the names in `hosts` alone. Behind a
    proxy that `hops` trusts, guests are counted by the addresses that it gives, once their request
    is read.
    """

    def __init__(
        self,
        floor: Floor,
        *,
        origins: Sequence[str] | None = None,
        hops: Hops | None = None,
        hosts: HostNames | None = None,
    ) -> None:
        self.floor = floor
        self._hops = hops or Hops()
        self._hosts = hosts or HostNames()
        self.connections: set[GuestConnection] = set()
        self._arrivals = 0
        self._origins = None if origins is None else frozenset(origins)

    # Coming and going

    def arrived(self, connection: GuestConnection) -> None:
        peer = connection.remote_address
        connection.peer = peer[0] if isinstance(peer, tuple) else ""
        self._arrivals += 1
        connection.beat = self._arrivals % BEATS
        self.connections.add(connection)
        self._count(connection, connection.peer)
        # A flood is not answered at all; somewhat too many are told to come later. A proxy's
        # connections are counted when their requests name the clients.
        limits = self.floor.limits
        flood = len(self.connections) > 2 * limits.connections
        crowd = self._crowd(connection) > FLOOD * limits.connections_per_address
        if flood or (crowd and not self._hops.trusts(connection.peer)):
            self._turned_away("flood")
            connection.transport.abort()

    def _count(self, connection: GuestConnection, address: str) -> None:
        connection.address = client_network(address)
        connection.budget = self.floor.budgets.client(connection.address, self.floor.clock())
        connection.budget.connections += 1

    @staticmethod
    def _uncount(connection: GuestConnection) -> None:
        connection.budget.connections -= 1

    def recognise(self, connection: GuestConnection, request: Request) -> None:
        """Count a guest whom a trusted proxy announces by their own address."""
        if self._hops.trusts(connection.peer):
            forwarded = request.headers.get_all("X-Forwarded-For")
            address = self._hops.guest(connection.peer, forwarded)
            self._uncount(connection)
            self._count(connection, address)

    def _turned_away(self, reason: str, **told: str) -> None:
        self.floor.metrics.turned_away[reason] += 1
        self.floor.seldom.say(logging.INFO, "connection refused", reason=reason, **told)

    def departed(self, connection: GuestConnection) -> None:
        self.connections.discard(connection)
        self._uncount(connection)

    def guests(self) -> list[GuestConnection]:
        """The connections that have a session."""
        return [one for one in self.connections if one.session and one.protocol.state is OPEN]

    def dropped(self, code: int) -> None:
        """The house closes a connection with this code."""
        self.floor.metrics.dropped[code] += 1
        if code == TOO_SLOW:
            self.floor.seldom.say(logging.INFO, "slow consumer dropped", code=code)
        elif code != GOING:
            self.floor.seldom.say(logging.INFO, "connection closed", code=code)

    # The handshake

    def refuse(self, connection: GuestConnection, request: Request) -> Response | None:
        """The answer to a request that is not let in; None for any other."""
        refusal = self._refuse_in_haste(connection, request) or self._refuse_host(request)
        if refusal is None and connection.body:
            refusal = body_refused(request.method, connection.body, self.floor.limits.message)
        if refusal is not None:
            return refusal
        if is_socket(request.path):
            return self._refuse_socket(connection, request)
        return self._refuse_page(connection)

    def _refuse_in_haste(self, connection: GuestConnection, request: Request) -> Response | None:
        """The answer to an address that has to pay a debt before it may connect again."""
        budget, now = connection.budget, self.floor.clock()
        budget.spend(request_weight(request.path), now)
        wait = budget.blocked(now)
        if not wait:
            return None
        self._turned_away("rate", address=connection.address)
        return later("Too many requests from your address", wait)

    def _refuse_host(self, request: Request) -> Response | None:
        """The answer to a request under a name that is not this server's."""
        refusal = host_refused(self._hosts, request)
        if refusal is not None:
            self._turned_away("host")
        return refusal

    def _refuse_socket(self, connection: GuestConnection, request: Request) -> Response | None:
        limits = self.floor.limits
        full = len(self.connections) > limits.connections
        crowd = self._crowd(connection) > limits.connections_per_address
        if full or crowd or self.floor.draining:
            if self.floor.draining:
                self._turned_away("draining")
            elif full:
                self._turned_away("full")
            else:
                self._turned_away("address", address=connection.address)
            return later("No more connections just now")
        try:
            allowed = self.allows(request.headers.get("Origin"), request.headers.get("Host"))
        except MultipleValuesError:
            allowed = False
        if not allowed:
            self._turned_away("origin")
            return connection.respond(
                HTTPStatus.FORBIDDEN, "Pages of this origin may not connect to this house.\n"
            )
        return None

    def _refuse_page(self, connection: GuestConnection) -> Response | None:
        """The answer to one of far too many requests of one address; None for any other.

        Whoever reads slowly keeps a connection for long, and there is only so much room for all.
        """
        if self._crowd(connection) <= CROWD * self.floor.limits.connections_per_address:
            return None
        self._turned_away("address", address=connection.address)
        return later("No more connections just now")

    @staticmethod
    def _crowd(connection: GuestConnection) -> int:
        """How many connections its address has."""
        return connection.budget.connections

    def allows(self, origin: str | None, host: str | None) -> bool:
        """Whether a page from `origin` may connect; who is no page has none."""
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
            name = parts.hostname
        except ValueError:
            return False
        if host is not None and parts.netloc.lower() == host.lower():
            return True
        if self._origins is None:
            return name in _LOCAL
        return "*" in self._origins or origin in self._origins

    # Those who are in

    def ping(self, beat: int) -> None:
        """Ask every `BEATS`th whether they are there, the next ones at the next beat."""
        for connection in self.guests():
            if connection.beat != beat % BEATS:
                continue
            if connection.silent >= _SILENT_PINGS:
                connection.end(TOO_SLOW, "nothing was heard: reconnect and resume")
                continue
            connection.silent += 1
            if not connection.paused:
                connection.write(_PING)

    def say(self, connections: Iterable[GuestConnection], code: int, reason: str) -> None:
        for connection in connections:
            connection.end(code, reason)


def is_socket(path: str) -> bool:
    return _WS.fullmatch(path.partition("?")[0]) is not None


def table_in(path: str) -> str | None:
    """The table's id in `/ws/<table>`."""
    match = _WS.fullmatch(path.partition("?")[0])
    return None if match is None else match["table"]


def select_subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """`dealer.v1` where it is offered; none where none is; 400 where only others are."""
    if PROTOCOL in offered:
        return Subprotocol(PROTOCOL)
    if offered:
        raise NegotiationError(f"this house speaks {PROTOCOL}")
    return None
