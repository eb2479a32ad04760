"""Maintenance mode: no new seats or rounds at a table, or at all tables, for the time being.

Open rounds go on to their end, and players may leave and return. Operators disable tables in the
database, which every process polls within a second. The same poll finds that the house has a newer
key, which this process then uses for new tables; while its file is not here, it opens none. A check
of the disk of an SQLite file finds that it is nearly full, so that the rest is left for the open
rounds.
"""

from __future__ import annotations

import asyncio
import logging
from math import nan
from pathlib import Path
from shutil import disk_usage

from dealer.errors import DealerError, Disabled, HouseKeyError
from dealer.eventlog import Log
from dealer.eventlog.admin import BACKUP
from dealer.eventlog.keys import HouseKeys, existing_house_keys, key_checks
from dealer.game.commands import Command, OpenRound, OpenTable, TakeSeat

MIB = 2**20
POLL_SECONDS = 0.8
"""Seconds between two polls: all processes follow within a second."""

WHOLE_SERVICE = "house"
"""The target for all tables, including those that are not opened yet."""

OLD_KEY = "key"
"""The target for new tables in a process that has not the file of the house's newest key."""

DISK = "disk"
"""The target for new tables and rounds while the disk has less free space than the floor."""

KEY_NEEDED = (
    "This server opens no tables, because the house has a new key, and its file is not next to the "
    "earlier one: copy all key files of the house to this machine. Existing tables continue."
)

RECOVERY_FACTOR = 1.1
"""The disk counts as recovered when this many times the floor is free."""

_TARGETS = "SELECT target FROM disabled"
_BEGINNINGS = (OpenTable, TakeSeat, OpenRound)

log = logging.getLogger(__name__)


class MaintenanceMode:
    """What is disabled; `targets` are tables' ids in hex, WHOLE_SERVICE, OLD_KEY and DISK.

    `free` is the number of free bytes on the disk, NaN if it is unknown. `backup_at` is the
    millisecond of the newest `dealer backup`, 0 if there is none.

    `keys`, with their file, are used for new tables: a newer one of the house is looked for there.
    New tables and rounds are refused while the disk of `folder` has less than `floor` free bytes; a
    floor of 0 refuses nothing, and `free` is measured in any case.
    """

    def __init__(
        self,
        *,
        keys: tuple[HouseKeys, Path] | None = None,
        folder: Path | None = None,
        floor: int = 0,
    ) -> None:
        self.targets: frozenset[str] = frozenset()
        self.free = nan
        self.backup_at = 0
        self._keys = keys
        self._folder = folder
        self._floor = floor

    @property
    def notice(self) -> str | None:
        """A remark for operators while the server is ready; None if there is none."""
        if DISK not in self.targets:
            return None
        free, floor = int(self.free) // MIB, self._floor // MIB
        return (
            f"The disk of the database is nearly full: {free} MiB are free, and below {floor} MiB "
            "(--disk-floor) no tables or rounds are opened; free space."
        )

    @property
    def key_needed(self) -> str | None:
        """Why this process opens no tables until it has the newest key; None if it opens them."""
        return KEY_NEEDED if OLD_KEY in self.targets else None

    def require(self, table: str, command: Command) -> None:
        """Raise Disabled if `command` begins something that may not begin now."""
        if not self.targets or not isinstance(command, _BEGINNINGS):
            return
        if WHOLE_SERVICE in self.targets:
            raise Disabled(
                "The server opens no tables, seats or rounds for now; open rounds continue. Try "
                "again later."
            )
        if OLD_KEY in self.targets and isinstance(command, OpenTable):
            raise Disabled(f"{KEY_NEEDED} Try again later.")
        if DISK in self.targets and isinstance(command, OpenTable | OpenRound):
            raise Disabled(
                "The server opens no tables or rounds for now, because its disk is nearly full; "
                "open rounds continue. Try again later."
            )
        if table in self.targets:
            raise Disabled(
                "This table takes no new players or rounds for now; an open round continues. Try "
                "again later."
            )

    async def refresh(self, database: Log) -> None:
        """Read the targets from the database; raises DatabaseError."""
        found = frozenset(target for (target,) in await database.fetch(_TARGETS))
        if self._keys is not None and not await self._use_newest_key(database, *self._keys):
            found |= {OLD_KEY}
        found |= self.targets & {DISK}
        self.backup_at = int.from_bytes(await database.metadata(BACKUP) or b"")
        for event, targets in (
            ("disabled", found - self.targets),
            ("enabled", self.targets - found),
        ):
            for target in sorted(targets - {OLD_KEY, DISK}):
                log.info(event, extra={"fields": {"target": target}})
        self.targets = found

    async def _use_newest_key(self, database: Log, keys: HouseKeys, file: Path) -> bool:
        """Whether `keys` are the newest ones of the house, once those have been looked for."""
        *_, newest = (await key_checks(database)).values()
        if keys.check == newest:
            return True
        try:
            keys.adopt(await existing_house_keys(database, file))
        except HouseKeyError as error:
            if OLD_KEY not in self.targets:
                log.warning("new key missing", extra={"fields": {"says": str(error)}})
            return False
        log.info("new key in use")
        return True

    async def run(self, database: Log) -> None:
        """Poll until cancelled; while the database is unavailable the last known targets apply."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self.measure_disk()
            try:
                await self.refresh(database)
            except DealerError as error:
                log.debug("maintenance unknown", extra={"fields": {"says": str(error)}})

    async def measure_disk(self) -> None:
        """Measure the free space of the database's disk."""
        if self._folder is None:
            return
        try:
            # In a thread: a network disk may block.
            self.free = float((await asyncio.to_thread(disk_usage, self._folder)).free)
        except OSError as error:
            self.free = nan
            log.debug("disk not measured", extra={"fields": {"says": error.strerror}})
        was_low = DISK in self.targets
        low = self.free < self._floor * (RECOVERY_FACTOR if was_low else 1)
        if low and not was_low:
            self.targets |= {DISK}
            log.error("disk nearly full", extra={"fields": {"says": self.notice}})
        elif was_low and not low:
            self.targets -= {DISK}
            log.warning("disk has room again")
