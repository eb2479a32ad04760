"""The answers to requests that fail: a sentence for programs, a page for people.

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
from math import ceil

from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request, Response

from dealer import errors
from dealer.gateway.net.responses import PAGE, PLAIN, framing, response, root_from
from dealer.gateway.pages.appearance import Appearance
from dealer.languages.language import DEFAULT, Language, accepted

_RETRIED = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
_OF_TABLE = re.compile(r"/tables/(?P<table>[0-9a-f]{32})(?!/audit)(?:/|$)")
_HTML = re.compile(r"\btext/html\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)
_ELEMENTS = "/* Elements."
"""Where the colours of base.css end."""


def refusal_of(
    error: MultipleValuesError | errors.DealerError,
    *,
    limited: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
) -> Response:
    """The answer that an error of a request has: its sentence, and when to try again.

    `limited` is the status if a rate is exceeded.
    """
    match error:
        case MultipleValuesError():
            return response(HTTPStatus.BAD_REQUEST, "A header occurs twice in the request.\n")
        case errors.BadToken():
            return response(HTTPStatus.UNAUTHORIZED, f"{error}\n", WWW_Authenticate="Bearer")
        case errors.NotEntitled():
            return response(HTTPStatus.FORBIDDEN, f"{error}\n")
        case errors.TableArchived() | errors.PositionLost():
            return response(HTTPStatus.GONE, f"{error}\n")
        case errors.RateLimited():
            seconds = str(ceil(error.retry_after_ms / 1000))
            return response(limited, f"{error}\n", Retry_After=seconds)
        case errors.Overloaded() | errors.Unavailable():
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n", Retry_After="5")
        case errors.BadRequest():
            return response(HTTPStatus.BAD_REQUEST, f"{error}\n")
        case errors.Refused():
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")
        case _:
            sentence = "The log cannot be read at the moment; try again later.\n"
            return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence)


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
        language = accepted(", ".join(request.headers.get_all("Accept-Language")))
        page = self._page(status, sentence, request.path.partition("?")[0], language).encode()
        own = {
            "Content-Type": PAGE,
            "Content-Length": str(len(page)),
            "Content-Security-Policy": self._policy,
            "Referrer-Policy": "no-referrer",
            "Vary": "Accept, Accept-Language",
        }
        if (seconds := answer.headers.get("Retry-After")) is not None:
            own["Refresh"] = seconds  # the browser goes on without a click
        kept = [(name, value) for name, value in answer.headers.raw_items() if name not in own]
        headers = Headers([*kept, *own.items()])
        return Response(answer.status_code, answer.reason_phrase, headers, page)

    def _page(self, status: HTTPStatus, sentence: str, path: str, language: Language) -> str:
        texts = language.texts["errorPages"]
        page = self._template.format(
            lang=language.tag,
            direction=language.direction,
            brand=escape(self._appearance.title or "dealer"),
            title=escape(texts["titles"].get(str(status.value), status.phrase)),
            sentences=_sentences(status, sentence, language),
            style=self._style,
            ways=" ".join(_ways(status, path, language)),
        )
        return self._appearance.warn(page)

    @cached_property
    def _template(self) -> str:
        return _read("error.html")

    @cached_property
    def _style(self) -> str:
        theme = "".join(
            f"  {name}: {value};\n" for name, value in self._appearance.properties.items()
        )
        colours = _read("base.css").partition(_ELEMENTS)[0]
        own = f"{colours}:root {{\n{theme}}}\n{_read('error.css')}"
        return f"{own}{self._appearance.warning_style}".strip()

    @cached_property
    def _policy(self) -> str:
        digest = b64encode(sha256(self._style.encode()).digest()).decode()
        return (
            f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
            f"form-action 'none'; {self._framing}"
        )


def _wants_page(request: Request) -> bool:
    return any(map(_HTML.search, request.headers.get_all("Accept")))


def _sentences(status: HTTPStatus, sentence: str, language: Language) -> str:
    """The sentence, which is English; above it what the status means in another language."""
    if language.tag == DEFAULT:
        return f"<p>{escape(sentence)}</p>"
    means = language.texts["errorPages"]["sentences"].get(str(status.value))
    translated = "" if means is None else f"<p>{escape(means)}</p>\n"
    return f'{translated}<p class="detail" lang="{DEFAULT}" dir="ltr">{escape(sentence)}</p>'


def _ways(status: HTTPStatus, path: str, language: Language) -> list[str]:
    """Links: where the reader can go from here."""
    texts = language.texts["errorPages"]

    def link(address: str, name: str) -> str:
        return f'<a href="{address}">{escape(texts[name])}</a>'

    root = root_from(path)
    again = link("", "again")  # the empty address is the page itself
    ways = [again] if status in _RETRIED else []
    if status is HTTPStatus.MISDIRECTED_REQUEST:
        return [again]  # every page is refused under this name
    if status in (HTTPStatus.GONE, HTTPStatus.UNAUTHORIZED) and (match := _OF_TABLE.match(path)):
        ways.append(link(f"{root}tables/{match['table']}/audit", "audit"))
    return [*ways, link(root, "lobby")]


def _read(name: str) -> str:
    return (resources.files("dealer") / "web" / name).read_text("utf-8")
