"""Errors as pages, for people: the sentence that programs get, with a title and a way on.

A browser that opens an address asks for `text/html`; its scripts and other programs do not, and get
plain text. A page has its style inside: under a wrong host name, or above a rate limit, a
stylesheet would be refused like the page itself.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from html import escape
from http import HTTPStatus
from importlib import resources

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from dealer.gateway.http.appearance import Appearance
from dealer.gateway.http.responses import PAGE, PLAIN, framing

TITLES = {
    HTTPStatus.BAD_REQUEST: "This request cannot be read",
    HTTPStatus.UNAUTHORIZED: "Only for the players of this table",
    HTTPStatus.FORBIDDEN: "This request is refused",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.GONE: "This table is archived",
    HTTPStatus.MISDIRECTED_REQUEST: "This is not the server’s name",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.SERVICE_UNAVAILABLE: "Please try again in a moment",
}
"""Titles by status; others have the phrase of HTTP."""

_AGAIN = '<a href="">Try again</a>'  # the empty address is that of the page itself
_LOBBY = '<a href="/">All tables</a>'
_AUDIT = '<a href="/tables/{table}/audit">The audit page of this table</a>'
_RETRIED = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
_OF_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?!/audit)(?:/|$)")
_HTML = re.compile(r"\btext/html\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)
_ELEMENTS = "/* Elements."
"""Where the colours of base.css end."""


class ErrorPages:
    """Makes the pages; pages of `frame_ancestors` may show them in a frame."""

    def __init__(self, appearance: Appearance, frame_ancestors: Sequence[str] = ()) -> None:
        self._appearance = appearance
        self._framing = framing(frame_ancestors)

    def instead_of(self, request: Request, answer: Response) -> Response:
        """The page for a browser that would get `answer`, an error; any other answer unchanged."""
        if answer.status_code < HTTPStatus.BAD_REQUEST or request.method != "GET":
            return answer
        if answer.headers.get("Content-Type") != PLAIN or not _wants_page(request):
            return answer
        status = HTTPStatus(answer.status_code)
        sentence = bytes(answer.body).decode().strip()
        page = self._page(status, sentence, request.path.partition("?")[0]).encode()
        own = {
            "Content-Type": PAGE,
            "Content-Length": str(len(page)),
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
        }
        kept = [(name, value) for name, value in answer.headers.raw_items() if name not in own]
        headers = Headers([*kept, *own.items()])
        return Response(answer.status_code, answer.reason_phrase, headers, page)

    def _page(self, status: HTTPStatus, sentence: str, path: str) -> str:
        return self._template.format(
            brand=escape(self._appearance.title or "dealer"),
            title=escape(TITLES.get(status, status.phrase)),
            sentence=escape(sentence),
            style=self._style,
            ways=" ".join(_ways(status, path)),
        )

    @cached_property
    def _template(self) -> str:
        return _read("error.html")

    @cached_property
    def _style(self) -> str:
        theme = "".join(
            f"  {name}: {value};\n" for name, value in self._appearance.properties.items()
        )
        colours = _read("base.css").partition(_ELEMENTS)[0]
        return f"{colours}:root {{\n{theme}}}\n{_read('error.css')}".strip()

    @cached_property
    def _policy(self) -> str:
        digest = b64encode(sha256(self._style.encode()).digest()).decode()
        return (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
            f"form-action 'none'; {self._framing}"
        )


def _wants_page(request: Request) -> bool:
    return any(map(_HTML.search, request.headers.get_all("Accept")))


def _ways(status: HTTPStatus, path: str) -> list[str]:
    """Links: where the reader can go from here."""
    ways = [_AGAIN] if status in _RETRIED else []
    if status is HTTPStatus.MISDIRECTED_REQUEST:
        return [_AGAIN]  # every page is refused under this name
    if status in (HTTPStatus.GONE, HTTPStatus.UNAUTHORIZED) and (match := _OF_TABLE.match(path)):
        ways.append(_AUDIT.format(table=match["table"]))
    return [*ways, _LOBBY]


def _read(name: str) -> str:
    return (resources.files("dealer") / "web" / name).read_text("utf-8")
