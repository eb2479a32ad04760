"""How the process of a command runs: its event loop, open files, threads and garbage collections.

While a full garbage collection runs, no request is answered. Python starts one whenever the number
of surviving objects has grown by a quarter, and it then visits every object of the process: 65 to
100 ms with the tables that one client may open, several times a minute. Instead, a task of the
server collects often, about 5 ms each time, and *freezes* the survivors: later collections skip
them, while those that nothing refers to any more are freed as always. Only reference cycles that
are dropped after they were frozen wait for the next complete collection, which comes when the
number of frozen objects has doubled.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

SWITCH_INTERVAL = 0.0005
"""Seconds for which a thread may keep the interpreter while another waits. With Python's 5 ms, each
system call of the event loop is followed by such a wait while the writer thread computes."""

PERIOD = 60.0
"""Seconds between two collections of a server in use, and between two counts of what is frozen: a
count visits every frozen object, about 20 ms."""

MIDDLE_COLLECTIONS = 2
"""Collections of the middle generation, each after at most 7,000 more allocations than releases,
after which the next full one is not delayed any longer: it takes up to 10 ms, for which every
player waits."""

CHECK = 0.2
"""Seconds between two checks of that number."""

NEVER = 2**30

USUAL = gc.get_threshold()

STARTING = 50_000
"""Allocations between two young collections of a command, instead of Python's 700. Modules stay
until the end, so while they are imported a collection finds next to nothing: with Python's number
they take a tenth of the start of a server. Other commands keep it until they end."""


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit, if the system has such limits.

    Each connection takes one and the log some more: one client address could use up the usual
    soft limit of 1,024.
    """
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def stop_by_signal(stop: asyncio.Event) -> None:
    """Set `stop` on SIGINT, SIGTERM, or SIGHUP, which a terminal sends that is closed.

    Who starts a program with `nohup` has it go on after that.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop if it is installed, otherwise on the standard loop."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop

        factory = new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


@contextmanager
def few_collections() -> Iterator[None]:
    """Collect seldom within the block; `FullCollections` in it returns to the usual thresholds."""
    gc.set_threshold(STARTING, *USUAL[1:])
    try:
        yield
    finally:
        gc.set_threshold(*USUAL)


class FullCollections:
    """Takes over the full collections of this process; `frozen` counts the objects skipped."""

    def __init__(self) -> None:
        young, middle, _ = USUAL
        gc.set_threshold(young, middle, NEVER)
        # Neither collected nor counted yet, which takes 16 ms: importing leaves next to no cycles.
        gc.freeze()
        self.frozen = 0

    async def run(self) -> None:
        """Collect every `PERIOD` seconds, earlier after many allocations, until cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock() + PERIOD
        while True:
            await asyncio.sleep(CHECK)
            collections = gc.get_count()[2]
            if collections and clock() >= due:
                self.collect()
                due = clock() + PERIOD
            elif collections >= MIDDLE_COLLECTIONS:
                self.collect_new()

    def collect(self) -> None:
        """Collect what is new, or everything if what is skipped has doubled; freeze the rest.

        The first time nothing was frozen long ago. With 2,000 players, who return in seconds after
        a start, everything takes 0.2 s: so long would they all wait.
        """
        if self.frozen and gc.get_freeze_count() >= 2 * self.frozen:
            gc.unfreeze()
            self.frozen = 0
        self.collect_new()
        self.frozen = self.frozen or gc.get_freeze_count()

    def collect_new(self) -> None:
        """Collect what was allocated since the last collection, and freeze what survives."""
        gc.collect()
        gc.freeze()
