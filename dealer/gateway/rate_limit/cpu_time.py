"""Event loop time per client address: measured, charged and limited.

Messages whose work is constant have a flat price instead (`costs.MESSAGE_SECONDS`).

    await metered(partial(answer, request), budget)        # charges each of its steps
    async with long_answers.permit(budget):                # two at once, none while in debt
        snapshot = await service.checkpoints.snapshot(...)
    await long_answers.pause(budget)                       # between two slices of long work

Time is the processor time of the loop's thread: on a busy machine, where every step takes longer,
no client's budget is used up faster. One long step costs more than the same work in short steps
if it delayed another client, see `LongSteps`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from time import thread_time
from types import coroutine
from typing import Any, TypeVar

from dealer.gateway.rate_limit.budgets import ClientBudget

LONGEST_PAUSE = 0.25
"""Seconds after which a pause checks again whether the server drains."""

T = TypeVar("T")


class LongAnswers:
    """Lets few long answers be made at once for each client address.

    `clock` gives seconds, as for budgets. While the server drains (`hurry`), debts are not waited
    for.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.hurry = False

    @asynccontextmanager
    async def permit(self, budget: ClientBudget) -> AsyncIterator[None]:
        """Wait until the address has fewer than `MAX_CONCURRENT` permits and no debt.

        Must not be nested: the inner one could wait for the outer one.
        """
        async with budget.long_answers:
            await self.pause(budget)
            yield

    async def pause(self, budget: ClientBudget) -> None:
        """Yield to the event loop, and wait until the address owes nothing."""
        await asyncio.sleep(0)
        while not self.hurry and (wait := budget.busy(self._clock())):  # noqa: ASYNC110  a debt
            await asyncio.sleep(min(wait, LONGEST_PAUSE))


async def metered(work: Callable[[], Coroutine[Any, Any, T]], budget: ClientBudget) -> T:
    """Await `work()` and charge each step that it takes on the event loop to `budget`.

    Steps of other tasks that it awaits are not charged. (`work` is called here, so that a task that
    is cancelled before its first step leaves no coroutine that was never awaited.)
    """
    return await _steps(work(), budget, asyncio.get_running_loop().time)


@coroutine
def _steps(
    work: Coroutine[Any, Any, T], budget: ClientBudget, clock: Callable[[], float]
) -> Generator[Any, Any, T]:
    step: Callable[[Any], Any] = work.send
    given: Any = None
    while True:
        begun = thread_time()
        try:
            awaited = step(given)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        finally:
            budget.step(thread_time() - begun, clock())
        try:
            given = yield awaited
            step = work.send
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # a cancellation, or an error of the awaited future
            step, given = work.throw, error
