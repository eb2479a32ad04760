"""The line to the house: when it breaks it is built again, and nothing is asked for twice.

Every question waits until it is answered, across any number of sockets. What would change something
carries its own id, so the house does it once however often it hears it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from dealer import errors
from dealer.errors import DealerError, HouseUnreachable, RateLimited, Refused, SessionEnded

SUBPROTOCOL = Subprotocol("dealer.v1")
FINAL = {
    4401: "The house does not accept this client's token.",
    4403: "The house does not let this client in.",
    4408: "The house closed the connection because nothing was asked in time.",
    4409: "The same seat is played from a newer connection.",
    1009: "The house will not read messages as long as the one that was sent.",
}
REFUSALS: Mapping[str, type[Refused]] = {
    kind.reason: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refused) and kind is not errors.NotHost
}
FRAME_MAX = 16 * 2**20

log = logging.getLogger(__name__)
Members = dict[str, Any]
Answered = Callable[[Members], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long this client waits for what, in seconds, and how often it asks again."""

    open: float = 10.0  # for a socket
    silence: float = 20.0  # without a frame, before it asks whether anybody is there
    answer: float = 10.0  # to that, or for a write; then the socket is given up
    backoff: float = 0.2  # before the first new attempt; doubled each time, with jitter
    backoff_max: float = 10.0
    away: float = 300.0  # without any connection, before it gives the house up
    attempts: int = 8  # for one question that is refused for the moment


@dataclass(eq=False, slots=True)
class Question:
    """A request on its way; `answered` runs in the order of frames, before the caller wakes."""

    id: int
    method: str
    params: Members
    future: asyncio.Future[Members]
    answered: Answered | None
    table: str | None  # sent once this table is followed on the socket; None: at once
    attempts: int = 0
    sent: bool = False
    timer: asyncio.TimerHandle | None = None


class Follower(Protocol):
    """One table's end of the line."""

    def attach(self) -> None:
        """A new socket is open: ask for what was missed."""

    def notified(self, method: str, params: Members) -> None: ...

    def failed(self, error: DealerError) -> None:
        """The line is down for good."""


@dataclass(eq=False, slots=True)
class _Line:
    """One socket and what is to be written to it."""

    socket: ClientConnection
    outbox: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    heard: float = 0.0


