"""A connection as far as its HTTP request: the head goes to websockets, a body does not."""

from __future__ import annotations

import re
from typing import Any

from websockets.asyncio.server import Server, ServerConnection
from websockets.server import ServerProtocol

from dealer.gateway.request_head import END, MOST, without_body_headers

EARLY = 16 * 1024
"""Bytes after the head that are kept until the request is answered."""

_REQUEST_LINE = re.compile(rb"[!-~]+ [!-~]+ HTTP/1\.[01]\r\n")


class HttpConnection(ServerConnection):
    """Cuts off the head of the request; `body` is the length that it announces, or CHUNKED.

    What follows the head is dropped, except up to `EARLY` bytes in `early`: frames that a client
    sent before its handshake was answered.
    """

    def __init__(self, protocol: ServerProtocol, server: Server, **settings: Any) -> None:
        super().__init__(protocol, server, **settings)
        self.body = 0
        self.early = bytearray()
        self._head: bytearray | None = bytearray()  # None once it is complete
        self._unreadable = False  # no head of HTTP: websockets decides what becomes of it

    def data_received(self, data: bytes) -> None:
        if self._unreadable:
            super().data_received(data)
        elif self._head is None:
            self.early += data[: EARLY - len(self.early)]
        else:
            self._collect(self._head, data)

    def frames_received(self, data: bytes) -> None:
        """Hand WebSocket frames to websockets."""
        super().data_received(data)

    def _collect(self, head: bytearray, data: bytes) -> None:
        searched = max(len(head) - len(END), 0)
        head += data
        end = head.find(END, searched)
        if (b"\n" in head and not _REQUEST_LINE.match(head)) or (end < 0 and len(head) > MOST):
            self._unreadable = True
        elif end < 0:
            return
        self._head = None
        if self._unreadable:
            super().data_received(bytes(head))
            return
        end += len(END)
        whole, self.body = without_body_headers(bytes(head[:end]))
        self.early += head[end : end + EARLY]
        super().data_received(whole)
