"""HTTP connection: passes the head of the request to websockets, without a body."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Protocol

from websockets.asyncio.server import Server, ServerConnection
from websockets.server import ServerProtocol

from dealer.gateway.http.request_head import (
    END,
    MAX_HEAD,
    ROOT,
    beginning_fault,
    fault,
    prefix_in,
    without_body_headers,
)
from dealer.gateway.http.responses import response

EARLY = 16 * 1024
"""Bytes after the head that are kept until the handshake is answered."""

MAX_LINES = 130
"""Lines of a head that goes to an exchange: 128 headers, as websockets has at most."""

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
    `start_exchange` returns one, and the next request of the connection begins after it. The
    target of a request is passed on without `path`, under which a proxy may serve this port.
    """

    def __init__(
        self, protocol: ServerProtocol, server: Server, *, path: str = ROOT, **settings: Any
    ) -> None:
        super().__init__(protocol, server, **settings)
        self._path = path
        self.body = 0
        self.early = bytearray()
        self._head: bytearray | None = bytearray()  # None once complete
        self.exchange: Exchange | None = None

    def data_received(self, data: bytes) -> None:
        if self.exchange is not None:
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

    def linger(self) -> None:
        """Close for writing, and drop what arrives, until the client closes.

        To close at once would reset the connection if bytes arrive later, and the client could lose
        the answer.
        """
        if not self.transport.is_closing():
            self.transport.write_eof()

    def _collect(self, head: bytearray, data: bytes) -> None:
        searched = max(len(head) - len(END), 0)
        head += data
        while head.startswith(b"\r\n"):  # an empty line before a request, see RFC 9112, section 2.2
            del head[:2]
        end = head.find(END, searched)
        if end < 0:
            self._check_beginning(head, searched)
            return
        self._head = None
        end += len(END)
        if problem := fault(bytes(head[:end])):
            self._refuse(HTTPStatus.BAD_REQUEST, problem)
            return
        prefix = prefix_in(head, self._path)
        del head[prefix]
        end -= prefix.stop - prefix.start
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

    def _check_beginning(self, head: bytearray, searched: int) -> None:
        if problem := beginning_fault(head, searched):
            self._refuse(HTTPStatus.BAD_REQUEST, problem)
        elif len(head) > MAX_HEAD:
            sentence = f"The head of a request may have at most {MAX_HEAD} bytes.\n"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, sentence)

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answer a head that neither websockets nor an exchange gets; nothing more is read."""
        self._head = None
        self.transport.write(response(status, sentence).serialize())
        self.linger()
