"""One guest's socket: frames are read where they arrive, and answered where they are read.

websockets does the handshake, the framing and the closing. In between there is no task and no
queue: a text frame goes straight to the session, and what the session says straight to the
transport. Whoever does not read what they are sent is let go of: their buffer has a bound, and
every wait here a deadline, after which the transport is aborted. (websockets' own keepalive and
close would wait behind a full buffer for ever.)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from websockets.asyncio.server import Server
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from dealer.gateway.framing import ends_between, ends_with_close, whole_text
from dealer.gateway.http_connection import EARLY, HttpConnection
from dealer.gateway.rate_limit import ClientBudget
from dealer.gateway.session import RATE, Session

if TYPE_CHECKING:
    from dealer.gateway.door import Door

UNSUPPORTED = 1003
TOO_BIG = 1009
NO_REQUEST = 4408
TOO_SLOW = 4508
SLICE = 4096
"""Bytes of many small frames that are read before it is looked whether the connection is closed."""

FRAGMENTS = 64
"""Of one message; its size has a limit of its own, but fragments may be empty."""


class GuestConnection(HttpConnection):
    """A WebSocket connection that belongs to a session; an `Outlet` for it."""

    def __init__(
        self, door: Door, protocol: ServerProtocol, server: Server, **settings: Any
    ) -> None:
        super().__init__(protocol, server, **settings)
        self.door = door
        self.peer = ""  # the IP address at the other end, a proxy's perhaps
        self.address = ""  # the client's, as limits count it, see `hops.client_network`
        self.budget: ClientBudget  # of this address, since `door.arrived`
        self.session: Session | None = None
        self.beat = 0  # at which of the door's beats it is asked whether it is there
        self.silent = 0  # pings in a row that nothing came after
        self._between = True  # whether what came so far ended with a frame
        self._deaf = False  # closed for its rate: nothing more is read but the answer to that
        self._fragments: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._holding = False
        self._patience: asyncio.TimerHandle | None = None  # for the handshake, then a request
        self._reading: asyncio.TimerHandle | None = None  # for the other end to read
        self._farewell: asyncio.TimerHandle | None = None  # for the other end to close
        self._send_frame = protocol.send_frame
        protocol.send_frame = self._send_if_granted  # type: ignore[method-assign]

    # As an outlet

    def write(self, data: bytes) -> None:
        """Send whole frames; after the close frame nothing is sent."""
        if self.protocol.state is OPEN and not self.transport.is_closing():
            self.transport.write(data)

    async def writable(self) -> bool:
        while self.paused and self.protocol.state is OPEN:
            await self._until_woken()
        return self.protocol.state is OPEN

    async def taken(self) -> bool:
        """The same before a handshake, for an answer in plain HTTP."""
        while self.paused and not self.transport.is_closing():
            await self._until_woken()
        return not self.transport.is_closing()

    async def _until_woken(self) -> None:
        future = self.loop.create_future()
        self._waiting.append(future)
        await future

    def hold(self) -> None:
        if not self._holding and not self.transport.is_closing():
            self._holding = True
            self.transport.pause_reading()

    def release(self) -> None:
        if self._holding and not self.paused and not self.transport.is_closing():
            self._holding = False
            self.transport.resume_reading()

    def end(self, code: int, reason: str) -> None:
        if self.protocol.state is not OPEN:
            return
        self._leave()
        self._deaf = code == RATE
        self.door.dropped(code)
        self.protocol.send_close(code, reason)
        self.send_data()
        self.release()
        self._expect_close()

    # Its life

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.door.arrived(self)
        self._wait_for_opening()

    def opened(self, table: str | None) -> None:
        """The handshake is done; now a request has to come."""
        self.session = Session(self.door.floor, self, table=table)
        self._wait_for_opening()
        early, self.early = self.early, bytearray()
        if len(early) == EARLY:
            self.end(TOO_BIG, "too much was sent before the handshake was answered")
        elif early:
            self.data_received(bytes(early))

    def answering(self) -> None:
        """It asked for a page: from here on the answer's own deadline counts."""
        self._cancel(self._patience)
        self._patience = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._patience, self._reading, self._farewell):
            self._cancel(timer)
        self._leave()
        self._wake()
        self.door.departed(self)

    def _leave(self) -> None:
        if self.session is not None:
            self.session.close()

    def _wait_for_opening(self) -> None:
        self._cancel(self._patience)
        self._patience = self.loop.call_later(self.door.floor.limits.opening, self._no_request)

    def _no_request(self) -> None:
        if self.session is None:
            self.transport.abort()
        elif not self.session.heard:
            self.end(NO_REQUEST, "no request came in time")

    def _expect_close(self) -> None:
        if self._farewell is None:
            delay = self.door.floor.limits.closing
            self._farewell = self.loop.call_later(delay, self.transport.abort)

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

    # Flow

    def pause_writing(self) -> None:
        super().pause_writing()
        # Whoever reads nothing may ask nothing: their answers would pile up.
        self.hold()
        self._cancel(self._reading)
        self._reading = self.loop.call_later(self.door.floor.limits.sending, self._too_slow)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel(self._reading)
        self._reading = None
        self.release()
        self._wake()

    def _too_slow(self) -> None:
        if self.session is None:
            self.transport.abort()
        self.end(TOO_SLOW, "too slow: reconnect and resume")

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # Frames

    def data_received(self, data: bytes) -> None:
        self.silent = 0
        protocol, session = self.protocol, self.session
        if session is None:
            super().data_received(data)
            return
        if self._between and not self._deaf:
            if protocol.state is OPEN and protocol.current_size is None:
                text = whole_text(data, limit=self.door.floor.limits.message)
                if text is not None:
                    session.receive(text)
                    return
            self._between = ends_between(data)
        for start in range(0, len(data), SLICE):
            if self._deaf:
                break
            self.frames_received(data[start : start + SLICE])
        if self._deaf and ends_with_close(data):
            self.transport.close()
        elif protocol.close_expected():
            self._leave()
            self._expect_close()

    def eof_received(self) -> None:
        super().eof_received()
        self._leave()

    def process_event(self, event: Frame | Request) -> None:  # type: ignore[override]
        if self.session is None or not isinstance(event, Frame):
            super().process_event(event)
            return
        opcode = event.opcode
        if opcode is Opcode.TEXT and event.fin:
            self.session.receive(bytes(event.data))
        elif opcode is Opcode.BINARY:
            self.end(UNSUPPORTED, "binary frames are not taken: send text")
        elif opcode is Opcode.TEXT or opcode is Opcode.CONT:
            self._assemble(event)
        elif opcode is Opcode.PONG:
            self.session.beaten()

    def _send_if_granted(self, frame: Frame) -> None:
        """Send a frame of websockets' own; a pong only where the ping was within the rate."""
        if frame.opcode is not Opcode.PONG or self.session is None or self.session.beaten():
            self._send_frame(frame)

    def _assemble(self, frame: Frame) -> None:
        assert self.session is not None
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > FRAGMENTS:
            self.end(TOO_BIG, "too many fragments")
        elif frame.fin:
            fragments, self._fragments = self._fragments, []
            self.session.receive(b"".join(fragments))
