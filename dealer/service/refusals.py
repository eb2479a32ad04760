"""How a command is refused: not before it is sure that no is the answer.

What it was refused for may never get to the disk; it may itself have been done long ago; and, where
several nodes serve one database, another one may have written what allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dealer.errors import DealerError, Refused
from dealer.eventlog import Log
from dealer.service.past import Past
from dealer.service.requests import ATTEMPTS, Request, unavailable
from dealer.service.resident import Refusal, Resident

if TYPE_CHECKING:
    from dealer.service.desk import Desk


class Refusals:
    """Says no for `desk`, to which all goes back that may be granted after all."""

    def __init__(self, desk: Desk, log: Log, past: Past) -> None:
        self._desk = desk
        self._log = log
        self._past = past

    def refuse(self, resident: Resident, request: Request, refusal: Refused) -> None:
        """Refuse what the table, as it stands in memory, does not allow."""
        version = resident.table.version
        if request.name is not None and resident.forgetful:
            self._desk.keep(self._recall_or_refuse(resident, request, refusal, version))
        else:
            self._refuse(resident, request, refusal, version)

    async def _recall_or_refuse(
        self, resident: Resident, request: Request, refusal: Refused, version: int
    ) -> None:
        """What cannot be done now may have been done long ago, by this very command."""
        chain = resident.chain
        try:
            known = await self._past.remembered(resident, request.name or "")
        except DealerError as error:
            request.done(unavailable(error))
            return
        if known is None and resident.chain is not chain:
            # Read anew meanwhile: what it was refused for may be void, and it itself done there.
            self._desk.submit(resident, request)
        elif known is None:
            self._refuse(resident, request, refusal, version)
        else:
            self._desk.answer_again(resident, request, known)

    def _refuse(self, resident: Resident, request: Request, refusal: Refused, version: int) -> None:
        """Say no once that is on disk for which it was said; it may never get there."""

        def told(there: bool) -> None:
            if not there:
                self._desk.submit(resident, request)
            elif self._log.server is None:
                request.done(refusal)
            else:
                self._look_first(resident, Refusal(request, refusal, resident.chain))

        resident.when_committed(version, told)

    def _look_first(self, resident: Resident, refusal: Refusal) -> None:
        """Say no once it is known that no other node wrote what would allow it."""
        resident.refused.append(refusal)
        if not resident.looking:
            resident.looking = True
            self._desk.keep(self._look(resident))

    async def _look(self, resident: Resident) -> None:
        """Look at the log, once for all that were refused before that look began."""
        try:
            while resident.refused:
                refused, resident.refused = resident.refused, []
                await self._refuse_unless_new(resident, refused)
        finally:
            resident.looking = False

    async def _refuse_unless_new(self, resident: Resident, refused: list[Refusal]) -> None:
        try:
            await self._desk.catch_up(resident)
        except DealerError as error:
            for request, _, _ in refused:
                request.done(unavailable(error))
            return
        for request, refusal, chain in refused:
            request.attempts += 1
            if resident.chain is chain or request.attempts >= ATTEMPTS:
                request.done(refusal)
            else:
                self._desk.submit(resident, request)
