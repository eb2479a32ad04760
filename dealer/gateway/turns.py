"""Turns: the event loop's time, measured and bounded by client address.

    await metered(partial(answer, request), budget.cpu)    # charges what its steps take
    async with turns.turn(budget):                         # two at once, none of an address in debt
        seen = await service.snapshot(...)
    await turns.pause(budget)                              # between two slices of long work

Time is the processor time of the loop's thread: a busy machine, on which every step takes longer,
uses up no client's budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from time import thread_time
from types import coroutine
from typing import Any, TypeVar

from dealer.gateway.rate_limit import Bucket, ClientBudget

LONGEST_PAUSE = 0.25
"""Seconds after which a pause looks again whether the server drains."""

T = TypeVar("T")


class Turns:
    """Lets the long answers of each client address be made in turn.

    `clock` gives seconds, as for budgets. While the server drains (`hurry`) no debt is waited for.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.hurry = False

    @asynccontextmanager
    async def turn(self, budget: ClientBudget) -> AsyncIterator[None]:
        """Wait until few enough others of the address have a turn, and until it has no debt.

        Not to be taken within another turn of the same address.
        """
        async with budget.turns:
            await self.pause(budget)
            yield

    async def pause(self, budget: ClientBudget) -> None:
        """Let the loop serve others, and wait until the address has paid its debt."""
        await asyncio.sleep(0)
        while not self.hurry and (wait := budget.busy(self._clock())):  # noqa: ASYNC110  a debt
            await asyncio.sleep(min(wait, LONGEST_PAUSE))


async def metered(work: Callable[[], Coroutine[Any, Any, T]], cpu: Bucket) -> T:
    """What `work()` returns; each step that it takes on the event loop is charged to `cpu`.

    Steps of other tasks that it waits for are not. (`work` is called here, so that a task that is
    cancelled before its first step leaves no coroutine behind.)
    """
    return await _steps(work(), cpu)


@coroutine
def _steps(work: Coroutine[Any, Any, T], cpu: Bucket) -> Generator[Any, Any, T]:
    step: Callable[[Any], Any] = work.send
    given: Any = None
    while True:
        begun = thread_time()
        try:
            awaited = step(given)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            cpu.charge(thread_time() - begun)
        try:
            given = yield awaited
            step = work.send
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # a cancellation, or what the awaited future raises
            step, given = work.throw, error
