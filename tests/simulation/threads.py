"""Threads, events and locks of a simulated machine: greenlets on the event loop's thread.

They have the interface of `threading`, as far as the program's one thread, the log's writer, uses
it. A thread runs until it waits; how long it takes to start and to wake up is seeded. `pause` is
where a simulated disk or server makes its caller wait, so there other callbacks run in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from greenlet import getcurrent, greenlet

from tests.simulation.loop import SimulatedLoop


class Threads:
    """The threads of one run."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.main = getcurrent()
        self._apart: Any = None
        self._abandoned: list[Any] = []

    def wake_seconds(self) -> float:
        """How long a thread takes to run again: mostly little, sometimes a time slice."""
        random = self.loop.random
        return random.uniform(0, 0.0002) if random.random() < 0.9 else random.uniform(0, 0.02)

    def on_loop(self) -> bool:
        """Whether the caller is the event loop's thread, which must not wait."""
        return getcurrent() in (self.main, self._apart)

    def pause(self, seconds: float) -> None:
        """Let the current thread wait."""
        current = getcurrent()
        self.loop.call_later(seconds, current.switch)
        self.main.switch()

    def run_apart(self, handle: asyncio.Handle) -> None:
        """Run a callback so that `abandon` can end it in the middle."""
        callback = handle._callback  # type: ignore[attr-defined]
        if isinstance(getattr(callback, "__self__", None), greenlet | SimulatedEvent):
            handle._run()  # it continues a thread, which is a greenlet itself
            return
        self._apart = one = greenlet(handle._run, parent=self.main)
        one.switch()
        self._apart = None
        if not one.dead and (task := asyncio.current_task(self.loop)) is not None:
            asyncio.tasks._leave_task(self.loop, task)

    def abandon(self) -> None:
        """Never return: nothing more of the current callback or thread runs."""
        self._abandoned.append(getcurrent())
        self.main.switch()

    def Thread(
        self, target: Callable[[], None], name: str = "", daemon: bool = True
    ) -> SimulatedThread:
        return SimulatedThread(self, target)

    def Event(self) -> SimulatedEvent:
        return SimulatedEvent(self)

    def Lock(self) -> SimulatedLock:
        return SimulatedLock(self)


class SimulatedThread:
    def __init__(self, threads: Threads, target: Callable[[], None]) -> None:
        self._threads = threads
        self._greenlet = greenlet(target, parent=threads.main)
        self.ident: int | None = None

    def start(self) -> None:
        self.ident = 1
        self._greenlet.gr_context = copy_context()
        self._threads.loop.call_later(self._threads.wake_seconds(), self._greenlet.switch)

    def join(self) -> None:
        """The writer is joined after it said that it has ended."""


class SimulatedEvent:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._set = False
        self._waiter: Any = None
        self._timer: Any = None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            if self._timer is not None:
                self._timer.cancel()
            threads = self._threads
            threads.loop.call_later(threads.wake_seconds(), waiter.switch)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            self._waiter = getcurrent()
            self._timer = None
            if timeout is not None:
                self._timer = self._threads.loop.call_later(timeout, self._expire)
            self._threads.main.switch()
        return self._set

    def _expire(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.switch()


class SimulatedLock:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._locked = False
        self._waiters: deque[Any] = deque()

    def acquire(self, blocking: bool = True) -> bool:
        while self._locked:
            if not blocking:
                return False
            assert not self._threads.on_loop(), "the event loop would wait for a lock"
            self._waiters.append(getcurrent())
            self._threads.main.switch()
        self._locked = True
        return True

    def release(self) -> None:
        self._locked = False
        if self._waiters:
            waiter = self._waiters.popleft()
            self._threads.loop.call_later(self._threads.wake_seconds(), waiter.switch)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
