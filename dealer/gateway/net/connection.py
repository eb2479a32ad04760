"""The life of a connection: one owner of its states and deadlines, from `accept` to its end.

A connection is an `asyncio.Protocol`. While it speaks HTTP, `HttpExchange` reads one request after
the other with h11; after a handshake, frames are read by the sans-I/O protocol of websockets, but
for the most frequent ones (`websocket.py`). Neither has tasks, queues or timers. Everything happens
in the callback that receives bytes: a request is checked and run, a frame goes to the receiver,
answers go to the transport.

| state | since | deadline (limit) | then |
|---|---|---|---|
| ACCEPTED | accepted; no byte of a request | `opening` | aborted |
| REQUEST | its first byte | the same, or `opening` | 408, or aborted if the head is not complete |
| ANSWERING | the request is complete | none but of a full buffer | |
| IDLE | answered, and kept for another request | `idle` | closed |
| UPGRADED | the handshake is answered | `opening` | OPEN if a request came, else closed with 4408 |
| OPEN | | pings: two without any byte after them | closed with 4508 |
| DRAINING | its turn in a drain | of the drain | closed with 1012 |
| CLOSING | one side has said that it ends | `closing` | aborted |
| GONE | the socket is closed | | |

                 ┌── IDLE ◀─┐
                 ▼          │
    ACCEPTED ─▶ REQUEST ─▶ ANSWERING ─▶ CLOSING ─▶ GONE       (GONE follows any state
                 │                         ▲                   when the client disappears)
                 └─▶ UPGRADED ─▶ OPEN ─▶ DRAINING

In each state a client that does not read has a deadline of its own: from a full write buffer
(`buffer` bytes) on, nothing more is read from it, so that it cannot cause more answers, and after
`sending` seconds it is closed with 4508 or, in HTTP, aborted. A closing that the client does not
answer ends after `closing`: no wait is without a limit. The pings and the drain are timed for all
connections at once by the program (`silent`, `drain`).

What is buffered of a client is bounded: a head by `MAX_HEAD`, a body and a message by `message`.
While a request with a body is answered, nothing is read; else what arrives then is dropped, because
only so the end of the connection is noticed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from http import HTTPStatus
from time import thread_time
from typing import cast

from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.net.http import ROOT, EarlyAnswer, HttpExchange
from dealer.gateway.net.responses import response
from dealer.gateway.net.websocket import (
    PONG,
    FrameReader,
    FrameRefused,
    Receiver,
    SelectSubprotocol,
    new_protocol,
    parse_single_text_frame,
)

UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
"""The status after which no connection is kept."""


class State(Enum):
    """The states of a connection, see above."""

    ACCEPTED = auto()
    REQUEST = auto()
    ANSWERING = auto()
    IDLE = auto()
    UPGRADED = auto()
    OPEN = auto()
    DRAINING = auto()
    CLOSING = auto()
    GONE = auto()


_SPEAKING = (State.UPGRADED, State.OPEN, State.DRAINING)
_ENDED = (State.CLOSING, State.GONE)


def _discard(data: bytes) -> None:
    """For what is written after the close frame, or before the handshake."""


class Connection(asyncio.Protocol):
    """A connection to a server under `path`; a subclass says what it is for.

    `keeps` and `check` are called with the head of each request, `run` with an accepted one. Now or
    later the program calls `answer`; or `begin_answer` and what follows it; or, at once, `upgrade`
    and `open`. `write` sends whole frames, or nothing before and after a WebSocket is open.
    `paused` says that the write buffer is over its limit. `silent` are the pings in a row that
    nothing followed; the program counts them.
    """

    def __init__(self, limits: Limits, *, path: str = ROOT) -> None:
        self.limits = limits
        self.sending = limits.sending  # seconds until the client has read a full write buffer
        self.state = State.ACCEPTED
        self.transport: asyncio.Transport  # from `connection_made` on
        self.receiver: Receiver | None = None  # from the end of the handshake on
        self.write: Callable[[bytes], None] = _discard
        self._receive: Callable[[bytes], None] = _discard  # the receiver's
        self.paused = False
        self.silent = 0
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._exchange = HttpExchange(limits.message, path)
        self._refusal: Response | None = None
        self._kept = False  # whether the connection outlasts the request
        self._left = b""  # of what was read, the part after the last request
        self._frames: FrameReader | None = None  # from the end of the handshake on
        self._whole_frames = False  # open, no message begun, and no part of a frame was read
        self._reading_paused = False
        self._deadline: asyncio.TimerHandle | None = None  # of the state
        self._send_deadline: asyncio.TimerHandle | None = None  # of a full write buffer
        self._waiters: list[asyncio.Future[None]] = []

    # What a subclass fills

    def keeps(self, request: Request) -> bool:
        """Whether the request may have a body, and the connection is kept after the answer.

        Else a body is not read, and `check` refuses the request.
        """
        return False

    def check(self, request: Request) -> Response | None:
        """The answer to a request that is refused by its head; None for any other."""
        raise NotImplementedError

    def run(self, request: Request, body: bytes) -> None:
        """Answer a request, now or later."""
        raise NotImplementedError

    def answered(self, status: int) -> None:
        """A request whose head was read gets an answer with this status."""

    def spent(self, seconds: float) -> None:
        """So much processor time was spent on reading a request with a body."""

    def closes(self, code: CloseCode) -> None:
        """The server closes the WebSocket with this code."""

    def made(self) -> None:
        """The connection was accepted."""

    def lost(self) -> None:
        """The connection is gone."""

    # States

    @property
    def head_only(self) -> bool:
        """Whether the answer to the request has no body."""
        return self._exchange.head_only

    @property
    def body_length(self) -> int:
        """What the head of the request says of its body: its bytes, or CHUNKED."""
        return self._exchange.body_length

    @property
    def speaks(self) -> bool:
        """Whether the WebSocket is open."""
        return self.state in _SPEAKING

    def _enter(
        self, state: State, seconds: float | None = None, then: Callable[[], None] | None = None
    ) -> None:
        """Go to a state; after so many `seconds` in it, `then` is called."""
        self.state = state
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None and then is not None:
            self._deadline = self._loop.call_later(seconds, then)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(self.limits.buffer)
        self._enter(State.ACCEPTED, self.limits.opening, self._on_late_request)
        self.made()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(State.GONE)
        self._end_session()
        if self._send_deadline is not None:
            self._send_deadline.cancel()
        self._wake_waiters()
        self.lost()

    def eof_received(self) -> None:
        """The client has closed its half: the transport sends what it has, and closes the other."""
        self._end()

    def abort(self) -> None:
        """Close at once, and send nothing more."""
        self._end()
        self.transport.abort()

    def close_if_idle(self) -> None:
        """Close a connection that is kept and not used."""
        if self.state is State.IDLE:
            self.transport.close()

    def _end(self) -> None:
        """Nothing more is said: whatever else happens, the socket is closed at the deadline."""
        self._end_session()
        if self.state not in _ENDED:
            self._enter(State.CLOSING, self.limits.closing, self.transport.abort)

    def _end_session(self) -> None:
        self.write = _discard  # nothing is sent after the close frame
        self._whole_frames = False
        if self.receiver is not None:
            self.receiver.close()

    async def wait_closed(self) -> None:
        while self.state is not State.GONE:
            await self._wait()

    # Flow control

    def pause_writing(self) -> None:
        self.paused = True
        # A client that does not read may not send requests: their answers would accumulate.
        self.pause()
        self._send_deadline = self._loop.call_later(self.sending, self._on_slow_reader)

    def resume_writing(self) -> None:
        self.paused = False
        if self._send_deadline is not None:
            self._send_deadline.cancel()
        self.resume()
        self._wake_waiters()

    def _on_slow_reader(self) -> None:
        if self._frames is None:
            self.abort()
        self.close_with(CloseCode.TOO_SLOW, "too slow: reconnect and resume")

    def pause(self) -> None:
        """Stop reading."""
        if not self._reading_paused and not self.transport.is_closing():
            self._reading_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Start reading again, unless the client does not read, or waits for an answer."""
        if self.paused or (self._kept and self.state is State.ANSWERING):
            return
        if self._reading_paused and not self.transport.is_closing():
            if self._left:
                # In a step of its own: else each pipelined request would be a level of recursion.
                self._loop.call_soon(self._read_what_is_left)
                return
            self._reading_paused = False
            self.transport.resume_reading()

    async def drained(self) -> bool:
        """Wait until the write buffer is below its limit; False once the connection ends."""
        while self.paused and not self._is_ending():
            await self._wait()
        return not self._is_ending()

    def _is_ending(self) -> bool:
        return self.state in _ENDED or self.transport.is_closing()

    async def _wait(self) -> None:
        future = self._loop.create_future()
        self._waiters.append(future)
        await future

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    def wait_for_reader(self, seconds: float) -> None:
        """Wait so long for a client that does not read, for an answer that is made as it is read.

        The kernel would take megabytes of it, and then report no progress for minutes of a slow
        client: it may hold no more than the write buffer of what it has not yet sent.
        """
        self.sending = seconds
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, self.limits.buffer)

    # Requests

    def data_received(self, data: bytes) -> None:
        self.silent = 0
        if self._whole_frames:
            text = parse_single_text_frame(data, self.limits.message)
            if text is not None:
                self._receive(text)
                return
        if self._frames is not None:
            self._frames_received(self._frames, data)
        elif self.state in (State.ACCEPTED, State.REQUEST, State.IDLE):
            self._request_received(data)

    def _request_received(self, data: bytes) -> None:
        if self.state is State.IDLE:
            if data == b"\r\n":  # an empty line is skipped
                return
            self._enter(State.REQUEST, self.limits.opening, self._on_late_request)
        self.state = State.REQUEST  # of one that was just accepted: its deadline goes on
        exchange, started_at, complete = self._exchange, thread_time(), False
        try:
            if exchange.request is None:
                if not exchange.receive_head(data):
                    return
                data = b""
                self._begin(exchange, cast("Request", exchange.request))
            complete = self.state is State.REQUEST and exchange.receive_body(data)
            if self.state is State.REQUEST and exchange.waits_for_continue:
                self.transport.write(exchange.go_on())
        except EarlyAnswer as early:
            self.answer(early.answer, close=True)
        if self._kept:
            self.spent(thread_time() - started_at)
        if complete:
            self._run(exchange)

    def _begin(self, exchange: HttpExchange, request: Request) -> None:
        self._kept = self.keeps(request)
        self._refusal = self.check(request)
        if self._refusal is not None and (not self._kept or exchange.waits_for_continue):
            self.answer(self._refusal, close=True)

    def _run(self, exchange: HttpExchange) -> None:
        self._enter(State.ANSWERING)
        if self._kept:
            self.pause()
        if self._refusal is not None:
            # Its body was read: the connection can be kept, and the client reads the answer.
            self.answer(self._refusal)
        else:
            self.run(cast("Request", exchange.request), bytes(exchange.body))
        if self.receiver is not None and (early := exchange.left):
            self.data_received(early)  # frames that the client sent with its handshake

    def _on_late_request(self) -> None:
        if self._exchange.request is None:
            self.abort()
        else:
            sentence = "The request was not sent in time.\n"
            self.answer(response(HTTPStatus.REQUEST_TIMEOUT, sentence), close=True)

    def answer(self, answer: Response, *, close: bool = False) -> None:
        """Write a whole answer, unless there was one; with `close`, end the connection after it."""
        if self.state not in (State.REQUEST, State.ANSWERING):
            return
        kept = self._kept and not close and answer.status_code != UNAVAILABLE
        if self._exchange.request is not None:
            self.answered(answer.status_code)
        try:
            self.transport.write(self._exchange.answer(answer, close=not kept))
        except Exception:
            self.abort()
            raise
        if kept and self._exchange.done:
            self._next_request()
        else:
            self._linger()

    def begin_answer(self, answer: Response, block: bytes) -> None:
        """Write the head of a long answer, and its first bytes."""
        self.transport.write(self._exchange.begin_answer(answer, block))

    def go_on_answering(self, block: bytes) -> None:
        """Write the next bytes of a long answer; wait for `drained` before each call."""
        self.transport.write(self._exchange.go_on_answering(block))

    def end_answer(self) -> None:
        """End a long answer, and the connection when the client has read it."""
        self.transport.write(self._exchange.end_answer())
        self._enter(State.CLOSING, self.sending, self.transport.abort)
        self.transport.close()

    def _next_request(self) -> None:
        """Read the next request, whose beginning may have arrived with the last one."""
        self._left = self._exchange.left.removeprefix(b"\r\n")
        self._exchange = HttpExchange(self.limits.message, self._path)
        self._kept, self._refusal = False, None
        if self._left:
            self._enter(State.REQUEST)  # with a deadline once the answer is written
        else:
            self._enter(State.IDLE, self.limits.idle, self.transport.close)
        self.resume()

    def _read_what_is_left(self) -> None:
        left = self._left
        if left and not self.transport.is_closing():
            self._left = b""
            self._enter(State.REQUEST, self.limits.opening, self._on_late_request)
            self.resume()
            self.data_received(left)

    def _linger(self) -> None:
        """Close for writing, and drop what arrives, until the client closes.

        To close at once would reset the connection if bytes arrive later, and the client could lose
        the answer. A client that has not read all of it has the time of a slow one.
        """
        unsent = self.sending if self.transport.get_write_buffer_size() else 0.0
        self._enter(State.CLOSING, self.limits.closing + unsent, self.transport.abort)
        self._half_close()
        self.resume()

    def _half_close(self) -> None:
        with suppress(OSError, RuntimeError):  # uvloop raises the latter where it closes already
            self.transport.write_eof()

    # WebSocket

    def upgrade(self, request: Request, select: SelectSubprotocol | None = None) -> bool:
        """Answer a handshake; whether it was accepted. Then `open` has to follow."""
        protocol = new_protocol(self.limits.message, select)
        answer = protocol.accept(request)
        if answer.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self.answer(answer)
            return False
        self.transport.write(answer.serialize())
        self._frames = FrameReader(protocol)
        del self._exchange
        return True

    def open(self, receiver: Receiver) -> None:
        """Pass the client's messages to `receiver` from now on."""
        self.receiver, self._receive = receiver, receiver.receive
        self.write = self.transport.write
        self._whole_frames = True
        self._enter(State.UPGRADED, self.limits.opening, self._on_open_timeout)

    def _on_open_timeout(self) -> None:
        assert self.receiver is not None
        if self.receiver.request_seen:
            self._enter(State.OPEN)
        else:
            self.close_with(CloseCode.NO_REQUEST, "no request came in time")

    def drain(self) -> None:
        """Close when everything that was received is answered."""
        if self.receiver is not None and self.speaks:
            self._enter(State.DRAINING)
            self.receiver.finish()

    def close_with(self, code: CloseCode, reason: str) -> None:
        """Send a close frame, unless there was one, and end the session."""
        if self._frames is None or not self.speaks:
            return
        self.closes(code)
        self._frames.protocol.send_close(code, reason)
        self._write_library_frames(self._frames.protocol)
        self._end()
        if code is CloseCode.RATE_LIMITED:
            # Nothing of a flood is read any more, not even its close frame, after which the client
            # expects that this side ends: it ends now.
            self._frames = None
            self._half_close()
        self.resume()

    def _frames_received(self, reader: FrameReader, data: bytes) -> None:
        for frames in reader.slices(data):
            ends = self.speaks and reader.protocol.close_expected()
            if ends:
                self._enter(State.CLOSING, self.limits.closing, self.transport.abort)
            self._write_library_frames(reader.protocol)
            if ends:
                self.write = _discard  # the close frame is answered already
            for frame in frames:
                self.frame_received(reader, frame)
            if ends:
                self._end_session()
            if self._frames is None:
                return
        self._whole_frames = self.speaks and reader.between_messages

    def _write_library_frames(self, protocol: ServerProtocol) -> None:
        """Send what websockets answers itself; a pong only if its ping was within the rate."""
        for frame in protocol.data_to_send():
            if not frame:
                self._half_close()
            elif frame[0] != PONG or self.receiver is None or self.receiver.on_ping():
                self.transport.write(frame)

    def frame_received(self, reader: FrameReader, frame: Frame) -> None:
        """Pass on the message that a frame completes, or count a pong."""
        assert self.receiver is not None
        if frame.opcode is Opcode.PONG:
            self.receiver.on_ping()
            return
        try:
            message = reader.message(frame)
        except FrameRefused as refused:
            self.close_with(refused.code, str(refused))
        else:
            if message is not None:
                self._receive(message)
