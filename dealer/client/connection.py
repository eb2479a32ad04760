"""The line to the house: when it breaks it is built again, and nothing is asked for twice.

Every question waits until it is answered, across any number of sockets. What would change something
carries its own id, so the house does it once however often it hears it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from contextlib import suppress
from typing import Protocol

from dealer.client.line import Line
from dealer.client.questions import (
    Answered,
    Members,
    Patience,
    Question,
    forget,
    jittered,
    refusal,
)
from dealer.errors import DealerError, HouseUnreachable, Refused, SessionEnded

FINAL = {
    4401: "The house does not accept this client's token.",
    4403: "The house does not let this client in.",
    4408: "The house closed the connection because nothing was asked in time.",
    4409: "The same seat is played from a newer connection.",
    1009: "The house will not read messages as long as the one that was sent.",
}

log = logging.getLogger(__name__)


class Follower(Protocol):
    """One table's end of the line."""

    def attach(self) -> None:
        """A new socket is open: ask for what was missed."""

    def notified(self, method: str, params: Members) -> None: ...

    def failed(self, error: DealerError) -> None:
        """The line is down for good."""


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
        self._line: Line | None = None
        self._not_before = 0.0  # when a house that is closing wants to be asked again
        self._pause = self.patience.backoff
        self._lost_at = 0.0  # since when no house has greeted; 0 while one is there
        self._error: DealerError | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the first socket; HouseUnreachable or SessionEnded if that cannot be."""
        line = await self._open()
        hello = self.ask("session.hello", {}, table=None, answered=self._greeted)
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
        if self._line is not None:
            await self._line.close()
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
            self._line.abort()

    def _send(self, question: Question) -> None:
        ready = question.table is None or question.table in self.attached
        if self._line is None or question.sent or question.timer is not None or not ready:
            return
        question.sent = True
        self._line.send(json.dumps(question.frame(), ensure_ascii=False))

    async def _run(self, line: Line) -> None:
        """One socket after the other, until the house or this client ends it."""
        try:
            while True:
                code = await self._serve(line)
                if code in FINAL:
                    self._give_up(SessionEnded(FINAL[code], code=code))
                if self._error is not None:
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
        greeting = self.ask("session.hello", {}, table=None, answered=self._greeted)
        greeting.add_done_callback(forget)
        for follower in list(self.followers.values()):
            follower.attach()
        for question in questions.values():
            if not question.future.done():
                self._questions[question.id] = question
                self._send(question)

    async def _open(self) -> Line:
        line = self._line = await Line.open(self.url, self.patience)
        self.sockets += 1
        return line

    async def _reopen(self) -> Line:
        """A new socket, sought with pauses that grow and vary, so that not all come at once."""
        loop = asyncio.get_running_loop()
        self._lost_at = self._lost_at or loop.time()
        while True:
            drained = max(self._not_before - loop.time(), 0)
            await asyncio.sleep(drained + jittered(self._pause))
            self._pause = min(2 * self._pause, self.patience.backoff_max)
            if loop.time() - self._lost_at > self.patience.away + drained:
                sentence = f"The house at {self.url} has been away for too long."
                raise HouseUnreachable(sentence)
            with suppress(HouseUnreachable):
                return await self._open()

    def _greeted(self, _: Members) -> None:
        """A house is there: the next time the line breaks, it is sought afresh."""
        self._pause = self.patience.backoff
        self._lost_at = 0.0

    async def _serve(self, line: Line) -> int:
        """Read a socket to its end; the code it was closed with."""
        try:
            return await line.read(self._receive)
        finally:
            self._line = None
            self.attached.clear()
            for question in self._questions.values():
                question.sent = False

    def _receive(self, text: str | bytes) -> None:
        try:
            frame = json.loads(text)
            if "method" in frame:
                self._notified(frame["method"], frame["params"])
            else:
                self._answered(frame)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("a frame that makes no sense was passed over: %r", error)

    def _notified(self, method: str, params: Members) -> None:
        if method == "session.drain":
            self._drain(params)
            return
        if method == "events":
            for one in params["list"]:
                self._notified("event", one)
            return
        follower = self.followers.get(params["table"])
        if follower is not None:
            follower.notified(method, params)

    def _drain(self, params: Members) -> None:
        """The house is about to stop: come back when it says, not all at once."""
        wait = params["reconnect_in_ms"] / 1000
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
        """What is refused for the moment is asked again, under the same id."""
        pause = question.pause(error, self.patience)
        if pause is None:
            question.future.set_exception(error)
            return
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
