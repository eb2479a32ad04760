"""Admission: which connections and requests of clients are accepted."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus

from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.clients import ClientConnection, ConnectionRegistry
from dealer.gateway.net import checks as head_checks
from dealer.gateway.net.host_names import HostNames, is_private, normal_origin
from dealer.gateway.net.proxies import TrustedProxies, client_network
from dealer.gateway.net.responses import response, unauthorized, unavailable
from dealer.gateway.observe.log_throttle import LogThrottle

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

NO_ROOM = "No more connections at the moment"

Check = Callable[[ClientConnection, Request], Response | None]
"""One of the reasons to refuse a request: the answer if it applies."""

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
        self.origins = head_checks.Origins(origins)
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

    def _reject(self, reason: str, **fields: str) -> None:
        self._context.metrics.refused[reason] += 1
        self._context.log_throttle.log(logging.INFO, "connection refused", reason=reason, **fields)

    # What each endpoint asks: the answer to a request that is refused by its head, else None

    def check_socket(self, connection: ClientConnection, request: Request) -> Response | None:
        """The refusal of a WebSocket handshake."""
        checks = (self._rate, self._host, self._key, self._no_body, self._room, self._share)
        return self._first_refusal(connection, request, *checks, self._origin)

    def check_page(self, connection: ClientConnection, request: Request) -> Response | None:
        """The refusal of a page or download, which a slow client keeps for long, too."""
        checks = (self._rate, self._host, self._key, self._no_body, self._share_of_pages)
        return self._first_refusal(connection, request, *checks)

    def check_post(self, connection: ClientConnection, request: Request) -> Response | None:
        """The refusal of a POST, whose body is then not read."""
        checks = (self._rate_of_posts, self._host, self._key, self._room, self._share)
        return self._first_refusal(connection, request, *checks, self._origin)

    def check_decks(self, connection: ClientConnection, request: Request) -> Response | None:
        """The refusal of a request about decks.

        Pages of every origin may send them, unless the server is at a private address: browsers add
        no credential to them on their own.
        """
        checks = (self._rate_of_decks, self._host, self._site, self._key, self._room, self._share)
        return self._first_refusal(connection, request, *checks)

    def _first_refusal(
        self, connection: ClientConnection, request: Request, *checks: Check
    ) -> Response | None:
        self._identify(connection, request)
        refusals = (check(connection, request) for check in checks)
        return next(filter(None, refusals), None)

    def _identify(self, connection: ClientConnection, request: Request) -> None:
        """Count a service by its key, others by their address, also behind a trusted proxy."""
        seen = connection.seen = self._proxies.seen(connection.peer, request.headers)
        if seen.unread is not None:
            example = {"example": seen.unread[:_SHOWN]}
            self._log_throttle.log(
                logging.WARNING, "client address unreadable", example, counted=seen.address
            )
        budget, key = connection.budget_at(seen.address), None
        with suppress(MultipleValuesError):  # which `_key` refuses
            key = self._context.service.service_keys.find(_key_in(request.headers) or "")
        if key is not None:
            budget = self._context.budgets.key(key.id, self._context.clock())
        connection.charge_to(budget, key)

    # The checks

    def _rate(self, connection: ClientConnection, request: Request) -> Response | None:
        """503 for an address or key that is blocked until it owes nothing."""
        budget, now = connection.budget, self._context.clock()
        budget.admit(_request_weight(request.path), now)
        return self._over_rate(connection, budget.blocked(now), HTTPStatus.SERVICE_UNAVAILABLE)

    def _rate_of_posts(self, connection: ClientConnection, request: Request) -> Response | None:
        """429 for one that is blocked, or owes processor time."""
        budget, now = connection.budget, self._context.clock()
        budget.admit(_request_weight(request.path), now)
        return self._over_rate(connection, max(budget.blocked(now), budget.busy(now)))

    def _rate_of_decks(self, connection: ClientConnection, request: Request) -> Response | None:
        """429 for one that is over its rate, or owes processor time: it has no other limit."""
        budget, now = connection.budget, self._context.clock()
        wait = max(budget.admit(1.0, now, timed=True), budget.blocked(now))
        return self._over_rate(connection, wait)

    def _over_rate(
        self,
        connection: ClientConnection,
        wait: float,
        status: HTTPStatus = HTTPStatus.TOO_MANY_REQUESTS,
    ) -> Response | None:
        if not wait:
            return None
        self._reject("rate", address=connection.address)
        whose = "your address" if connection.service_key is None else "this service key"
        return unavailable(f"Too many requests from {whose}", wait, status)

    def _host(self, connection: ClientConnection, request: Request) -> Response | None:
        """421 for a request under a name that is not this server's."""
        refusal = head_checks.host_refused(self._hosts, request)
        if refusal is not None:
            self._reject("host")
        return refusal

    def _key(self, connection: ClientConnection, request: Request) -> Response | None:
        """401 for a key that is not valid, or none if one is needed; 400 for two."""
        if connection.service_key is not None:
            return None
        try:
            given = _key_in(request.headers)
        except MultipleValuesError:
            sentence = "The header Authorization occurs twice in the request.\n"
            refusal = response(HTTPStatus.BAD_REQUEST, sentence)
        else:
            if given is None and not connection.keys_only:
                return None
            sentence = "This port is for services: send `Authorization: Bearer KEY`."
            if given is not None:
                sentence = "This service key is not valid, or was revoked."
            refusal = unauthorized(sentence)
        self._reject("key")
        return refusal

    def _no_body(self, connection: ClientConnection, request: Request) -> Response | None:
        """400, 405 or 413 for a request with a body."""
        return head_checks.body_refused(
            request.method, connection.exchange.body_length, self._context.limits.message
        )

    def _room(self, connection: ClientConnection, request: Request) -> Response | None:
        """503 if there is no room for another connection that stays open."""
        full = len(self._registry.connections) > self._context.limits.connections
        if not (full or self._context.draining):
            return None
        self._reject("draining" if self._context.draining else "full")
        return unavailable(NO_ROOM)

    def _share(
        self, connection: ClientConnection, request: Request, *, factor: int = 1
    ) -> Response | None:
        """503 for a key with too many connections, or an address with `factor` times too many."""
        limits = self._context.limits
        of_key = connection.service_key is not None
        most = limits.key_connections if of_key else factor * limits.connections_per_address
        if connection.budget.connections <= most:
            return None
        self._reject("address", address=connection.address)
        return unavailable(NO_ROOM)

    def _share_of_pages(self, connection: ClientConnection, request: Request) -> Response | None:
        return self._share(connection, request, factor=PAGE_FACTOR)

    def _site(self, connection: ClientConnection, request: Request) -> Response | None:
        """403 for a page of another site that asks a server in its visitor's own network.

        Such a page could find servers there, and use up the limits of its visitor's address. With
        a GET whose answer it does not read, browsers send no `Origin`, but `Referer`, unless the
        page forbids that; and `Sec-Fetch-Site` only to `https` and loopback addresses. Without any
        of these it differs from a program by its `User-Agent`, and from an address that was typed
        by nothing.
        """
        private = is_private(self._own_host(connection, request) or "")
        if not private or self.origins.name(request):
            return None
        refusal = self._origin(connection, request, or_referer=True)
        return (
            refusal
            or head_checks.cross_site_refused(request)
            or head_checks.unnamed_page_refused(request)
        )

    def _origin(
        self, connection: ClientConnection, request: Request, *, or_referer: bool = False
    ) -> Response | None:
        """403 for a page of an origin that may not connect."""
        origin: str | None = None
        try:
            origin = head_checks.origin_of(request.headers, or_referer=or_referer)
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
        return response(HTTPStatus.FORBIDDEN, head_checks.NOT_THIS_ORIGIN)

    def _own_host(self, connection: ClientConnection, request: Request) -> str | None:
        """The host by which the client reaches this server; `Host` was checked before.

        What a proxy reports was not: it may serve names that another site has resolved to it.
        """
        seen = connection.seen.host
        return seen if seen and self._hosts.allows(seen) else request.headers.get("Host")


def _key_in(headers: Headers) -> str | None:
    """The service key that a request gives; MultipleValuesError if it gives two."""
    given = head_checks.bearer_of(headers)
    return given if given and given.startswith(_SERVICE_KEY) else None


def _request_weight(path: str) -> float:
    """The cost of a request for its client's address, in messages."""
    path = path.partition("?")[0]
    if path.startswith("/ws"):
        return HANDSHAKE
    return next((weight for what, weight in DOWNLOADS if what.search(path)), PAGE)
