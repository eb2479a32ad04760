"""Request queue: runs the requests of one session that take more than one step, in their order.

A request that reads the log first (joining, resuming) *blocks*: what the client sends meanwhile is
queued until it is answered, so that pipelined requests run in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from dealer.gateway.close_codes import RESTART, CloseCode
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.session.session import Session
from dealer.gateway.wire.protocol import Call

Work = Callable[[], Awaitable[None]]
"""Carries out a request, and answers it."""


class RequestQueue:
    """The requests of one session that are not answered yet; `receive` runs a queued one.

    `waiting` are those behind one that blocks, None if none does. `submitted` counts the commands
    on their way to the log. With `finishing` the connection is closed once all are answered.
    """

    def __init__(self, session: Session, receive: Callable[[bytes], None]) -> None:
        self.waiting: deque[bytes] | None = None
        self.submitted = 0
        self.finishing = False
        self._session = session
        self._context = session.context
        self._receive = receive
        self._bytes = 0  # of those that wait
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, data: bytes) -> None:
        """Queue what comes after a request that blocks; beyond a bound nothing more is read."""
        assert self.waiting is not None
        self.waiting.append(data)
        self._bytes += len(data)
        limits = self._context.limits
        if len(self.waiting) >= limits.held or self._bytes >= limits.buffer:
            self._session.transport.pause()

    def start(self, call: Call, work: Work, *, blocking: bool = False) -> None:
        """Run `work` in a task; with `blocking`, later requests are queued until it is done."""
        if blocking:
            self.waiting = deque()
        steps = metered(partial(self._run, call, work, blocking), self._session.transport.budget)
        task = self._context.tasks.start(steps)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def finish(self) -> None:
        """Close the connection when what was received is answered.

        A random draw of a deck with players' entropy is not waited for: it waits for players, who
        may be gone. A client repeats it under its id, as after any lost connection.
        """
        self.finishing = True
        self.close_if_finished()

    def close_if_finished(self) -> None:
        """Close the connection if that is due: to be called after each answer."""
        if self.finishing and not self.submitted and not self._is_blocked():
            self._session.transport.close_with(CloseCode.SERVICE_RESTART, RESTART)

    def close(self) -> None:
        """Run nothing more."""
        del self._receive  # its owner refers to this queue: both are freed without a collection
        self.waiting = None
        for task in list(self._tasks):
            task.cancel()

    async def _run(self, call: Call, work: Work, blocking: bool) -> None:
        self._context.in_flight += 1
        try:
            if blocking:
                await self._session.transport.drained()  # such answers can be long: one at a time
            await work()
        except Exception as error:
            self._session.answers.send_error(call, error)
        finally:
            self._context.in_flight -= 1
            if blocking and not self._session.answers.closed:
                self._run_waiting()
                self.close_if_finished()

    def _run_waiting(self) -> None:
        """Run the queued requests, up to the next that blocks."""
        queued, self.waiting = self.waiting or deque(), None
        while queued and not self._is_blocked() and not self._session.answers.closed:
            self._receive(queued.popleft())  # in a task whose steps are charged
        self._bytes = sum(map(len, queued))
        if self._is_blocked():
            self.waiting = queued
        else:
            self._session.transport.resume()

    def _is_blocked(self) -> bool:
        return self.waiting is not None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The request, or one that was queued behind it, may have no answer.
            self._context.log_throttle.say_error(error, "internal error", what="no answer")
            self._session.transport.abort()
