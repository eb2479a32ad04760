"""The head of an HTTP request, cut off from what follows it.

websockets reads no bodies: at `Content-Length` or `Transfer-Encoding` it drops the connection
without an answer, and whatever follows the head it takes for WebSocket frames. So the head is
cut off here, without the two headers, and who answers the request knows what they announced.
"""

from __future__ import annotations

import re

END = b"\r\n\r\n"
MOST = 32 * 1024
"""Bytes of a head that are collected; the lines of a longer one websockets refuses itself."""

CHUNKED = -1
"""In the place of a body's length: it comes in chunks, or in another coding."""

_BODY_HEADER = re.compile(
    rb"\r\n(?:(?P<length>content-length)|transfer-encoding):[ \t]*(?P<value>[^\r\n]*)(?=\r\n)",
    re.IGNORECASE,
)


def without_body_headers(head: bytes) -> tuple[bytes, int]:
    """A whole head without what it says of a body, and the body's length in bytes.

    The length is `CHUNKED` where it is not known, because the body is coded or the headers
    contradict each other.
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
