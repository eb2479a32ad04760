"""Cards drawn from anywhere in a stack: a partial shuffle brings them to the top first.

Where players bring entropy the shuffle takes a while. The draw waits in memory and happens in the
append that seals. Should the house be restarted meanwhile, the wait is forgotten but the shuffle is
not: the command, sent again under its id, finds where it was.
"""

from __future__ import annotations

import asyncio

from dealer.errors import DealerError, NoRound
from dealer.game.commands import Draw
from dealer.game.events import CardDrawn, ShuffleStarted
from dealer.service.desk import Desk
from dealer.service.past import Past
from dealer.service.requests import Answer, Done, Outcome, PendingDraw, Request, settling
from dealer.service.resident import Resident


class Draws:
    """Draws at random at the tables of one house."""

    def __init__(self, desk: Desk, past: Past) -> None:
        self._desk = desk
        self._past = past

    async def draw(self, resident: Resident, request: Request, draw: Draw) -> Done:
        """Carry out `request`, a DrawAtRandom, and `draw` from the top of what it shuffled."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        settle = settling(future)

        def started(outcome: Outcome) -> None:
            if not isinstance(outcome, Done):
                settle(outcome)
            elif drawn := [event for event in outcome.events if isinstance(event, CardDrawn)]:
                settle(Done(outcome.version, list(drawn)))
            elif request.again:
                self._desk.keep(self._go_on(resident, request, draw, outcome, settle))

        request.done, request.then, request.drawn = started, draw, settle
        with resident.held():
            self._desk.submit(resident, request)
            return await future

    async def _go_on(
        self, resident: Resident, request: Request, draw: Draw, start: Done, settle: Answer
    ) -> None:
        """Answer a command whose shuffle was started at an earlier time."""
        try:
            sealed = await self._sealed_at(resident, after=start.version)
            if sealed is None:
                if resident.pending_draw is None:
                    resident.pending_draw = PendingDraw(draw, [])
                resident.pending_draw.answers.append(settle)
                return
            drawn = await self._past.drawn_at_seal(resident, draw, sealed=sealed)
        except DealerError as error:
            settle(error)
            return
        if drawn is not None:
            settle(drawn)
            return
        begun, round_ = start.events[0], resident.table.round
        if not isinstance(begun, ShuffleStarted) or round_ is None or round_.number != begun.round:
            settle(NoRound("The round of that draw is over."))
            return
        plain = Request(draw, settle, f"{request.name}/draw", request.digest)
        self._desk.submit(resident, plain)

    async def _sealed_at(self, resident: Resident, *, after: int) -> int | None:
        """The version at which the shuffle begun at `after` was sealed; None while it runs."""
        while True:
            version = resident.table.version
            await self._desk.on_disk(resident, version)
            sealed = await self._past.seal_after(resident, after)
            if sealed is not None or version == resident.table.version:
                return sealed
