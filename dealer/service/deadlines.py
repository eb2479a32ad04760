"""Waiting for players' entropy ends: the house wakes up and says what time it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dealer.game.commands import PassTime
from dealer.game.decide.shuffles import deadline
from dealer.service.judge import Judge
from dealer.service.requests import Done, Outcome, Request
from dealer.service.resident import Resident

RETRY_SECONDS = 0.5
"""How long is waited before time is told again to a table that could not take it."""


class Deadlines:
    """One timer for each table whose shuffle waits; `submit` hands in what is due."""

    def __init__(self, judge: Judge, submit: Callable[[Resident, Request], None]) -> None:
        self._judge = judge
        self._submit = submit

    def disarm(self, resident: Resident) -> None:
        """Let the table sleep."""
        if resident.timer is not None:
            resident.timer.cancel()
            resident.timer = None

    def arm(self, resident: Resident) -> None:
        """Wake up when the shuffle that runs has waited long enough."""
        self.disarm(resident)
        round_ = resident.table.round
        due = None if round_ is None else deadline(round_)
        if due is not None:
            delay = max(0, due - self._judge.now()) / 1000
            loop = asyncio.get_running_loop()
            resident.timer = loop.call_later(delay, self._pass, resident)

    def _pass(self, resident: Resident) -> None:
        resident.timer = None

        def passed(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                self.arm(resident)
            elif resident.timer is None:
                loop = asyncio.get_running_loop()
                resident.timer = loop.call_later(RETRY_SECONDS, self.arm, resident)

        self._submit(resident, Request(PassTime(self._judge.now()), passed))
