"""Request head of HTTP, separated from what follows it.

websockets reads no bodies: at `Content-Length` or `Transfer-Encoding` it drops the connection
without an answer, and it takes whatever follows the head for WebSocket frames. So the head is
passed on without the two headers, and the router knows the length that they announced.
"""

from __future__ import annotations

import re

END = b"\r\n\r\n"
MAX_HEAD = 32 * 1024
"""Bytes of a head that are buffered; websockets itself rejects the lines of a longer one."""

CHUNKED = -1
"""Instead of a body's length: the body is chunked, or has another transfer coding."""

_BODY_HEADER = re.compile(
    rb"\r\n(?:(?P<length>content-length)|transfer-encoding):[ \t]*(?P<value>[^\r\n]*)(?=\r\n)",
    re.IGNORECASE,
)


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
