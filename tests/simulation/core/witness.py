"""The witness of the core world: compares answers and notices with what is in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dealer.eventlog import EventRecord
from dealer.service import CommandResult
from dealer.service.tables.live_table import CommitNotice
from tests.simulation.checks import ARCHIVED
from tests.simulation.witness import Witness

if TYPE_CHECKING:
    from tests.simulation.core.calls import TableCall


class CoreWitness(Witness):
    """Has the log as committed, and what callers were answered."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._private: dict[tuple[str, int, str], str] = {}  # type: ignore[assignment]
        self._results: dict[tuple[str, str, str, bytes], CommandResult] = {}
        self._newest: dict[str, int] = {}

    def restored(self, kept: dict[str, int]) -> None:
        super().restored(kept)
        self._results.clear()
        self._newest.clear()

    def newest(self, table: str) -> int:
        """The newest version of a table that was answered."""
        return self._newest.get(table, 0)

    def archived(self) -> set[str]:
        """The tables whose events have left the log."""
        found = self._world.database.fetch(ARCHIVED)
        return {bytes(table).hex() for (table,) in found}

    def begin(self, call: TableCall) -> None:
        """A call is sent for the first time: no answer to it may be older than this."""
        call.begun = self.newest(call.table)

    def answered(self, call: TableCall, outcome: CommandResult) -> None:
        """A node answers a call with success, at this moment."""
        world = self._world
        if call.restores != world.restores or world.restored_while_running:
            return
        version, name = outcome.version, f"{call.actor.name}'s {call.what}"
        if version > len(self.log.get(call.table, ())):
            world.fault(f"{name} was answered {version}, which is not on disk")
        if version < call.begun:
            world.fault(f"{name} was answered {version} after {call.begun} was answered")
        if call.expect is not None and version > call.expect + 1:
            world.fault(f"{name} expected version {call.expect}, and was written as {version}")
        self._newest[call.table] = max(version, self._newest.get(call.table, 0))
        self.received[call.table] = max(version, self.received.get(call.table, 0))
        if not outcome.events:
            return  # nothing was written, so nothing is kept of it
        key = (call.table, call.key.scope, call.key.cmd, call.key.content)
        first = self._results.setdefault(key, outcome)
        if first != outcome:
            world.fault(f"{name} was answered {first}, then {outcome}")

    def published(self, table: str, notice: CommitNotice) -> None:
        """A node makes events public, at this moment."""
        for entry in notice.entries:
            self._is_in_log(table, entry)

    def delivered(self, table: str, entry: EventRecord) -> None:
        """A stream gets an event: that of the log, with the same face from each source."""
        self._is_in_log(table, entry)
        self.received[table] = max(entry.version, self.received.get(table, 0))
        shown = f"{entry.seat} {entry.private}"
        known = self._private.setdefault((table, entry.version, entry.leaf), shown)
        if shown != known:
            self._world.fault(f"version {entry.version} shows {shown}, and before {known}")

    def _is_in_log(self, table: str, entry: EventRecord) -> None:
        leaves = self.log.get(table, ())
        if self._world.restored_while_running:
            return
        if entry.version > len(leaves) or leaves[entry.version - 1] != entry.leaf:
            self._world.fault(f"version {entry.version} of {table[:8]} is public, not in the log")
