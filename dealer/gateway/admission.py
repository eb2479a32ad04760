"""Admission: which connections and requests of clients are accepted."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.clients import ClientConnection, ConnectionRegistry
from dealer.gateway.net.admission import (
    NOT_THIS_ORIGIN,
    Origins,
    bearer_of,
    body_refused,
    cross_site_refused,
    host_refused,
    is_private,
    origin_of,
    unauthorized,
    unavailable,
)
from dealer.gateway.net.host_names import HostNames, normal_origin
from dealer.gateway.net.proxies import TrustedProxies, client_network
from dealer.gateway.net.responses import response
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.service.identity.service_keys import ServiceKey

HANDSHAKE = 2.0
"""Cost of a WebSocket handshake for its address, in messages."""

DOWNLOADS = (
    (re.compile(r"/bundle\.jsonl$"), 2.0),
    (re.compile(r"/(history|round-\d+)\.\w+$"), 10.0),
)
"""Cost of making a bundle or a history."""

PAGE = 0.25
"""Cost of any other request; loading a page takes about thirty."""

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

_SERVICE_KEY = "dk_"

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
        registry: ConnectionRegistry,
        *,
        origins: Sequence[str] | None,
        proxies: TrustedProxies,
        hosts: HostNames,
    ) -> None:
        self._context = context = registry.context
        self._registry = registry
        self.origins = Origins(origins)
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
        budget = connection.budget_at(seen.address)
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
            given = bearer_of(request.headers)
        except MultipleValuesError:
            sentence = "The header Authorization occurs twice in the request.\n"
            return None, response(HTTPStatus.BAD_REQUEST, sentence)
        if given is None or not given.startswith(_SERVICE_KEY):
            return None, None
        key = self._context.service.service_keys.find(given)
        if key is not None:
            return key, None
        return None, unauthorized("This service key is not valid, or was revoked.")

    def _reject(self, reason: str, **fields: str) -> None:
        self._context.metrics.refused[reason] += 1
        self._context.log_throttle.log(logging.INFO, "connection refused", reason=reason, **fields)

    def check_socket(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a handshake that is refused; None for any other."""
        refusal = self._check_get(connection, request)
        return refusal or self._check_room(connection) or self._check_origin(connection, request)

    def check_page(self, connection: ClientConnection, request: Request) -> Response | None:
        """The answer to a request for a page or a download that is refused; None for any other."""
        refusal = self._check_get(connection, request)
        # A page, too, keeps its connection for long if the client reads slowly.
        return refusal or self._check_share(connection, factor=PAGE_FACTOR)

    def _check_get(self, connection: ClientConnection, request: Request) -> Response | None:
        unknown_key = self.identify(connection, request)
        return (
            self._check_rate(connection, request)
            or self._check_host(request)
            or unknown_key
            or body_refused(request.method, connection.body_length, self._context.limits.message)
        )

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
            refusal = self._check_site(connection, request)
        return refusal or unknown_key or self._check_room(connection)

    def _check_site(self, connection: ClientConnection, request: Request) -> Response | None:
        """403 for a page of another site that asks a server in its visitor's own network.

        Such a page could find servers there, and use up the limits of its visitor's address. With
        a GET whose answer it does not read, browsers send no `Origin`, but `Referer`, unless the
        page forbids that; and `Sec-Fetch-Site` only to `https` and loopback addresses.
        """
        private = is_private(self._own_host(connection, request) or "")
        if not private or self.origins.name(request):
            return None
        refusal = self._check_origin(connection, request, or_referer=True)
        return refusal or cross_site_refused(request)

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
        budget.admit(_request_weight(request.path), now)
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
        origin: str | None = None
        try:
            origin = origin_of(request.headers, or_referer=or_referer)
            allowed = self.origins.allow(origin, self._own_host(connection, request))
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
        return response(HTTPStatus.FORBIDDEN, NOT_THIS_ORIGIN)

    def _check_share(self, connection: ClientConnection, *, factor: int = 1) -> Response | None:
        """503 for a key with too many connections, or an address with `factor` times too many."""
        limits = self._context.limits
        of_key = connection.service_key is not None
        most = limits.key_connections if of_key else factor * limits.connections_per_address
        if connection.budget.connections <= most:
            return None
        self._reject("address", address=connection.address)
        return unavailable("No more connections at the moment")


def _request_weight(path: str) -> float:
    """The cost of a request for its client's address, in messages."""
    path = path.partition("?")[0]
    if path.startswith("/ws"):
        return HANDSHAKE
    return next((weight for what, weight in DOWNLOADS if what.search(path)), PAGE)
