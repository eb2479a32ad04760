"""Closed for new games: no new seat or round at this table, or in the whole house, for now.

What is open goes on to its end: rounds are played and closed, players leave and come back. The
operators disable in the database; every process that serves it looks there again within a second.
So it learns, too, that the house has a newer key than its own, under which no table may begin, and
that the disk of an SQLite file is nearly full: what is left is for the rounds that are open.
"""

from __future__ import annotations

import asyncio
import logging
from math import nan
from pathlib import Path
from shutil import disk_usage

from dealer.errors import DealerError, Disabled
from dealer.eventlog import Log
from dealer.eventlog.house import checks
from dealer.game.commands import Command, OpenRound, OpenTable, TakeSeat

MIB = 2**20
EVERY = 0.8
"""Seconds between two looks: all processes follow within one."""

HOUSE = "house"
"""What stands for all tables, those that are not opened yet included."""

OLD_KEY = "key"
"""What stands for new tables in a process whose key the house has replaced."""

DISK = "disk"
"""What stands for new tables and rounds while the disk has less free than the floor."""

AGAIN = 1.1
"""Times the floor that have to be free before it counts as enough again."""

_ASK = "SELECT target FROM disabled"
_BEGINNINGS = (OpenTable, TakeSeat, OpenRound)

log = logging.getLogger(__name__)


class Closures:
    """What is disabled; `targets` are tables' ids in hex, HOUSE, OLD_KEY and DISK.

    `check` is the check value of the key that new tables of this process are signed under.
    """

    def __init__(self) -> None:
        self.targets: frozenset[str] = frozenset()
        self.check = b""
        self.free = nan
        self._folder: Path | None = None
        self._floor = 0

    def watch_disk(self, folder: Path, *, floor: int) -> None:
        """Refuse new tables and rounds while the disk of `folder` has less than `floor` free bytes.

        0 refuses nothing, and `free` is measured all the same.
        """
        self._folder, self._floor = folder, floor

    @property
    def notice(self) -> str | None:
        """What an operator should know though the house is ready."""
        if DISK not in self.targets:
            return None
        free, floor = int(self.free) // MIB, self._floor // MIB
        return (
            f"The disk of the database is nearly full: {free} MiB are free, and below {floor} MiB "
            "(--disk-floor) no tables or rounds are opened; free space."
        )

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
        if DISK in self.targets and isinstance(command, OpenTable | OpenRound):
            raise Disabled(
                "The house opens no tables or rounds for now, for its disk is nearly full; rounds "
                "that are open go on. Try again later."
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
        found |= self.targets & {DISK}
        for event, targets in (
            ("disabled", found - self.targets),
            ("enabled", self.targets - found),
        ):
            for target in sorted(targets - {OLD_KEY, DISK}):
                log.info(event, extra={"told": {"target": target}})
        self.targets = found

    async def follow(self, kept: Log) -> None:
        """Look for ever; while the database is away, what was known before holds."""
        while True:
            await asyncio.sleep(EVERY)
            await self.look_at_disk()
            try:
                await self.look(kept)
            except DealerError as error:
                log.debug("closures unknown", extra={"told": {"says": str(error)}})

    async def look_at_disk(self) -> None:
        """Measure the free space of the database's disk."""
        if self._folder is None:
            return
        try:
            # On a thread of its own: a disk of the network may keep one waiting.
            self.free = float((await asyncio.to_thread(disk_usage, self._folder)).free)
        except OSError as error:
            self.free = nan
            log.debug("disk not measured", extra={"told": {"says": error.strerror}})
        was_low = DISK in self.targets
        low = self.free < self._floor * (AGAIN if was_low else 1)
        if low and not was_low:
            self.targets |= {DISK}
            log.error("disk nearly full", extra={"told": {"says": self.notice}})
        elif was_low and not low:
            self.targets -= {DISK}
            log.warning("disk has room again")
