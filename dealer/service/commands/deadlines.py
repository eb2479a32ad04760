"""Deadlines: timers of shuffles that wait for players' entropy, measured by the monotonic clock.

The log has the start of a wait by the wall clock, which may be stepped by hours. The wall clock is
therefore read once, when this process first sees the wait: the remaining time is the difference to
the deadline, between zero and the whole wait. From then on only the loop's clock counts. When the
time is over the table gets CheckDeadlines with the deadline in the log, whatever the wall clock
says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from dealer.game.commands import CheckDeadlines
from dealer.game.decide.rounds import deadline
from dealer.game.state import Round
from dealer.service.commands.executor import CommandExecutor
from dealer.service.tables.execution import CommandExecution, CommandResult, Outcome
from dealer.service.tables.live_table import LiveTable

RETRY_SECONDS = 0.5
"""Seconds until a deadline is submitted again that the table could not take."""


class Wait(NamedTuple):
    """A wait for digests or reveals; `ends` is in seconds of the loop's clock.

    `wait` identifies it: (round, k, whether the digests are closed, deadline in the log).
    """

    wait: tuple[int, int, bool, int]
    ends: float


class Deadlines:
    """One timer for each table whose shuffle waits; `submit` receives the due CheckDeadlines.

    The end of a wait is stored by table, so that a table may leave memory and return meanwhile.
    """

    def __init__(
        self, executor: CommandExecutor, submit: Callable[[LiveTable, CommandExecution], None]
    ) -> None:
        self._executor = executor
        self._submit = submit
        self._waits: dict[bytes, Wait] = {}

    def disarm(self, live_table: LiveTable) -> None:
        """Cancel the table's timer."""
        if live_table.timer is not None:
            live_table.timer.cancel()
            live_table.timer = None

    def forget(self, live_table: LiveTable) -> None:
        """Cancel the timer of a table that has left the log, and drop the end of its wait."""
        self.disarm(live_table)
        self.drop_wait(live_table.id)

    def drop_wait(self, table: bytes) -> None:
        """Drop the end of the wait of a table that left the log while it was not in memory."""
        self._waits.pop(table, None)

    def arm(self, live_table: LiveTable) -> None:
        """Set the table's timer to the end of the current wait, if there is one."""
        self.disarm(live_table)
        round_ = live_table.table.round
        due = None if round_ is None else deadline(round_)
        if round_ is None or due is None:
            self._waits.pop(live_table.id, None)
            return
        loop = asyncio.get_running_loop()
        wait = self._waits.get(live_table.id)
        which = _which(round_, due)
        if wait is None or wait.wait != which:
            left = min(max(0, due - self._executor.now()), _whole(round_))
            wait = self._waits[live_table.id] = Wait(which, loop.time() + left / 1000)
        live_table.timer = loop.call_at(wait.ends, self._expire, live_table, which)

    def _expire(self, live_table: LiveTable, which: tuple[int, int, bool, int]) -> None:
        live_table.timer = None

        def on_result(outcome: Outcome) -> None:
            if isinstance(outcome, CommandResult):
                self.arm(live_table)
            elif live_table.timer is None:
                loop = asyncio.get_running_loop()
                live_table.timer = loop.call_later(RETRY_SECONDS, self.arm, live_table)

        # The deadline of this wait and not a later one, which another process may have begun.
        self._submit(
            live_table, CommandExecution(command=CheckDeadlines(which[-1]), done=on_result)
        )


def _which(round_: Round, due: int) -> tuple[int, int, bool, int]:
    shuffle = round_.shuffle
    return round_.number, round_.k, bool(shuffle and shuffle.closed_version), due


def _whole(round_: Round) -> int:
    """Length of the current wait in milliseconds."""
    closed = round_.shuffle is not None and round_.shuffle.closed_version
    return round_.reveal_ms if closed else round_.commit_ms
