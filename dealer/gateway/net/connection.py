"""The life of a connection: one owner of its states and deadlines, from `accept` to its end.

A connection is an `asyncio.Protocol`. While it speaks HTTP, `HttpExchange` reads one request after
the other with h11; after a handshake, frames are read by the sans-I/O protocol of websockets, but
for the most frequent ones (`websocket.py`). Neither has tasks, queues or timers. Everything happens
in the callback that receives bytes: a request is checked and run, a frame goes to the receiver,
answers go to the transport.

                  ┌── IDLE ◀─┐
                  ▼          │
    ACCEPTED ─▶ REQUEST ─▶ ANSWERING ─▶ UPGRADED ─▶ OPEN ─▶ DRAINING
                  │          │             │         │         │
                  │          │             └─────────┴────┬────┘
                  │          │                            ▼ the server closes
                  │          │                         CLOSING
                  ▼          ▼                            ▼
                  └──────────┴──────▶ LINGERING ◀─────────┘ (or the client closes)
                                          ▼
                                        GONE    (follows any state when the client disappears)

`_STAGES`, at the end of this file, is the table of these states: which ones each follows, how long
it lasts at most, and what happens then. `_enter` is the one function that changes the state, and
holds to the table: what depends on the state (the timer, whether frames are written, whether the
receiver is open, whether the socket is read) is set there.

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
from operator import attrgetter
from time import thread_time
from typing import NamedTuple, cast

from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.net import websocket
from dealer.gateway.net.http import ROOT, EarlyAnswer, HttpExchange
from dealer.gateway.net.responses import response, unavailable

UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE
"""The status after which no connection is kept."""


class State(Enum):
    """The states of a connection, see `_STAGES`."""

    ACCEPTED = auto()
    REQUEST = auto()
    ANSWERING = auto()
    IDLE = auto()
    UPGRADED = auto()
    OPEN = auto()
    DRAINING = auto()
    CLOSING = auto()
    LINGERING = auto()
    GONE = auto()


_READING = (State.REQUEST, State.IDLE)
_ANSWERABLE = (State.REQUEST, State.ANSWERING)
_SPEAKING = (State.UPGRADED, State.OPEN, State.DRAINING)
_ENDED = (State.CLOSING, State.LINGERING, State.GONE)


def _discard(data: bytes) -> None:
    """For what is written after the close frame, or before the handshake."""


class Connection(asyncio.Protocol):
    """A connection to a server under `path`; a subclass says what it is for.

    `keeps` and `check` are called with the head of each request, `run` with an accepted one. Now or
    later the program calls `answer`; or `begin_answer` and what follows it; or, at once, `upgrade`
    and `open`. `write` sends whole frames, or nothing before and after a WebSocket is open.
    `exchange` is the request in hand, until the handshake. `paused` says that the write buffer is
    over its limit. `silent` are the pings in a row that nothing followed; the program counts them.
    """

    def __init__(self, limits: Limits, *, path: str = ROOT) -> None:
        self.limits = limits
        self.sending = limits.sending  # seconds until the client has read a full write buffer
        self.state = State.ACCEPTED
        self.exchange = HttpExchange(limits.message, path)
        self.transport: asyncio.Transport  # from `connection_made` on
        self.receiver: websocket.Receiver | None = None  # from the end of the handshake on
        self.write: Callable[[bytes], None] = _discard
        self.paused = False
        self.silent = 0
        self._loop = asyncio.get_running_loop()
        self._path = path
        self._frames: websocket.FrameReader  # from the end of the handshake on
        self._held = False  # the program takes no more messages
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
    def speaks(self) -> bool:
        """Whether the WebSocket is open."""
        return self.state in _SPEAKING

    def _enter(self, state: State) -> None:
        stage = _STAGES[state]
        assert self.state in stage.follows, f"{state} does not follow {self.state}"
        self.state = state
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if stage.seconds is not None:
            self._deadline = self._loop.call_later(stage.seconds(self), stage.then, self)
        self.write = self.transport.write if state in _SPEAKING else _discard
        if state in _ENDED and self.receiver is not None:
            self.receiver.close()
        self._read_or_wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(self.limits.buffer)
        self._enter(State.REQUEST)
        self.made()

    def connection_lost(self, exc: Exception | None) -> None:
        self._enter(State.GONE)
        if self._send_deadline is not None:
            self._send_deadline.cancel()
        self._wake_waiters()
        self.lost()
        # It refers to this connection: freed at once, the two need no collection of garbage.
        self.receiver = None

    def eof_received(self) -> None:
        """The client has closed its half: the transport sends what it has, and closes the other."""
        self._linger()

    def abort(self) -> None:
        """Close at once, and send nothing more."""
        if self.state not in (State.LINGERING, State.GONE):
            self._enter(State.LINGERING)
        self.transport.abort()

    def close_if_idle(self) -> None:
        """Close a connection that is kept and not used."""
        if self.state is State.IDLE:
            self._close_when_sent()

    def close_unless_answering(self) -> None:
        """Close, at the end of the server, what has no answer to come.

        That is who sends no request or half of one, who has an answer and does not close, and who
        does not answer a close frame. What was written is still sent.
        """
        if self.state in _READING and self.exchange.request is not None:
            self.answer(unavailable("The server shuts down"), close=True)
        if self.state in _READING:
            self._close_when_sent()
        elif self.state in (State.CLOSING, State.LINGERING):
            self.transport.close()

    def _close_when_sent(self) -> None:
        self._enter(State.LINGERING)
        self.transport.close()

    def _linger(self) -> None:
        """Close for writing, and drop what arrives, until the client closes.

        To close at once would reset the connection if bytes arrive later, and the client could lose
        the answer.
        """
        if self.state not in (State.LINGERING, State.GONE):
            self._enter(State.LINGERING)
            with suppress(OSError, RuntimeError):  # uvloop raises the latter where it closes
                self.transport.write_eof()

    def _lingering_seconds(self) -> float:
        """A client that has not read all of an answer has the time of a slow one, too."""
        unsent = self.transport.get_write_buffer_size()
        return self.limits.closing + (self.sending if unsent else 0.0)

    async def wait_closed(self) -> None:
        while self.state is not State.GONE:
            await self._wait()

    # Flow control

    def pause_writing(self) -> None:
        self.paused = True
        self._read_or_wait()
        self._send_deadline = self._loop.call_later(self.sending, self._on_slow_reader)

    def resume_writing(self) -> None:
        self.paused = False
        if self._send_deadline is not None:
            self._send_deadline.cancel()
        self._read_or_wait()
        self._next_request()
        self._wake_waiters()

    def _on_slow_reader(self) -> None:
        if self.speaks:
            self.close_with(CloseCode.TOO_SLOW, "too slow: reconnect and resume")
        else:
            self.abort()

    def pause(self) -> None:
        """Read no messages until `resume`."""
        self._held = True
        self._read_or_wait()

    def resume(self) -> None:
        """Read messages again, unless the client does not read."""
        self._held = False
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        if self.transport.is_closing():
            return
        # A client that does not read may not send requests: their answers would accumulate. Nor
        # may one whose request is answered: those that follow it would.
        answering = self.state is State.ANSWERING and self.exchange.kept
        if self.paused or answering or (self._held and self.speaks):
            self.transport.pause_reading()
        else:
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
        # A client may go while its answer is prepared: there is no socket any more.
        if hasattr(socket, "TCP_NOTSENT_LOWAT") and not self._is_ending():
            own = self.transport.get_extra_info("socket")
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, self.limits.buffer)

    def data_received(self, data: bytes) -> None:
        self.silent = 0
        if self.state in _SPEAKING:
            if self._frames.between_messages:
                text = websocket.parse_single_text_frame(data, self.limits.message)
                if text is not None:
                    assert self.receiver is not None
                    self.receiver.receive(text)
                    return
            self._frames_received(data)
        elif self.state in _READING:
            self._request_received(data)
        elif self.state is State.CLOSING:  # the client's close frame is among it
            self._frames_received(data)

    # Requests

    def _request_received(self, data: bytes) -> None:
        if self.state is State.IDLE:
            if data == b"\r\n":  # an empty line is skipped
                return
            self._enter(State.REQUEST)
        exchange, started_at, complete = self.exchange, thread_time(), False
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
        if exchange.kept:
            self.spent(thread_time() - started_at)
        if complete:
            self._run(exchange)

    def _begin(self, exchange: HttpExchange, request: Request) -> None:
        exchange.kept = self.keeps(request)
        refusal = exchange.refusal = self.check(request)
        if refusal is not None and (not exchange.kept or exchange.waits_for_continue):
            self.answer(refusal, close=True)

    def _run(self, exchange: HttpExchange) -> None:
        self._enter(State.ANSWERING)
        if exchange.refusal is not None:
            # Its body was read: the connection can be kept, and the client reads the answer.
            self.answer(exchange.refusal)
        else:
            self.run(cast("Request", exchange.request), bytes(exchange.body))
        if self.speaks and (early := exchange.left):
            self.data_received(early)  # frames that the client sent with its handshake

    def _on_late_request(self) -> None:
        if self.exchange.request is None:
            self.abort()
        else:
            sentence = "The request was not sent in time.\n"
            self.answer(response(HTTPStatus.REQUEST_TIMEOUT, sentence), close=True)

    def answer(self, answer: Response, *, close: bool = False) -> None:
        """Write a whole answer, unless there was one; with `close`, end the connection after it."""
        if self.state not in _ANSWERABLE or self.exchange.done:
            return
        exchange = self.exchange
        kept = exchange.kept and not close and answer.status_code != UNAVAILABLE
        if exchange.request is not None:
            self.answered(answer.status_code)
        try:
            self.transport.write(exchange.answer(answer, close=not kept))
        except Exception:
            self.abort()
            raise
        if not (kept and exchange.done):
            self._linger()
        elif exchange.left:
            # In a step of its own: else each pipelined request would be a level of recursion.
            self._loop.call_soon(self._next_request)
        else:
            self._next_request()

    def begin_answer(self, answer: Response, block: bytes) -> None:
        """Write the head of a long answer, and its first bytes."""
        self.transport.write(self.exchange.begin_answer(answer, block))

    def go_on_answering(self, block: bytes) -> None:
        """Write the next bytes of a long answer; wait for `drained` before each call."""
        self.transport.write(self.exchange.go_on_answering(block))

    def end_answer(self) -> None:
        """End a long answer, and the connection when the client has read it."""
        self.transport.write(self.exchange.end_answer())
        self._close_when_sent()

    def _next_request(self) -> None:
        """Once a request is answered, and the answer is read: go on to the next.

        Its beginning may have arrived with the last one.
        """
        if self.paused or self.state is not State.ANSWERING or not self.exchange.done:
            return
        left = self.exchange.left.removeprefix(b"\r\n")
        self.exchange = HttpExchange(self.limits.message, self._path)
        self._enter(State.REQUEST if left else State.IDLE)
        if left:
            self.data_received(left)

    # WebSocket

    def upgrade(
        self,
        request: Request,
        subprotocol: str = "",
        select: websocket.SelectSubprotocol | None = None,
    ) -> bool:
        """Answer a handshake; whether it was accepted. Then `open` has to follow.

        `select` chooses the subprotocol, which is `subprotocol` if that alone is offered.
        """
        accepted = websocket.usual_answer(request, subprotocol)
        if accepted is None:
            answer = websocket.new_protocol(self.limits.message, select).accept(request)
            if answer.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
                self.answer(answer)
                return False
            accepted = answer.serialize()
        self.transport.write(accepted)
        self._frames = websocket.FrameReader(self.limits.message)
        return True

    def open(self, receiver: websocket.Receiver) -> None:
        """Pass the client's messages to `receiver` from now on."""
        self.receiver = receiver
        self._enter(State.UPGRADED)
        del self.exchange

    def _on_open_timeout(self) -> None:
        assert self.receiver is not None
        if self.receiver.request_seen:
            self._enter(State.OPEN)
        else:
            self.close_with(CloseCode.NO_REQUEST, "no request came in time")

    def drain(self) -> None:
        """Close when everything that was received is answered."""
        if self.receiver is not None and self.state in (State.UPGRADED, State.OPEN):
            self._enter(State.DRAINING)
            self.receiver.finish()

    def close_with(self, code: CloseCode, reason: str) -> None:
        """Send a close frame, unless one side has sent one, and end the session."""
        if not self.speaks or self._frames.protocol.close_expected():
            return
        self.closes(code)
        self._frames.protocol.send_close(code, reason)
        self._write_library_frames(self._frames.protocol)
        if code is CloseCode.RATE_LIMITED:
            # Nothing of a flood is read any more, not even its close frame, after which the client
            # expects that this side ends: it ends now.
            self._linger()
        else:
            self._enter(State.CLOSING)

    def _frames_received(self, data: bytes) -> None:
        reader = self._frames
        for frames in reader.slices(data):
            if not reader.protocol.close_expected():
                self._write_library_frames(reader.protocol)  # pongs
            for frame in frames:
                self.frame_received(reader, frame)
            # With the answers to what came before the client's close frame, also the one to that.
            self._write_library_frames(reader.protocol)
            if self.state not in _SPEAKING and self.state is not State.CLOSING:
                return

    def frame_received(self, reader: websocket.FrameReader, frame: Frame) -> None:
        """Pass on the message that a frame completes, or count a pong."""
        assert self.receiver is not None
        if frame.opcode is Opcode.PONG:
            self.receiver.on_ping()
            return
        try:
            message = reader.message(frame)
        except websocket.FrameRefused as refused:
            self.close_with(refused.code, str(refused))
        else:
            if message is not None:
                self.receiver.receive(message)

    def _write_library_frames(self, protocol: ServerProtocol) -> None:
        """Send what websockets answers itself; a pong only if its ping was within the rate.

        An empty frame, after which nothing is sent, follows the client's close frame or fault.
        """
        for frame in protocol.data_to_send():
            if not frame:
                self._linger()
            elif frame[0] != websocket.PONG or self.receiver is None or self.receiver.on_ping():
                self.transport.write(frame)