class Connection:
    """A line to the house at `url` (ws:// or wss://) that holds; `start` opens it."""

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self.url = url
        self.patience = patience or Patience()
        self.followers: dict[str, Follower] = {}
        self.attached: set[str] = set()
        self.sockets = 0  # opened so far
        self._questions: dict[int, Question] = {}
        self._next_id = 0
        self._line: _Line | None = None
        self._not_before = 0.0
        self._error: DealerError | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the first socket; HouseUnreachable or SessionEnded if that cannot be."""
        line = await self._open()
        hello = self.ask("session.hello", {}, table=None)
        self._task = asyncio.create_task(self._run(line))
        try:
            async with asyncio.timeout(self.patience.open):
                await hello
        except TimeoutError as error:
            await self.close()
            raise HouseUnreachable(f"At {self.url} nobody answers as a house would.") from error

    async def close(self) -> None:
        """Hang up; whoever still waits for an answer gets HouseUnreachable."""
        self._give_up(HouseUnreachable("This client has hung up."))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def ask(
        self,
        method: str,
        params: Members,
        *,
        table: str | None,
        changes: bool = False,
        answered: Answered | None = None,
    ) -> asyncio.Future[Members]:
        """The answer to a request, across reconnects; its refusal is raised.

        `changes` gives it a `cmd` of its own. `table` holds it back until that table is followed
        on the socket. `answered` is called with the result before any later frame is read.
        """
        future: asyncio.Future[Members] = asyncio.get_running_loop().create_future()
        if self._error is not None:
            future.set_exception(self._error)
            return future
        if changes and "cmd" not in params:
            params = params | {"cmd": str(uuid.uuid4())}
        self._next_id += 1
        question = Question(self._next_id, method, params, future, answered, table)
        self._questions[question.id] = question
        future.add_done_callback(lambda _: self._questions.pop(question.id, None))
        self._send(question)
        return future

    def attach(self, table: str) -> None:
        """Note that the socket follows this table, and send what waited for that."""
        self.attached.add(table)
        for question in list(self._questions.values()):
            if question.table == table:
                self._send(question)

    def drop(self, table: str, error: DealerError) -> None:
        """Have done with a table: its questions fail, its frames are passed over."""
        self.followers.pop(table, None)
        self.attached.discard(table)
        for question in list(self._questions.values()):
            if question.table == table and not question.future.done():
                question.future.set_exception(error)

    def break_line(self) -> None:
        """Give up the socket at once; the next one is opened by itself."""
        if self._line is not None:
            self._line.socket.transport.abort()

    def _send(self, question: Question) -> None:
        ready = question.table is None or question.table in self.attached
        if self._line is None or question.sent or question.timer is not None or not ready:
            return
        question.sent = True
        frame = {
            "jsonrpc": "2.0",
            "id": question.id,
            "method": question.method,
            "params": question.params,
        }
        self._line.outbox.put_nowait(json.dumps(frame, ensure_ascii=False))

    async def _run(self, line: _Line) -> None:
        """One socket after the other, until the house or this client ends it."""
        try:
            while True:
                code = await self._serve(line)
                if code in FINAL:
                    self._give_up(SessionEnded(FINAL[code], code=code))
                    return
                line = await self._reopen()
                self._resume()
        except DealerError as error:
            self._give_up(error)
        except Exception as error:
            log.exception("the client failed")
            self._give_up(HouseUnreachable(f"This client failed: {error!r}"))

    def _resume(self) -> None:
        """After a break: say hello, ask each table for what was missed, then all else again."""
        questions, self._questions = self._questions, {}
        greeting = self.ask("session.hello", {}, table=None)
        greeting.add_done_callback(forget)
        for follower in list(self.followers.values()):
            follower.attach()
        for question in questions.values():
            if not question.future.done():
                self._questions[question.id] = question
                self._send(question)

    async def _open(self) -> _Line:
        try:
            socket = await dial(
                self.url,
                subprotocols=[SUBPROTOCOL],
                compression=None,
                max_size=FRAME_MAX,
                open_timeout=self.patience.open,
                ping_interval=None,
                close_timeout=1,
                proxy=None,
            )
        except InvalidURI as error:
            raise HouseUnreachable(f"{self.url} is no address of a house: {error}") from error
        except (OSError, TimeoutError, InvalidHandshake, EOFError) as error:
            reason = str(error) or type(error).__name__
            raise HouseUnreachable(f"The house at {self.url} does not answer: {reason}") from error
        self.sockets += 1
        self._line = _Line(socket, heard=asyncio.get_running_loop().time())
        return self._line

    async def _reopen(self) -> _Line:
        """A new socket, sought with pauses that grow and vary, so that not all come at once."""
        loop = asyncio.get_running_loop()
        given_up = loop.time() + self.patience.away
        pause = self.patience.backoff
        while True:
            wait = max(self._not_before - loop.time(), 0) + pause * secrets.randbelow(1000) / 1000
            await asyncio.sleep(wait)
            try:
                return await self._open()
            except HouseUnreachable:
                if loop.time() > given_up:
                    raise
            pause = min(2 * pause, self.patience.backoff_max)

    async def _serve(self, line: _Line) -> int:
        """Read a socket to its end; the code it was closed with, 1006 for none."""
        writer = asyncio.create_task(self._write(line))
        keeper = asyncio.create_task(self._keep_alive(line))
        loop = asyncio.get_running_loop()
        try:
            async for text in line.socket:
                line.heard = loop.time()
                self._receive(text)
        except ConnectionClosed:
            pass
        finally:
            self._line = None
            self.attached.clear()
            for question in self._questions.values():
                question.sent = False
            for task in (writer, keeper):
                task.cancel()
            await asyncio.gather(writer, keeper, return_exceptions=True)
            # websockets waits in vain for a peer that has stopped reading: no polite end here.
            line.socket.transport.abort()
        return line.socket.close_code or 1006

    async def _write(self, line: _Line) -> None:
        try:
            while True:
                text = await line.outbox.get()
                async with asyncio.timeout(self.patience.answer):
                    await line.socket.send(text)
        except (TimeoutError, ConnectionClosed):
            line.socket.transport.abort()

    async def _keep_alive(self, line: _Line) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(max(line.heard + self.patience.silence - loop.time(), 0.01))
                if loop.time() - line.heard < self.patience.silence:
                    continue
                async with asyncio.timeout(self.patience.answer):
                    await (await line.socket.ping())
                line.heard = loop.time()
        except (TimeoutError, ConnectionClosed):
            line.socket.transport.abort()

    def _receive(self, text: str | bytes) -> None:
        try:
            frame = json.loads(text)
        except ValueError:
            log.warning("a frame that is not JSON was passed over")
            return
        if not isinstance(frame, dict):
            return
        if "method" in frame:
            self._notified(frame["method"], frame.get("params"))
        elif isinstance(frame.get("id"), int):
            self._answered(frame)

    def _notified(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method == "session.drain":
            self._drain(params)
            return
        if method == "events":
            for one in params.get("list", []):
                self._notified("event", one)
            return
        follower = self.followers.get(params.get("table", ""))
        if follower is not None:
            follower.notified(method, params)

    def _drain(self, params: Members) -> None:
        """The house is about to stop: come back when it says, not all at once."""
        wait = params.get("reconnect_in_ms", 0) / 1000
        self._not_before = asyncio.get_running_loop().time() + min(wait, self.patience.away)

    def _answered(self, frame: Members) -> None:
        question = self._questions.get(frame["id"])
        if question is None or question.future.done():
            return
        if "error" in frame:
            self._refused(question, refusal(frame["error"]))
            return
        result = frame.get("result") or {}
        try:
            if question.answered is not None:
                question.answered(result)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            sentence = f"The house answered {question.method} with something else: {error!r}"
            question.future.set_exception(HouseUnreachable(sentence))
        else:
            if not question.future.done():
                question.future.set_result(result)

    def _refused(self, question: Question, error: Refused) -> None:
        """What is refused for the moment is asked again; an `expect` would fail again."""
        question.attempts += 1
        stale = isinstance(error, errors.Conflicted) and "expect" in question.params
        waits = isinstance(error, errors.ShuffleRunning)  # the table knows when that is over
        again = error.temporary and not stale and not waits
        if not again or question.attempts >= self.patience.attempts:
            question.future.set_exception(error)
            return
        pause = self.patience.backoff * 2**question.attempts * secrets.randbelow(1000) / 1000
        if isinstance(error, RateLimited):
            pause += error.retry_after_ms / 1000
        question.sent = False
        question.timer = asyncio.get_running_loop().call_later(pause, self._ask_again, question)

    def _ask_again(self, question: Question) -> None:
        question.timer = None
        if not question.future.done():
            self._send(question)

    def _give_up(self, error: DealerError) -> None:
        if self._error is not None:
            return
        self._error = error
        for follower in list(self.followers.values()):
            follower.failed(error)
        self.followers.clear()
        for question in list(self._questions.values()):
            if question.timer is not None:
                question.timer.cancel()
            if not question.future.done():
                question.future.set_exception(error)
                question.future.exception()


def refusal(error: Members) -> Refused:
    """The exception that a JSON-RPC error object stands for."""
    data = error.get("data") or {}
    reason, sentence = data.get("reason"), str(error.get("message", "The house refused."))
    kind = REFUSALS.get(str(reason))
    if kind is RateLimited:
        return RateLimited(sentence, retry_after_ms=data.get("retry_after_ms", 1000))
    if kind is not None:
        return kind(sentence)
    code = error.get("code", 0)
    if code == -32603:
        return errors.Unavailable(sentence)
    if code < 0:
        return errors.BadRequest(sentence)
    other = Refused(sentence)
    other.reason, other.code = str(reason or Refused.reason), code
    other.temporary = bool(data.get("temporary"))
    return other


def forget(future: asyncio.Future[Members]) -> None:
    """Take note of an answer that nobody waits for, so that no warning is made of it."""
    if not future.cancelled():
        future.exception()
