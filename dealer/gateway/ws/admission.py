"""Admission: which connections and requests are accepted, and keepalive of the accepted ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response
from websockets.protocol import OPEN

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.decks.endpoint import DecksEndpoint
from dealer.gateway.http.authorization import service_key_of, unauthorized
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.connection import Exchange
from dealer.gateway.http.host_names import HostNames
from dealer.gateway.http.refusals import (
    body_refused,
    host_refused,
    private_network_refused,
    request_weight,
    unavailable,
)
from dealer.gateway.http.responses import response
from dealer.gateway.http.rpc import RpcEndpoint
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.ws.client_ip import TrustedProxies, client_network
from dealer.gateway.ws.connection import ConnectionCallbacks, PlayerConnection
from dealer.gateway.ws.endpoint import is_socket
from dealer.service.service_keys import ServiceKey

_LOCAL = ("localhost", "127.0.0.1", "::1")
_PING = b"\x89\x00"
_SILENT_PINGS = 2

PAGE_FACTOR = 4
"""Multiple of `connections_per_address` above which an address gets no page either: browsers load
pages over several connections of their own."""

FLOOD_FACTOR = 2 * PAGE_FACTOR
"""Multiple of `connections_per_address` above which no connection is accepted."""

BEATS = 16
"""Groups in which clients are pinged one after the other, to spread the load."""


class ConnectionRegistry:
    """The connections of one gateway, counted by client address.

    `origins` are the web origins whose pages may connect besides the server's own, `*` for all; by
    default those of this machine. Requests are accepted under the names in `hosts` only. Behind one
    of `proxies`, clients are counted by the addresses that it reports, once their request is read.
    `decks` says whether there is the simple REST interface.
    """

    def __init__(
        self,
        context: GatewayContext,
        *,
        origins: Sequence[str] | None = None,
        proxies: TrustedProxies | None = None,
        hosts: HostNames | None = None,
        decks: bool = True,
    ) -> None:
        self.context = context
        self._proxies = proxies or TrustedProxies()
        self._hosts = hosts or HostNames()
        self.connections: set[PlayerConnection] = set()
        self._arrivals = 0
        self._origins = None if origins is None else frozenset(origins)
        self._rpc = RpcEndpoint(context, self.check_post)
        self._decks = DecksEndpoint(context, self.check_decks, self._scheme) if decks else None
        self.callbacks = ConnectionCallbacks(
            self.on_connect, self.on_disconnect, self.on_close, self._exchange
        )

    def _exchange(self, connection: ClientConnection, decks: bool) -> Exchange | None:
        """The exchange of a POST /rpc, or of a request about decks if there are any."""
        if not decks:
            return self._rpc.exchange(connection)
        return None if self._decks is None else self._decks.exchange(connection)

    # Connect and disconnect

    def admits(self, peer: str) -> bool:
        """Whether a connection from this IP address is accepted; one of a flood is not.

        A smaller excess gets an answer. Connections of a proxy are counted once their requests name
        the clients.
        """
        limits = self.context.limits
        flood = len(self.connections) >= 2 * limits.connections
        if not (flood or self._proxies.trusts(peer)):
            now = self.context.clock()
            budget = self.context.budgets.client(client_network(peer), now)
            flood = budget.floods(FLOOD_FACTOR * limits.connections_per_address, now)
        if flood:
            self._reject("flood")
        return not flood

    def on_connect(self, connection: PlayerConnection) -> None:
        """Register an accepted connection."""
        peer = connection.remote_address
        connection.peer = peer[0] if isinstance(peer, tuple) else ""
        self._arrivals += 1
        connection.beat = self._arrivals % BEATS
        self.connections.add(connection)
        connection.budget = self._budget_of(connection, connection.peer)
        connection.budget.connections += 1

    def _budget_of(self, connection: ClientConnection, address: str) -> ClientBudget:
        connection.address = client_network(address)
        return self.context.budgets.client(connection.address, self.context.clock())

    def identify(self, connection: ClientConnection, request: Request) -> Response | None:
        """Count a service by its key, and others by address, behind a trusted proxy by their own.

        Returns 401 for a request whose key is not valid, 400 for one with two.
        """
        key, refusal = self._service_key(request)
        forwarded = request.headers.get_all("X-Forwarded-For")
        address = self._proxies.client_ip(connection.peer, forwarded)
        budget = self._budget_of(connection, address)
        if key is not None:
            budget = self.context.budgets.key(key.id, self.context.clock())
        connection.charge_to(budget, key)
        if refusal is None and key is None and connection.keys_only:
            refusal = unauthorized("This port is for services: send `Authorization: Bearer KEY`.")
        if refusal is not None:
            self._reject("key")
        return refusal

    def _service_key(self, request: Request) -> tuple[ServiceKey | None, Response | None]:
        try:
            given = service_key_of(request.headers)
        except MultipleValuesError:
            sentence = "The header Authorization occurs twice in the request.\n"
            return None, response(HTTPStatus.BAD_REQUEST, sentence)
        if given is None:
            return None, None
        key = self.context.service.service_keys.find(given)
        if key is not None:
            return key, None
        return None, unauthorized("This service key is not valid, or was revoked.")

    def end_service(self, key: ServiceKey) -> None:
        """End the connections of a key that is no longer valid."""
        for connection in list(self.connections):
            if connection.service_key == key:
                connection.end_service()

    def _reject(self, reason: str, **fields: str) -> None:
        self.context.metrics.refused[reason] += 1
        self.context.log_throttle.log(logging.INFO, "connection refused", reason=reason, **fields)

    def on_disconnect(self, connection: PlayerConnection) -> None:
        self.connections.discard(connection)
        connection.budget.connections -= 1

    def clients(self) -> list[PlayerConnection]:
        """The connections that have a session."""
        return [
            connection
            for connection in self.connections
            if connection.dispatcher and connection.protocol.state is OPEN
        ]

    def on_close(self, code: CloseCode) -> None:
        """Count and log that the server closes a connection."""
        self.context.metrics.closed[code] += 1
        if code is CloseCode.TOO_SLOW:
            self.context.log_throttle.log(logging.INFO, "slow consumer dropped", code=int(code))
        elif code is not CloseCode.SERVICE_RESTART:
            self.context.log_throttle.log(logging.INFO, "connection closed", code=int(code))

    # Requests

    def check_handshake(self, connection: PlayerConnection, request: Request) -> Response | None:
        """The answer to a request that is refused; None for any other."""
        unknown_key = self.identify(connection, request)
        refusal = self._check_rate(connection, request) or self._check_host(request) or unknown_key
        if refusal is None and connection.body:
            refusal = body_refused(request.method, connection.body, self.context.limits.message)
        if refusal is not None:
            return refusal
        if is_socket(request.path):
            return self._check_room(connection) or self._check_origin(request)
        # A page, too, keeps its connection for long if the client reads slowly.
        return self._check_share(connection, factor=PAGE_FACTOR)

    def check_post(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a POST that is refused by its head; None for any other."""
        unknown_key = self.identify(connection, request)
        refusal = (
            self._check_rate(connection, request, status=HTTPStatus.TOO_MANY_REQUESTS)
            or self._check_host(request)
            or unknown_key
            or self._check_room(connection)
        )
        return refusal or self._check_origin(request)

    def check_decks(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a request about decks that is refused by its head; None for any other.

        Pages of every origin may send them: browsers add no credential to them on their own.
        """
        unknown_key = self.identify(connection, request)
        budget, now = connection.budget, self.context.clock()
        wait = max(budget.spend(1.0, now), budget.blocked(now), budget.busy(now))
        if wait:
            self._reject("rate", address=connection.address)
            return unavailable("Too many requests", wait, HTTPStatus.TOO_MANY_REQUESTS)
        refusal = self._check_host(request)
        if refusal is None and not self._names_origin(request):
            refusal = private_network_refused(request)
        return refusal or unknown_key or self._check_room(connection)

    def _names_origin(self, request: Request) -> bool:
        """Whether the operator has named the origin of the page that sends this request."""
        origins = request.headers.get_all("Origin")
        return self._origins is not None and not self._origins.isdisjoint((*origins, "*"))

    def _scheme(self, connection: ClientConnection, request: Request) -> str:
        """The scheme of this server's address for a client: `https` if a trusted proxy says so."""
        said = request.headers.get_all("X-Forwarded-Proto")
        return "https" if said == ["https"] and self._proxies.trusts(connection.peer) else "http"

    def _check_rate(
        self,
        connection: ClientConnection,
        request: Request,
        *,
        status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
    ) -> Response | None:
        """Refusal of an address or key that is blocked until its debt is paid."""
        budget, now = connection.budget, self.context.clock()
        budget.spend(request_weight(request.path), now)
        wait = budget.blocked(now)
        if status is HTTPStatus.TOO_MANY_REQUESTS:
            wait = max(wait, budget.busy(now))  # before the body is read
        if not wait:
            return None
        self._reject("rate", address=connection.address)
        whose = "your address" if connection.service_key is None else "this service key"
        return unavailable(f"Too many requests from {whose}", wait, status)

    def _check_host(self, request: Request) -> Response | None:
        """421 for a request under a name that is not this server's."""
        refusal = host_refused(self._hosts, request)
        if refusal is not None:
            self._reject("host")
        return refusal

    def _check_room(self, connection: ClientConnection) -> Response | None:
        """503 where there is no room for another connection that stays open."""
        full = len(self.connections) > self.context.limits.connections
        if full or self.context.draining:
            self._reject("draining" if self.context.draining else "full")
            return unavailable("No more connections at the moment")
        return self._check_share(connection)

    def _check_origin(self, request: Request) -> Response | None:
        try:
            allowed = self.allows(request.headers.get("Origin"), request.headers.get("Host"))
        except MultipleValuesError:
            allowed = False
        if allowed:
            return None
        self._reject("origin")
        sentence = "Pages of this origin may not connect to this server.\n"
        return response(HTTPStatus.FORBIDDEN, sentence)

    def _check_share(self, connection: ClientConnection, *, factor: int = 1) -> Response | None:
        """503 for a key with too many connections, or an address with `factor` times too many."""
        limits = self.context.limits
        of_key = connection.service_key is not None
        most = limits.key_connections if of_key else factor * limits.connections_per_address
        if connection.budget.connections <= most:
            return None
        self._reject("address", address=connection.address)
        return unavailable("No more connections at the moment")

    def allows(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of `origin` may connect; clients that are not browsers send none."""
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

    # Open connections

    def ping(self, beat: int) -> None:
        """Ping one of `BEATS` groups of clients, and close those that missed two pings."""
        for connection in self.clients():
            if connection.beat != beat % BEATS:
                continue
            if connection.silent >= _SILENT_PINGS:
                connection.close_with(
                    CloseCode.TOO_SLOW, "no answer to pings: reconnect and resume"
                )
                continue
            connection.silent += 1
            if not connection.paused:
                connection.write(_PING)

    def close_all(
        self, connections: Iterable[PlayerConnection], code: CloseCode, reason: str
    ) -> None:
        for connection in connections:
            connection.close_with(code, reason)
