"""HTTP answers to refused requests, and the cost of a request for its client's address."""

from __future__ import annotations

import re
from http import HTTPStatus
from ipaddress import ip_address
from math import ceil

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.http.host_names import HostNames, is_own, name_of
from dealer.gateway.http.request_head import CHUNKED
from dealer.gateway.http.responses import response

SECONDS = 5.0
"""`Retry-After` where it is unknown when there will be room."""

HANDSHAKE = 2.0
"""Cost of a WebSocket handshake for its address, in messages."""

DOWNLOADS = (
    (re.compile(r"/bundle\.jsonl$"), 2.0),
    (re.compile(r"/(history|round-\d+)\.\w+$"), 10.0),
)
"""Cost of making a bundle or a history."""

PAGE = 0.25
"""Cost of any other request; loading a page takes about thirty."""


def request_weight(path: str) -> float:
    """The cost of a request for its client's address, in messages."""
    path = path.partition("?")[0]
    if path.startswith("/ws"):
        return HANDSHAKE
    return next((weight for what, weight in DOWNLOADS if what.search(path)), PAGE)


def unavailable(
    why: str, seconds: float = SECONDS, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> Response:
    """503 or another status, with the seconds after which the client may try again."""
    return response(status, f"{why}; try again later.\n", Retry_After=str(ceil(seconds)))


def host_refused(hosts: HostNames, request: Request) -> Response | None:
    """421 for a request whose `Host` is not in `hosts`; None for any other."""
    try:
        allowed = hosts.allows(request.headers.get("Host"))
    except MultipleValuesError:
        return response(HTTPStatus.BAD_REQUEST, "The header Host occurs twice in the request.\n")
    if allowed:
        return None
    return response(
        HTTPStatus.MISDIRECTED_REQUEST,
        "This server does not answer under the name in your browser's address. If the name is "
        "correct, the operator has to add it with --host-name (DEALER_HOST_NAME).\n",
    )


def cross_site_refused(request: Request) -> Response | None:
    """403 for a request that a page of another site makes, by `Sec-Fetch-Site`; else None.

    Browsers send it to `https` and to loopback addresses only.
    """
    if "cross-site" not in request.headers.get_all("Sec-Fetch-Site"):
        return None
    sentence = "Requests by pages of other sites are refused; type the address yourself.\n"
    return response(HTTPStatus.FORBIDDEN, sentence)


def origin_refused(request: Request) -> Response | None:
    """403 for a request by a page of another origin than this server's, by `Origin`; else None."""
    host = request.headers.get("Host", "")
    if all(is_own(origin, host) for origin in request.headers.get_all("Origin")):
        return None
    return response(HTTPStatus.FORBIDDEN, "Pages of this origin may not connect to this server.\n")


def is_private(host: str) -> bool:
    """Whether this `Host` is a name or address of one machine or one network."""
    name = name_of(f"http://{host}") or ""
    try:
        return not ip_address(name.strip("[]")).is_global
    except ValueError:
        return name == "localhost" or name.endswith((".localhost", ".local"))


def body_refused(method: str, length: int, limit: int) -> Response:
    """400, 405 or 413 for a request with a body.

    `length` is that of the body in bytes, or CHUNKED; `limit` the greatest allowed one.
    """
    if method not in ("GET", "HEAD"):
        return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n")
    if length != CHUNKED and length > limit > 0:
        sentence = f"A request may have at most {limit} bytes, and a GET has no body.\n"
        return response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
    sentence = "A GET must have no body: send the request again without one.\n"
    return response(HTTPStatus.BAD_REQUEST, sentence)
