"""Timers of shuffles that wait for players' entropy; they run by the monotonic clock.

The log says when a wait began by the wall clock, which may be stepped by hours, so it is looked at
once: as this process first sees the wait, what is left of it is the difference, and at least
nothing, at most the whole wait. From then on only the loop's clock counts. When it has run down the
table is told its own deadline, whatever the wall clock says by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from dealer.game.commands import PassTime
from dealer.game.decide.shuffles import deadline
from dealer.game.state import Round
from dealer.service.judge import Judge
from dealer.service.requests import Done, Outcome, Request
from dealer.service.resident import Resident

RETRY_SECONDS = 0.5
"""Seconds until a table that could not take the end of its wait gets it again."""


class Wait(NamedTuple):
    """A wait for digests or reveals: which one, and when it ends, in seconds of the loop's clock.

    `wait` is (round, k, whether the digests are closed, deadline of the log).
    """

    wait: tuple[int, int, bool, int]
    ends: float


class Deadlines:
    """One timer for each table whose shuffle waits; `submit` hands in what is due.

    What is left of a wait is kept by table, so a table may leave memory and come back meanwhile.
    """

    def __init__(self, judge: Judge, submit: Callable[[Resident, Request], None]) -> None:
        self._judge = judge
        self._submit = submit
        self._waits: dict[bytes, Wait] = {}

    def disarm(self, resident: Resident) -> None:
        """Cancel the table's timer."""
        if resident.timer is not None:
            resident.timer.cancel()
            resident.timer = None

    def arm(self, resident: Resident) -> None:
        """Set the table's timer for the end of the wait that is running, if there is one."""
        self.disarm(resident)
        round_ = resident.table.round
        due = None if round_ is None else deadline(round_)
        if round_ is None or due is None:
            self._waits.pop(resident.id, None)
            return
        loop = asyncio.get_running_loop()
        wait = self._waits.get(resident.id)
        which = _which(round_, due)
        if wait is None or wait.wait != which:
            left = min(max(0, due - self._judge.now()), _whole(round_))
            wait = self._waits[resident.id] = Wait(which, loop.time() + left / 1000)
        resident.timer = loop.call_at(wait.ends, self._pass, resident, which)

    def _pass(self, resident: Resident, which: tuple[int, int, bool, int]) -> None:
        resident.timer = None

        def passed(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                self.arm(resident)
            elif resident.timer is None:
                loop = asyncio.get_running_loop()
                resident.timer = loop.call_later(RETRY_SECONDS, self.arm, resident)

        # The deadline of this wait and not a later one, which another process may have begun.
        self._submit(resident, Request(PassTime(which[-1]), passed))


def _which(round_: Round, due: int) -> tuple[int, int, bool, int]:
    shuffle = round_.shuffle
    return round_.number, round_.k, bool(shuffle and shuffle.closed_version), due


def _whole(round_: Round) -> int:
    """How long the running wait is in all, in milliseconds."""
    closed = round_.shuffle is not None and round_.shuffle.closed_version
    return round_.reveal_ms if closed else round_.commit_ms
