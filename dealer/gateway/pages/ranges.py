"""Byte ranges and entity tags (RFC 9110, sections 8.8, 13 and 14) of what cannot change.

- One range of bytes is answered with 206: `0-499`, `500-`, or the suffix `-500`. Several ranges,
  other units and malformed ones are ignored, so that the whole is sent; a range that begins behind
  the end gets 416 with the length.
- `If-Range` has the strong tag of what the client has a part of. Another tag, a weak one, or a
  date (no answer here has a Last-Modified) means the whole.
- A range is one of the bytes without compression: a request for one gets these, whatever it
  accepts. Their tag is strong. The compressed bytes of the same content have the same tag as a weak
  one, because another version of zlib makes other bytes of it.
- What may change has `Accept-Ranges: none` and no tag.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import NamedTuple

from websockets.http11 import Request, Response

from dealer.gateway.net.responses import response

_ONE_RANGE = re.compile(r"bytes=[ \t,]*(?P<first>[0-9]*)-(?P<last>[0-9]*)[ \t,]*", re.IGNORECASE)
_TAGS = re.compile(r'(?:W/)?("[^"]*")')
_DIGITS = 20


class Span(NamedTuple):
    """The bytes from index `first` up to, without, `stop`, of `total`."""

    first: int
    stop: int
    total: int

    @property
    def header(self) -> str:
        """The Content-Range of an answer with these bytes."""
        return f"bytes {self.first}-{self.stop - 1}/{self.total}"


def weak(etag: str) -> str:
    """The tag for the compressed bytes of the same content."""
    return f"W/{etag}"


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has this content, compressed or not (`If-None-Match`)."""
    given = ", ".join(request.headers.get_all("If-None-Match"))
    return bool(etag) and (given.strip() == "*" or etag in _TAGS.findall(given))


def asks_range(request: Request) -> bool:
    """Whether one well-formed range is asked for."""
    return _range_in(request) is not None


def span_of(request: Request, *, etag: str, length: int) -> Span | Response | None:
    """The range that is asked for of `length` bytes with this strong tag.

    None for all of them; the answer 416 if the range has none of them.
    """
    asked = _range_in(request)
    condition = request.headers.get("If-Range", etag)
    if asked is None or not etag or condition.strip() != etag:
        return None
    first, last = asked
    if first is None:
        suffix = 0 if last is None else last
        if suffix and not length:
            return None
        first, last = (max(length - suffix, 0) if suffix else length), None
    if first >= length:
        sentence = f"This has {length} bytes, and the range begins behind them.\n"
        return response(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            sentence,
            Content_Range=f"bytes */{length}",
            Accept_Ranges="bytes",
        )
    return Span(first, length if last is None else min(last + 1, length), length)


def _range_in(request: Request) -> tuple[int | None, int | None] | None:
    """First and last byte of the one range of a GET; without a first one, `last` is the length."""
    match = _ONE_RANGE.fullmatch(", ".join(request.headers.get_all("Range")).strip())
    if request.method != "GET" or match is None:
        return None
    first, last = _number(match["first"]), _number(match["last"])
    if first is None and last is None:
        return None
    return None if first is not None and last is not None and last < first else (first, last)


def _number(digits: str) -> int | None:
    """The number; one of more digits than any length is as good as the largest."""
    if not digits:
        return None
    return int(digits.lstrip("0") or "0") if len(digits.lstrip("0")) < _DIGITS else 10**_DIGITS
