"""Request head of HTTP/1.1 (RFC 9112): checked, and separated from what follows it.

What programs in front of this one may read in another way is refused: bare LF, folded lines, a
transfer coding in HTTP/1.0. websockets would close the connection without an answer, and h11 would
accept it.

websockets reads no bodies: at `Content-Length` or `Transfer-Encoding` it drops the connection
without an answer, and it takes whatever follows the head for WebSocket frames. So the head is
passed on without the two headers, and the router knows the length that they announced.

A proxy may serve this program under a path, and pass that path on or not: a request's target is
taken without it.
"""

from __future__ import annotations

import re

END = b"\r\n\r\n"
MAX_HEAD = 32 * 1024
"""Bytes of a head that are buffered; a longer one is refused."""

ROOT = "/"
"""The path of a server that has an origin of its own."""

CHUNKED = -1
"""Instead of a body's length: the body is chunked, or has another transfer coding."""

NO_BARE_LF = "The lines of a request's head end with CR and LF.\n"
NO_REQUEST_LINE = (
    "A request begins with a line like `GET /path HTTP/1.1`, in ASCII and with single spaces.\n"
)
NO_HEADER = "After its first line a request's head has lines like `Name: value`, none folded.\n"
NO_HOST = "A request in HTTP/1.1 has the header Host.\n"
NO_CODING = "A body in HTTP/1.0 has a Content-Length and no Transfer-Encoding.\n"

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BARE_LF = re.compile(rb"(?<!\r)\n")
_REQUEST_LINE = re.compile(_TOKEN + rb" [!-~]+ HTTP/1\.(?P<minor>[01])\r\n")
_HEADERS = re.compile(rb"(?:" + _TOKEN + rb":[\t -~\x80-\xff]*\r\n)*\r\n")
_HOST = re.compile(rb"\r\nhost:", re.IGNORECASE)
_CODING = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_BODY_HEADER = re.compile(
    rb"\r\n(?:(?P<length>content-length)|transfer-encoding):[ \t]*(?P<value>[^\r\n]*)(?=\r\n)",
    re.IGNORECASE,
)


def beginning_fault(head: bytearray, searched: int) -> str | None:
    """Why what has arrived of a head cannot become a valid one; None if it can.

    Bare LFs are looked for from the index `searched` on. Headers are left to `fault`.
    """
    if b"\n" not in head:
        return None
    if _BARE_LF.search(head, searched):
        return NO_BARE_LF
    return None if _REQUEST_LINE.match(head) else NO_REQUEST_LINE


def fault(head: bytes) -> str | None:
    """Why a complete head is not valid; None if it is."""
    if _BARE_LF.search(head):
        return NO_BARE_LF
    first = _REQUEST_LINE.match(head)
    if first is None:
        return NO_REQUEST_LINE
    if not _HEADERS.fullmatch(head, first.end()):
        return NO_HEADER
    if first["minor"] == b"1":
        return None if _HOST.search(head) else NO_HOST
    return NO_CODING if _CODING.search(head) else None


def prefix_in(head: bytes | bytearray, path: str) -> slice:
    """Where `path`, such as `/cards/`, is in a head's target, without its last slash.

    It is empty where the target is not below the path.
    """
    start = head.find(b" ") + 1
    end = start + len(path) - 1
    return slice(start, end if head.startswith(path.encode(), start) else start)


def without_body_headers(head: bytes) -> tuple[bytes, int]:
    """A complete head without its headers about a body, and the body's length in bytes.

    The length is `CHUNKED` where it is unknown, because the body is coded or the headers contradict
    each other.
    """
    lengths: set[bytes] = set()
    coded = False
    for found in _BODY_HEADER.finditer(head):
        if found["length"] is None:
            coded = True
        else:
            lengths.add(found["value"].strip())
    if not lengths and not coded:
        return head, 0
    head = _BODY_HEADER.sub(b"", head)
    if coded or len(lengths) > 1:
        return head, CHUNKED
    (length,) = lengths
    return head, int(length) if length.isdigit() and len(length) < 20 else CHUNKED
