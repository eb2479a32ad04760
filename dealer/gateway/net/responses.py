"""HTTP responses, and the headers that all of a type have."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from math import ceil

from websockets.datastructures import Headers
from websockets.http11 import Response

from dealer.gateway.net.host_names import normal_origin

PLAIN = "text/plain; charset=utf-8"
PAGE = "text/html; charset=utf-8"
PICTURE = "image/svg+xml"

UNKNOWN_SECONDS = 5.0
"""`Retry-After` if it is unknown when there will be room."""


def root_from(path: str) -> str:
    """The relative address of the server's first page from a page at `path`.

    Pages refer to the server by relative addresses, so that a proxy can serve it under any path.
    """
    return "../" * (path.count("/") - 1) or "./"


def framing(origins: Sequence[str] = ()) -> str:
    """The directive by which only pages of these origins may show a page in a frame."""
    named = [normal_origin(origin) or origin for origin in origins]
    return " ".join(("frame-ancestors", *(named or ("'none'",))))


def page_policy(origins: Sequence[str] = ()) -> str:
    """The Content-Security-Policy of pages; pages of `origins` may show them in a frame."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
        f"form-action 'none'; {framing(origins)}; "
        "require-trusted-types-for 'script'"
    )


POLICIES = {
    PAGE: {"Content-Security-Policy": page_policy(), "Referrer-Policy": "no-referrer"},
    PICTURE: {"Content-Security-Policy": f"default-src 'none'; {framing()}"},
}
"""Headers of pages and pictures, by type; on scripts and styles they would have no effect."""


def response(status: HTTPStatus, body: str | bytes, *, kind: str = PLAIN, **more: str) -> Response:
    """A complete answer; `more` are headers, with underscores for hyphens in their names."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in more.items()}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        named.setdefault("Allow", "GET, HEAD")
    if status != HTTPStatus.NOT_MODIFIED:
        named.setdefault("Content-Length", str(len(data)))
    return Response(status.value, status.phrase, Headers(headers_of(kind) | named), data)


def allowing(methods: str) -> Response:
    """204 for OPTIONS, with the methods that an address has."""
    headers = Headers({"Allow": methods, "Connection": "close", "Cache-Control": "no-store"})
    status = HTTPStatus.NO_CONTENT
    return Response(status.value, status.phrase, headers, b"")


def unavailable(
    why: str, seconds: float = UNKNOWN_SECONDS, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE
) -> Response:
    """503 or another status, with the seconds after which the client may try again."""
    return response(status, f"{why}; try again later.\n", Retry_After=str(ceil(seconds)))


def unauthorized(sentence: str) -> Response:
    """401 with the sentence."""
    return response(HTTPStatus.UNAUTHORIZED, f"{sentence}\n", WWW_Authenticate="Bearer")


def headers_of(kind: str) -> dict[str, str]:
    """The headers of every answer of this type."""
    fixed = {
        "Content-Type": kind,
        "Connection": "close",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return fixed | POLICIES.get(kind, {})
