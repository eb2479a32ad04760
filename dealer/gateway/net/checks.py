"""Which requests are refused by their heads: for their host, origin, site or body.

First what a head says, then the checks. Each `…_refused` returns the answer to a request that is
refused, and None for any other; a program asks them one after the other, in its own order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response

from dealer.gateway.net.host_names import EVERY, HostNames, is_own, name_of, normal_origin
from dealer.gateway.net.http import CHUNKED
from dealer.gateway.net.responses import response

NOT_THIS_ORIGIN = "Pages of this origin may not connect to this server.\n"

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_BEARER = re.compile(r"Bearer +(?P<token>[!-~]+)", re.IGNORECASE)


def bearer_of(headers: Headers) -> str | None:
    """The bearer credential of a request; None without one, or with another scheme.

    Raises MultipleValuesError if the header occurs twice.
    """
    found = _BEARER.fullmatch(headers.get("Authorization", "").strip())
    return None if found is None else found["token"]


def origin_of(headers: Headers, *, or_referer: bool = False) -> str | None:
    """The origin of the page that sends a request; without one the origin in `Referer`.

    Raises MultipleValuesError if the header occurs twice, ValueError for a `Referer` that is no
    URL.
    """
    origin, referer = headers.get("Origin"), headers.get("Referer")
    if or_referer and origin is None and referer is not None:
        page = urlsplit(referer)
        return f"{page.scheme}://{page.netloc}"
    return origin


class Origins:
    """The web origins whose pages may connect besides the server's own.

    `*` for all; None for those of this machine.
    """

    def __init__(self, origins: Sequence[str] | None) -> None:
        self._any = origins is not None and EVERY in origins
        named = None if origins is None else map(normal_origin, origins)
        self._named = None if named is None else frozenset(filter(None, named))

    def name(self, request: Request) -> bool:
        """Whether the operator has named the origin of the page that sends this request."""
        given = map(normal_origin, request.headers.get_all("Origin"))
        return self._any or (self._named is not None and not self._named.isdisjoint(given))

    def allow(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of `origin` may connect; clients that are not browsers send none."""
        if origin is None or self._any:
            return True
        if host is not None and is_own(origin, host):
            return True
        if self._named is None:
            return name_of(origin) in _LOCAL
        named = normal_origin(origin)
        return named is not None and named in self._named


def host_refused(hosts: HostNames, request: Request) -> Response | None:
    """421 for a request whose `Host` is not in `hosts`."""
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
    """403 for a request that a page of another site makes, by `Sec-Fetch-Site`.

    Browsers send it to `https` and to loopback addresses only.
    """
    if "cross-site" not in request.headers.get_all("Sec-Fetch-Site"):
        return None
    sentence = "Requests by pages of other sites are refused; type the address yourself.\n"
    return response(HTTPStatus.FORBIDDEN, sentence)


def unnamed_page_refused(request: Request) -> Response | None:
    """403 for a request of a browser that does not say whose page makes it.

    Programs name no page either, but they are no browser, as `User-Agent` says.
    """
    said = map(request.headers.get_all, ("Origin", "Referer", "Sec-Fetch-Site"))
    browser = any("Mozilla/" in agent for agent in request.headers.get_all("User-Agent"))
    if not browser or any(said):
        return None
    sentence = (
        "Your browser does not say which page asks: open decks with a program, by https, or from a "
        "page of this server.\n"
    )
    return response(HTTPStatus.FORBIDDEN, sentence)


def origin_refused(request: Request) -> Response | None:
    """403 for a request by a page of another origin than this server's, by `Origin`."""
    host = request.headers.get("Host", "")
    if all(is_own(origin, host) for origin in request.headers.get_all("Origin")):
        return None
    return response(HTTPStatus.FORBIDDEN, NOT_THIS_ORIGIN)


def body_refused(method: str, length: int, limit: int) -> Response | None:
    """400, 405 or 413 for a request with a body.

    `length` is the body's in bytes, or CHUNKED; `limit` the greatest one for which it matters
    that there is a body at all.
    """
    if not length:
        return None
    if method not in ("GET", "HEAD"):
        return response(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is allowed.\n")
    if length != CHUNKED and length > limit > 0:
        sentence = f"A request may have at most {limit} bytes, and a GET has no body.\n"
        return response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)
    sentence = "A GET must have no body: send the request again without one.\n"
    return response(HTTPStatus.BAD_REQUEST, sentence)
