"""The simulated database outside of a simulation, for the tests of what every store guarantees."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from dealer.eventlog import Log
from tests.simulation.database import Database
from tests.simulation.store import backend


class _NoWait:
    """Takes the place of the loop and the threads: nothing waits, and the clock stands still."""

    now = 0.0

    def on_loop(self) -> bool:
        return True


class TemporarySimulation:
    """A simulated database, with the methods of `TemporarySqlite`."""

    def __init__(self, folder: Path, *, commit: str) -> None:
        self.url = f"sqlite:///{folder}/simulated.db"  # what opens the address itself makes a file
        self.commit = commit
        nothing: Any = _NoWait()
        self.database = Database(nothing, nothing, Random(0))
        self.database.slow = 0.0

    async def open(self, **options: Any) -> Log:
        with patch("dealer.eventlog.log.backend", lambda *_, **__: backend(self.database)):
            return await Log.open(self.url, **{"commit": self.commit} | options)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.database.fetch(sql)]

    def no_transaction_is_open(self) -> bool:
        return not self.database.raw.in_transaction
