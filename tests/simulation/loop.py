"""An event loop with virtual time: nothing waits, and the clock goes to the next timer.

Callbacks that are ready run in the order of `call_soon`, because asyncio promises that and the
program may rely on it. What a machine reorders is decided outside of the loop, by seeded delays:
deliveries of the network, threads, and work in executors. Each iteration takes a microsecond of
virtual time, so that no loop of callbacks stops the clock.

Every callback belongs to a *domain*, a node or a client, by the context that it was made in. A
domain can be killed, after which none of its callbacks runs, not even a `finally`, as with kill -9
and at any await; and it can be frozen, after which they run late, as on a machine that stands
still.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from random import Random
from socket import AF_INET, SOCK_STREAM
from typing import Any

STEP_SECONDS = 1e-6

DOMAIN: ContextVar[Domain | None] = ContextVar("domain", default=None)


class Stuck(Exception):
    """Nothing is ready and no timer is set, but the main task waits."""


class Endless(Exception):
    """The main task did not end within the limit of callbacks."""


class Domain:
    """What a machine runs: its callbacks and tasks; `tasks` keeps them from being collected."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen = False
        self.held: list[asyncio.Handle] = []
        self.tasks: list[Any] = []
        self.context = copy_context()
        self.context.run(DOMAIN.set, self)


class SimulatedLoop(base_events.BaseEventLoop):
    """The loop of one run; `random` decides how long executors take.

    `network` is set by its owner, and implements connections. Callbacks of the domains named in
    `apart` are run by `run_apart`, so that they can be ended in the middle. `errors` has what was
    passed to the exception handler, which a correct program does not do.
    """

    def __init__(self, random: Random, *, callbacks: int = 400_000) -> None:
        super().__init__()
        self.random = random
        self.now = 1000.0
        self.network: Any = None
        self.apart: set[str] = set()
        self.run_apart: Callable[[asyncio.Handle], None] = asyncio.Handle._run
        self.errors: list[dict[str, Any]] = []
        self.steps = 0
        self.over = False
        self._left = callbacks
        self._ready: deque[asyncio.Handle]
        self._scheduled: list[asyncio.TimerHandle]
        _Task._count = 0
        self.set_task_factory(_make_task)
        self.set_exception_handler(self._on_error)

    def time(self) -> float:
        return self.now

    def freeze(self, domain: Domain, seconds: float) -> None:
        """Run nothing of a domain for this long, and then what has become due, in order."""
        if domain.frozen or domain.dead:
            return
        domain.frozen = True
        self.call_later(seconds, self._thaw, domain, context=Context())

    def _thaw(self, domain: Domain) -> None:
        held, domain.held, domain.frozen = domain.held, [], False
        self._ready.extend(held)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.over:
            self.errors.append(context)

    # What BaseEventLoop leaves to its subclasses

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0].cancelled():
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready:
            if not scheduled:
                raise Stuck
            self.now = max(self.now, scheduled[0].when())
        self.now += STEP_SECONDS
        while scheduled and scheduled[0].when() <= self.now:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        count = len(ready)
        self.steps += count
        if self.steps > self._left:
            raise Endless
        for _ in range(count):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            domain = handle._context.get(DOMAIN)  # type: ignore[attr-defined]
            if domain is not None:
                if domain.dead:
                    continue
                if domain.frozen:
                    domain.held.append(handle)
                    continue
                if domain.name in self.apart:
                    self.run_apart(handle)
                    continue
            handle._run()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.over:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._on_error(self, context)

    def is_closed(self) -> bool:
        return self.over

    # Executors

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Run the function in a callback of its own, at a seeded time."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self.random.uniform(0.0001, 0.004), run)
        return future

    # Network

    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        fd.on_arrival(callback, args, copy_context())

    def remove_reader(self, fd: Any) -> bool:
        fd.on_arrival(None, (), None)
        return True

    async def connect_accepted_socket(
        self, protocol_factory: Callable[[], Any], sock: Any, **_: Any
    ) -> tuple[Any, Any]:
        return sock.accept_into(protocol_factory())

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(AF_INET, SOCK_STREAM, 0, "", (host, port))]

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **_: Any
    ) -> tuple[Any, Any]:
        return await self.network.connect(protocol_factory, host, port)


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    _count = 0

    def __init__(self, coroutine: Any, **named: Any) -> None:
        _Task._count += 1
        self._number = _Task._count
        super().__init__(coroutine, **named)

    def __hash__(self) -> int:
        return self._number


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    context: Context | None = None,
) -> asyncio.Task[Any]:
    if context is None:
        task = _Task(coroutine, loop=loop)
    else:
        task = _Task(coroutine, loop=loop, context=context)
    domain = (context or copy_context()).get(DOMAIN)
    if domain is not None:
        domain.tasks.append(task)
    return task
