"""WebSocket connection of one client: frames are handled in the callback that receives them.

websockets does the handshake, the framing and the closing. In between there is no task and no
queue: a text frame goes directly to the dispatcher, and answers directly to the transport. Clients
that do not read are disconnected: their buffer has a limit, and every wait a deadline after which
the transport is aborted. (Keepalive and close of websockets would wait behind a full buffer without
a limit.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from websockets.asyncio.server import Server
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.http.connection import EARLY, Exchange
from dealer.gateway.limits import Limits
from dealer.gateway.rpc.dispatcher import Dispatcher

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled part of websockets
    from websockets.utils import apply_mask

SLICE = 4096
"""Bytes of many small frames that are read between two checks whether the connection is closed."""

MAX_FRAGMENTS = 64
"""Fragments of one message; its size has its own limit, but fragments may be empty."""

_FINAL_TEXT = 0x81
_MASKED = 0x80
_LENGTH = 0x7F
_CLOSE = 0x88
_CLOSE_HEAD = 6  # with the mask
_LONGEST_CLOSE = _CLOSE_HEAD + 125


def _discard(data: bytes) -> None:
    """For what is written after the close frame, or before the handshake."""


class ConnectionCallbacks(NamedTuple):
    """Called by a connection: when it is made, lost, and closed by the server with a code.

    `on_connect` sets its `peer`, `address` and `budget`; `on_exchange` starts the exchange of a
    POST /rpc or, if it is True, of a request about decks, if there is one.
    """

    on_connect: Callable[[PlayerConnection], None]
    on_disconnect: Callable[[PlayerConnection], None]
    on_close: Callable[[CloseCode], None]
    on_exchange: Callable[[ClientConnection, bool], Exchange | None]


class PlayerConnection(ClientConnection):
    """A client's connection; as a `Transport` it is what the client's session writes to.

    `beat` is the keepalive beat at which it is pinged, `silent` the pings in a row that nothing
    followed.
    """

    def __init__(
        self,
        callbacks: ConnectionCallbacks,
        limits: Limits,
        protocol: ServerProtocol,
        server: Server,
        **settings: Any,
    ) -> None:
        super().__init__(limits, protocol, server, **settings)
        self._callbacks = callbacks
        self.dispatcher: Dispatcher | None = None  # from the end of the handshake on
        self.beat = 0
        self.silent = 0
        self._between_frames = True  # whether the data so far ended with a frame
        self._rate_limited = False  # closed for its rate: only the client's close frame is read
        self._fragments: list[bytes] = []
        self._send_timer: asyncio.TimerHandle | None = None  # a full write buffer
        self.write: Callable[[bytes], None] = _discard  # the transport's while it is open
        self._send_frame = protocol.send_frame
        protocol.send_frame = self._send_library_frame  # type: ignore[method-assign]

    # Transport

    async def drained(self) -> bool:
        while self.paused and self.protocol.state is OPEN:
            await self._wait_for_drain()
        return self.protocol.state is OPEN

    def close_with(self, code: CloseCode, reason: str) -> None:
        if self.protocol.state is not OPEN:
            return
        self._end_session()
        self._rate_limited = code is CloseCode.RATE_LIMITED
        self._callbacks.on_close(code)
        self.protocol.send_close(code, reason)
        self.send_data()
        self.resume()
        self._start_close_timer()

    def end_service(self) -> None:
        """End the connection of a service whose key was revoked."""
        if self.dispatcher is None:
            self.transport.abort()
        else:
            self.close_with(CloseCode.KEY_REVOKED, "the service key was revoked")

    # Lifecycle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._callbacks.on_connect(self)
        super().connection_made(transport)

    def start_exchange(self, *, decks: bool) -> Exchange | None:
        return self._callbacks.on_exchange(self, decks)

    def handshake_done(self, dispatcher: Dispatcher) -> None:
        """Dispatch the client's frames from now on, beginning with those it sent early."""
        self.dispatcher = dispatcher
        self.write = self.transport.write
        self._start_open_timer()
        early, self.early = self.early, bytearray()
        if len(early) == EARLY:
            self.close_with(
                CloseCode.MESSAGE_TOO_BIG, "too much was sent before the handshake was answered"
            )
        elif early:
            self.data_received(bytes(early))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel(self._send_timer)
        self._end_session()
        self._wake_drain_waiters()
        self._callbacks.on_disconnect(self)

    def _end_session(self) -> None:
        self.write = _discard  # nothing is sent after the close frame
        if self.dispatcher is not None:
            self.dispatcher.close()

    def _on_open_timeout(self) -> None:
        if self.dispatcher is None:
            super()._on_open_timeout()
        elif not self.dispatcher.request_seen:
            self.close_with(CloseCode.NO_REQUEST, "no request came in time")

    # Flow control

    def pause_writing(self) -> None:
        super().pause_writing()
        # A client that does not read may not send requests: their answers would accumulate.
        self.pause()
        self._cancel(self._send_timer)
        self._send_timer = self.loop.call_later(self.sending, self._on_send_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel(self._send_timer)
        self._send_timer = None
        self.resume()
        self._wake_drain_waiters()

    def _on_send_timeout(self) -> None:
        if self.dispatcher is None:
            self.transport.abort()
        self.close_with(CloseCode.TOO_SLOW, "too slow: reconnect and resume")

    # Frames

    def data_received(self, data: bytes) -> None:
        self.silent = 0
        dispatcher = self.dispatcher
        if dispatcher is None:
            super().data_received(data)
            return
        if self._between_frames and not self._rate_limited:
            if self.write is not _discard and not self._fragments:
                text = parse_single_text_frame(data, limit=self.limits.message)
                if text is not None:
                    dispatcher.receive(text)
                    return
            self._between_frames = ends_on_frame_boundary(data)
        for start in range(0, len(data), SLICE):
            if self._rate_limited:
                break
            self.frames_received(data[start : start + SLICE])
        if self._rate_limited and ends_with_close(data):
            self.transport.close()
        elif self.protocol.close_expected():
            self._end_session()
            self._start_close_timer()

    def eof_received(self) -> None:
        super().eof_received()
        self._end_session()

    def process_event(self, event: Frame | Request) -> None:  # type: ignore[override]
        if self.dispatcher is None or not isinstance(event, Frame):
            super().process_event(event)
            return
        if self.protocol.state is not OPEN:
            self.write = _discard  # the close frame that followed was answered already
        opcode = event.opcode
        if opcode is Opcode.TEXT and event.fin:
            self.dispatcher.receive(bytes(event.data))
        elif opcode is Opcode.BINARY:
            self.close_with(CloseCode.UNSUPPORTED_DATA, "binary frames are not accepted: send text")
        elif opcode is Opcode.TEXT or opcode is Opcode.CONT:
            self._assemble(event)
        elif opcode is Opcode.PONG:
            self.dispatcher.on_ping()

    def _send_library_frame(self, frame: Frame) -> None:
        """Send a frame of websockets itself; a pong only if the ping was within the rate."""
        dispatcher = self.dispatcher
        if frame.opcode is not Opcode.PONG or dispatcher is None or dispatcher.on_ping():
            self._send_frame(frame)

    def _assemble(self, frame: Frame) -> None:
        assert self.dispatcher is not None
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > MAX_FRAGMENTS:
            self.close_with(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
        elif frame.fin:
            fragments, self._fragments = self._fragments, []
            self.dispatcher.receive(b"".join(fragments))


def parse_single_text_frame(data: bytes, *, limit: int) -> bytes | None:
    """The payload, at most `limit` bytes, if `data` is one final, masked text frame; else None."""
    size = len(data)
    if size < 6 or data[0] != _FINAL_TEXT:
        return None
    length, mask = data[1] - _MASKED, 2
    if length == 126:
        length, mask = int.from_bytes(data[2:4], "big"), 4
    elif length == 127:
        return None
    start = mask + 4
    if length < 0 or length > limit or size != start + length:
        return None
    return apply_mask(data[start:], data[mask:start])


def ends_on_frame_boundary(data: bytes) -> bool:
    """Whether `data`, which begins with a frame, also ends with one."""
    at, size = 0, len(data)
    while at < size:
        if size - at < 2:
            return False
        length, head = data[at + 1] & _LENGTH, 2
        if length >= 126:
            head = 4 if length == 126 else 10
            length = int.from_bytes(data[at + 2 : at + head], "big")
        if data[at + 1] & _MASKED:
            head += 4
        at += head + length
    return at == size


def ends_with_close(data: bytes) -> bool:
    """Whether the last bytes look like a masked close frame, the last frame that a client sends.

    It serves a connection whose other frames are no longer read, so that their ends are unknown.
    """
    longest = min(_LONGEST_CLOSE, len(data))
    return any(
        data[-size] == _CLOSE and data[1 - size] == _MASKED | (size - _CLOSE_HEAD)
        for size in range(_CLOSE_HEAD, longest + 1)
    )
