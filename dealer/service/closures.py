"""Closed for new games: no new seat or round at this table, or in the whole house, for now.

What is open goes on to its end: rounds are played and closed, players leave and come back. The
operators disable in the database; every process that serves it looks there again within a second.
So it learns, too, that the house has a newer key than its own, under which no table may begin.
"""

from __future__ import annotations

import asyncio
import logging

from dealer.errors import DealerError, Disabled
from dealer.eventlog import Log
from dealer.eventlog.house import checks
from dealer.game.commands import Command, OpenRound, OpenTable, TakeSeat

EVERY = 0.8
"""Seconds between two looks: all processes follow within one."""

HOUSE = "house"
"""What stands for all tables, those that are not opened yet included."""

OLD_KEY = "key"
"""What stands for new tables in a process whose key the house has replaced."""

_ASK = "SELECT target FROM disabled"
_BEGINNINGS = (OpenTable, TakeSeat, OpenRound)

log = logging.getLogger(__name__)


class Closures:
    """What is disabled; `targets` are tables' ids in hex, HOUSE and OLD_KEY.

    `check` is the check value of the key that new tables of this process are signed under.
    """

    def __init__(self) -> None:
        self.targets: frozenset[str] = frozenset()
        self.check = b""

    def require(self, table: str, command: Command) -> None:
        """Raise Disabled if `command` begins something that may not begin now."""
        if not self.targets or not isinstance(command, _BEGINNINGS):
            return
        if HOUSE in self.targets:
            raise Disabled(
                "The house opens no tables, seats or rounds for now; what is open goes on. Try "
                "again later."
            )
        if OLD_KEY in self.targets and isinstance(command, OpenTable):
            raise Disabled(
                "The house opens no tables here until it is restarted, for it has a new key; "
                "tables that are there go on. Try again later."
            )
        if table in self.targets:
            raise Disabled(
                "This table takes no new players or rounds for now; the round that is open goes "
                "on. Try again later."
            )

    async def look(self, kept: Log) -> None:
        """Take in what stands in the database now; raises DatabaseError."""
        found = frozenset(target for (target,) in await kept.fetch(_ASK))
        known = list((await checks(kept)).values())
        if self.check and known and self.check != known[-1]:
            if OLD_KEY not in self.targets:
                log.warning("restart to use the new key")
            found |= {OLD_KEY}
        for event, targets in (
            ("disabled", found - self.targets),
            ("enabled", self.targets - found),
        ):
            for target in sorted(targets - {OLD_KEY}):
                log.info(event, extra={"told": {"target": target}})
        self.targets = found

    async def follow(self, kept: Log) -> None:
        """Look for ever; while the database is away, what was known before holds."""
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.look(kept)
            except DealerError as error:
                log.debug("closures unknown", extra={"told": {"says": str(error)}})
