"""Admission: which connections and requests of clients are accepted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.http.authorization import service_key_of, unauthorized
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.host_names import EVERY, HostNames, is_own, name_of, normal_origin
from dealer.gateway.http.refusals import (
    body_refused,
    cross_site_refused,
    host_refused,
    is_private,
    request_weight,
    unavailable,
)
from dealer.gateway.http.responses import response
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.ws.client_ip import TrustedProxies, client_network
from dealer.gateway.ws.connection import PlayerConnection
from dealer.gateway.ws.endpoint import is_socket
from dealer.gateway.ws.registry import ConnectionRegistry
from dealer.service.service_keys import ServiceKey

_LOCAL = ("localhost", "127.0.0.1", "[::1]")

PAGE_FACTOR = 4
"""Multiple of `connections_per_address` above which an address gets no page either: browsers load
pages over several connections of their own."""

FLOOD_FACTOR = 2 * PAGE_FACTOR
"""Multiple of `connections_per_address` above which no connection is accepted."""

HINT_SECONDS = 3600.0
ORIGIN_SECONDS = 60.0
"""Seconds in which a fault of the settings is logged once, however many clients show it."""

_SHOWN = 100
"""Characters of a client's header that a log line shows."""

log = logging.getLogger(__name__)


class Admission:
    """Decides on connections and requests of one gateway, whose open connections are in `registry`.

    `origins` are the web origins whose pages may connect besides the server's own, `*` for all; by
    default those of this machine. Requests are accepted under the names in `hosts` only. Behind one
    of `proxies`, clients are counted by the addresses that it reports, once their request is read,
    and the host that it reports is as good as `Host` if it is in `hosts`.
    """

    def __init__(
        self,
        context: GatewayContext,
        registry: ConnectionRegistry,
        *,
        origins: Sequence[str] | None,
        proxies: TrustedProxies,
        hosts: HostNames,
    ) -> None:
        self._context = context
        self._registry = registry
        self._any = origins is not None and EVERY in origins
        named = None if origins is None else map(normal_origin, origins)
        self._origins = None if named is None else frozenset(filter(None, named))
        self._proxies = proxies
        self._hosts = hosts
        self._log_throttle = LogThrottle(log, clock=context.clock, seconds=HINT_SECONDS)
        self._origin_throttle = LogThrottle(log, clock=context.clock, seconds=ORIGIN_SECONDS)

    def admits(self, peer: str) -> bool:
        """Whether a connection from this IP address is accepted; one of a flood is not.

        A smaller excess gets an answer. Connections of a proxy are counted once their requests name
        the clients.
        """
        limits = self._context.limits
        flood = len(self._registry.connections) >= 2 * limits.connections
        if not (flood or self._proxies.trusts(peer)):
            now = self._context.clock()
            budget = self._context.budgets.client(client_network(peer), now)
            flood = budget.floods(FLOOD_FACTOR * limits.connections_per_address, now)
        if flood:
            self._reject("flood")
        return not flood

    def identify(self, connection: ClientConnection, request: Request) -> Response | None:
        """Count a service by its key, and others by address, behind a trusted proxy by their own.

        Returns 401 for a request whose key is not valid, 400 for one with two.
        """
        key, refusal = self._service_key(request)
        seen = connection.seen = self._proxies.seen(connection.peer, request.headers)
        if seen.unread is not None:
            example = {"example": seen.unread[:_SHOWN]}
            self._log_throttle.log(
                logging.WARNING, "client address unreadable", example, counted=seen.address
            )
        budget = self._registry.budget_at(connection, seen.address)
        if key is not None:
            budget = self._context.budgets.key(key.id, self._context.clock())
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
        key = self._context.service.service_keys.find(given)
        if key is not None:
            return key, None
        return None, unauthorized("This service key is not valid, or was revoked.")

    def _reject(self, reason: str, **fields: str) -> None:
        self._context.metrics.refused[reason] += 1
        self._context.log_throttle.log(logging.INFO, "connection refused", reason=reason, **fields)

    def check_handshake(self, connection: PlayerConnection, request: Request) -> Response | None:
        """The answer to a request that is refused; None for any other."""
        unknown_key = self.identify(connection, request)
        refusal = self._check_rate(connection, request) or self._check_host(request) or unknown_key
        if refusal is None and connection.body:
            refusal = body_refused(request.method, connection.body, self._context.limits.message)
        if refusal is not None:
            return refusal
        if is_socket(request.path):
            return self._check_room(connection) or self._check_origin(connection, request)
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
        return refusal or self._check_origin(connection, request)

    def check_decks(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a request about decks that is refused by its head; None for any other.

        Pages of every origin may send them, unless the server is at a private address: browsers add
        no credential to them on their own.
        """
        unknown_key = self.identify(connection, request)
        budget, now = connection.budget, self._context.clock()
        wait = max(budget.admit(1.0, now, timed=True), budget.blocked(now))
        if wait:
            self._reject("rate", address=connection.address)
            return unavailable("Too many requests", wait, HTTPStatus.TOO_MANY_REQUESTS)
        refusal = self._check_host(request)
        if refusal is None:
            refusal = self._check_page(connection, request)
        return refusal or unknown_key or self._check_room(connection)

    def _check_page(self, connection: ClientConnection, request: Request) -> Response | None:
        """403 for a page of another site that asks a server in its visitor's own network.

        Such a page could find servers there, and use up the limits of its visitor's address. With
        a GET whose answer it does not read, browsers send no `Origin`, but `Referer`, unless the
        page forbids that; and `Sec-Fetch-Site` only to `https` and loopback addresses.
        """
        if not is_private(self._own_host(connection, request) or "") or self._names_origin(request):
            return None
        refusal = self._check_origin(connection, request, or_referer=True)
        return refusal or cross_site_refused(request)

    def _names_origin(self, request: Request) -> bool:
        """Whether the operator has named the origin of the page that sends this request."""
        origins = map(normal_origin, request.headers.get_all("Origin"))
        return self._any or (self._origins is not None and not self._origins.isdisjoint(origins))

    def _own_host(self, connection: ClientConnection, request: Request) -> str | None:
        """The host by which the client reaches this server; `Host` was checked before.

        What a proxy reports was not: it may serve names that another site has resolved to it.
        """
        seen = connection.seen.host
        return seen if seen and self._hosts.allows(seen) else request.headers.get("Host")

    def _check_rate(
        self,
        connection: ClientConnection,
        request: Request,
        *,
        status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
    ) -> Response | None:
        """Refusal of an address or key that is blocked until its debt is paid."""
        budget, now = connection.budget, self._context.clock()
        budget.admit(request_weight(request.path), now)
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
        full = len(self._registry.connections) > self._context.limits.connections
        if full or self._context.draining:
            self._reject("draining" if self._context.draining else "full")
            return unavailable("No more connections at the moment")
        return self._check_share(connection)

    def _check_origin(
        self, connection: ClientConnection, request: Request, *, or_referer: bool = False
    ) -> Response | None:
        headers = request.headers
        origin: str | None = None
        try:
            origin, referer = headers.get("Origin"), headers.get("Referer")
            if or_referer and origin is None and referer is not None:
                page = urlsplit(referer)
                origin = f"{page.scheme}://{page.netloc}"
            allowed = self.allows(origin, self._own_host(connection, request))
        except (MultipleValuesError, ValueError):
            allowed = False
        if allowed:
            return None
        self._reject("origin")
        named = None if origin is None else normal_origin(origin)
        if named not in (None, "null") and len(named) <= _SHOWN:
            # Any client may name any origin: one line, whichever origin it is.
            example = {"allowed_by": f"--origin {named}"}
            self._origin_throttle.log(logging.INFO, "origin refused", example)
        sentence = "Pages of this origin may not connect to this server.\n"
        return response(HTTPStatus.FORBIDDEN, sentence)

    def _check_share(self, connection: ClientConnection, *, factor: int = 1) -> Response | None:
        """503 for a key with too many connections, or an address with `factor` times too many."""
        limits = self._context.limits
        of_key = connection.service_key is not None
        most = limits.key_connections if of_key else factor * limits.connections_per_address
        if connection.budget.connections <= most:
            return None
        self._reject("address", address=connection.address)
        return unavailable("No more connections at the moment")

    def allows(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of `origin` may connect; clients that are not browsers send none."""
        if origin is None or self._any:
            return True
        if host is not None and is_own(origin, host):
            return True
        if self._origins is None:
            return name_of(origin) in _LOCAL
        named = normal_origin(origin)
        return named is not None and named in self._origins
