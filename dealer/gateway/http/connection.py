"""HTTP connection: passes the head of the request to websockets, without a body."""

from __future__ import annotations

import re
from typing import Any, Protocol

from websockets.asyncio.server import Server, ServerConnection
from websockets.server import ServerProtocol

from dealer.gateway.http.request_head import END, MAX_HEAD, without_body_headers

EARLY = 16 * 1024
"""Bytes after the head that are kept until the handshake is answered."""

_REQUEST_LINE = re.compile(rb"[!-~]+ [!-~]+ HTTP/1\.[01]\r\n")


MAX_LINES = 128
"""Lines of a head that goes to an exchange."""

_EXCHANGED = re.compile(rb"POST (?P<rpc>/rpc) HTTP/|[A-Z]+ (?P<decks>/api/|/static/img/)")


class Exchange(Protocol):
    """A request that websockets does not handle, and its answer."""

    def receive(self, data: bytes) -> None:
        """Take the next bytes of the connection."""

    def time_out(self) -> None:
        """The request did not arrive in time."""


class HttpConnection(ServerConnection):
    """Separates the head of the request; `body` is the length that it announces, or CHUNKED.

    What follows the head is dropped, except up to `EARLY` bytes in `early`: frames that a client
    sent before its handshake was answered. A `POST /rpc` goes to an exchange instead, if
    `start_exchange` returns one, and the next request of the connection begins after it.
    """

    def __init__(self, protocol: ServerProtocol, server: Server, **settings: Any) -> None:
        super().__init__(protocol, server, **settings)
        self.body = 0
        self.early = bytearray()
        self._head: bytearray | None = bytearray()  # None once complete
        self._unreadable = False  # not HTTP: left to websockets
        self.exchange: Exchange | None = None

    def data_received(self, data: bytes) -> None:
        if self._unreadable:
            super().data_received(data)
        elif self.exchange is not None:
            self.exchange.receive(data)
        elif self._head is None:
            self.early += data[: EARLY - len(self.early)]
        else:
            self._collect(self._head, data)

    def frames_received(self, data: bytes) -> None:
        """Pass WebSocket frames to websockets."""
        super().data_received(data)

    def start_exchange(self, *, decks: bool) -> Exchange | None:
        """The exchange for a POST /rpc, or for `decks`; None where there is none for it."""
        return None

    def end_exchange(self) -> None:
        """Read the next request, from its head on."""
        self.exchange = None
        self._head = bytearray()

    def _collect(self, head: bytearray, data: bytes) -> None:
        searched = max(len(head) - len(END), 0)
        head += data
        end = head.find(END, searched)
        if (b"\n" in head and not _REQUEST_LINE.match(head)) or (end < 0 and len(head) > MAX_HEAD):
            self._unreadable = True
        elif end < 0:
            return
        self._head = None
        if self._unreadable:
            super().data_received(bytes(head))
            return
        end += len(END)
        # websockets itself refuses a head of more lines.
        kind = _EXCHANGED.match(head)
        if kind is not None and head.count(b"\n", 0, end) <= MAX_LINES:
            self.exchange = self.start_exchange(decks=kind["rpc"] is None)
        if self.exchange is not None:
            self.exchange.receive(bytes(head))
            return
        whole, self.body = without_body_headers(bytes(head[:end]))
        self.early += head[end : end + EARLY]
        super().data_received(whole)