class _Stage(NamedTuple):
    """A state's place: the states it `follows`, its `seconds` at most, and what happens `then`.

    Without `seconds` only a full write buffer has a deadline in it.
    """

    follows: tuple[State, ...]
    seconds: Callable[[Connection], float] | None = None
    then: Callable[[Connection], None] = Connection.abort


_STAGES = {
    # A request is awaited, or its bytes are. A connection that was kept waits in IDLE for its
    # first byte, but for a request that arrived together with the last one.
    State.REQUEST: _Stage(
        follows=(State.ACCEPTED, State.IDLE, State.ANSWERING),
        seconds=attrgetter("limits.opening"),
        then=Connection._on_late_request,  # 408, or aborted if the head is not complete
    ),
    # The request is complete; until it is answered and, on a kept connection, the answer is read.
    State.ANSWERING: _Stage(follows=(State.REQUEST,)),
    State.IDLE: _Stage(
        follows=(State.ANSWERING,), seconds=attrgetter("limits.idle"), then=Connection.close_if_idle
    ),
    # The handshake is answered, and a first message awaited.
    State.UPGRADED: _Stage(
        follows=(State.ANSWERING,),
        seconds=attrgetter("limits.opening"),
        then=Connection._on_open_timeout,  # OPEN if one of the messages was a request, else closed
    ),
    State.OPEN: _Stage(follows=(State.UPGRADED,)),
    # What was received is still answered. The program, which drains all, has the deadline.
    State.DRAINING: _Stage(follows=(State.UPGRADED, State.OPEN)),
    # The server has sent a close frame, and waits for the client's.
    State.CLOSING: _Stage(follows=_SPEAKING, seconds=attrgetter("limits.closing")),
    # All is written; the client has to read it, and to close.
    State.LINGERING: _Stage(
        follows=(*_READING, State.ANSWERING, *_SPEAKING, State.CLOSING),
        seconds=Connection._lingering_seconds,
    ),
    State.GONE: _Stage(follows=tuple(State)),
}
