"""Full garbage collections of the server: rare, and short because they skip what has survived one.

While one runs, no request is answered. Python starts one whenever the number of surviving objects
has grown by a quarter, and it then visits every object of the process: 65 to 100 ms with the
tables that one client may open, several times a minute. Instead, a task collects often, about 5 ms
each time, and *freezes* the survivors: later collections skip them, while those that nothing refers
to any more are freed as always. Only reference cycles that are dropped after they were frozen wait
for the next complete collection, which comes when the number of frozen objects has doubled.
"""

from __future__ import annotations

import asyncio
import gc

PERIOD = 60.0
"""Seconds between two collections of a server in use, and between two counts of what is frozen: a
count visits every frozen object, about 20 ms."""

MIDDLE_COLLECTIONS = 10
"""Collections of the middle generation, each after at most 7,000 more allocations than releases,
after which the next full one is not delayed any longer."""

CHECK = 0.2
"""Seconds between two checks of that number."""

NEVER = 2**30


class FullCollections:
    """Takes over the full collections of this process; `frozen` counts the objects skipped."""

    def __init__(self) -> None:
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)
        self._complete()

    async def run(self) -> None:
        """Collect every `PERIOD` seconds, earlier after many allocations, until cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock() + PERIOD
        while True:
            await asyncio.sleep(CHECK)
            collections = gc.get_count()[2]
            if collections and clock() >= due:
                self.collect()
                due = clock() + PERIOD
            elif collections >= MIDDLE_COLLECTIONS:
                self.collect_new()

    def collect(self) -> None:
        """Collect what is new, or everything if what is skipped has doubled; freeze the rest."""
        if gc.get_freeze_count() >= 2 * self.frozen:
            self._complete()
        else:
            self.collect_new()

    def collect_new(self) -> None:
        """Collect what was allocated since the last collection, and freeze what survives."""
        gc.collect()
        gc.freeze()

    def _complete(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self.frozen = gc.get_freeze_count()
