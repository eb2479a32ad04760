"""HTTP answers to requests that are not let in, and what a request costs its client's address."""

from __future__ import annotations

import re
from http import HTTPStatus
from math import ceil

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.host_names import HostNames
from dealer.gateway.http import response
from dealer.gateway.request_head import CHUNKED

SECONDS = 5.0
"""After which a client may try again where nothing says when there will be room."""

HANDSHAKE = 2.0
"""What a WebSocket handshake costs its address, in messages."""

DOWNLOADS = (
    (re.compile(r"/bundle\.jsonl$"), 2.0),
    (re.compile(r"/(history|round-\d+)\.\w+$"), 10.0),
)
"""What making a bundle or a history costs."""

PAGE = 0.25
"""What any other request costs: a page is some thirty of them."""


def request_weight(path: str) -> float:
    """What a request costs its client's address, in messages."""
    path = path.partition("?")[0]
    if path.startswith("/ws"):
        return HANDSHAKE
    return next((weight for what, weight in DOWNLOADS if what.search(path)), PAGE)


def later(why: str, seconds: float = SECONDS) -> Response:
    """503: the client may try again after so many seconds."""
    sentence = f"{why}; try again later.\n"
    return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence, Retry_After=str(ceil(seconds)))


def host_refused(hosts: HostNames, request: Request) -> Response | None:
    """421 where the request came under a name that is not in `hosts`; None for any other."""
    try:
        allowed = hosts.allows(request.headers.get("Host"))
    except MultipleValuesError:
        return response(HTTPStatus.BAD_REQUEST, "The header Host stands twice in the request.\n")
    if allowed:
        return None
    return response(
        HTTPStatus.MISDIRECTED_REQUEST,
        "This server does not answer under the name in your browser's address. If it is the "
        "server's, its operator names it with --host-name (DEALER_HOST_NAME).\n",
    )


def cross_site_refused(request: Request) -> Response | None:
    """403 where a browser says that another site's page makes the request; None for any other."""
    if "cross-site" not in request.headers.get_all("Sec-Fetch-Site"):
        return None
    sentence = "Pages of other sites get no answer here; type the address yourself.\n"
    return response(HTTPStatus.FORBIDDEN, sentence)


def body_refused(method: str, length: int, most: int) -> Response:
    """400, 405 or 413: no request with a body is answered here.

    `length` is that of the body in bytes, or CHUNKED; `most` how long one could be.
    """
    if method not in ("GET", "HEAD"):
        return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is answered here.\n")
    if length != CHUNKED and length > most > 0:
        sentence = f"A request here has at most {most} bytes, and a GET has no body.\n"
        return response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
    sentence = "A GET has no body here: send the request again without one.\n"
    return response(HTTPStatus.BAD_REQUEST, sentence)
