"""A table in memory: how it stands, its tree, the secret of its round, its latest events.

The state runs ahead of the log: a command is judged against all that was decided before it, also
while that is still on its way to the disk. `committed` is what is on disk, and nobody is told more.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dealer.errors import Refused, TableArchived
from dealer.eventlog import Chain
from dealer.game.decide import NoSecret
from dealer.game.size import size_of
from dealer.game.state import Table
from dealer.proof.tree import Tree
from dealer.service.remembered import RecentCommands
from dealer.service.requests import PendingDraw, Remembered, Request
from dealer.service.ring import Ring
from dealer.service.round_secret import RoundSecret
from dealer.service.tail import FRESH, Footing

FIXED = 4_500
"""Bytes of a table in memory beside its state and what it keeps at hand, estimated."""

SECRET = 4_500
"""Bytes of a round's secret with its keys and ciphers."""

REQUEST = 700
SUBSCRIBER = 1_500
"""Bytes of a request that waits, and of a subscription with what the gateway keeps for it."""


class Refusal(NamedTuple):
    """A request, why it is refused, and the chain of appends that this was judged in."""

    request: Request
    refusal: Refused
    chain: Chain


@dataclass(slots=True, eq=False)
class Resident:
    id: bytes
    table_id: str
    table: Table = field(default_factory=Table)
    tree: Tree = field(default_factory=Tree)
    secret: RoundSecret | NoSecret = field(default_factory=NoSecret)
    c1_root: bytes = b""  # root of C1, while a shuffle waits for its reveals
    committed: int = 0
    leaf: str = ""  # of the event at `committed`: a log that has another there was put back
    footing: Footing | None = None  # how it stood when nothing in memory was ahead of the log
    chain: Chain = field(default_factory=Chain)
    ring: Ring = field(default_factory=Ring)  # empty where nobody listens
    recent: RecentCommands = field(default_factory=RecentCommands)
    forgetful: bool = False  # whether `recent` lacks some of the table's commands
    in_flight: int = 0
    reloading: bool = False
    archived: str = ""  # what is said of it since another process put it away
    cosigned: int = 0  # the stream's count of cosignatures, up to which subscribers have them
    pushed: dict[int, str] = field(default_factory=dict)  # cosigned notes as pushed last, by size
    failed: list[Request] = field(default_factory=list)  # to be judged again after a reload
    refused: list[Refusal] = field(default_factory=list)  # who was not told so yet
    looking: bool = False  # whether the log is looked at before they are told
    pending_draw: PendingDraw | None = None
    waiting: list[tuple[int, Callable[[bool], None]]] = field(default_factory=list)
    timer: TimerHandle | None = None
    sessions: set[Any] = field(default_factory=set)  # the gateway's own
    holds: int = 0  # callers that would miss it if it left memory
    weight: int = 0  # its size as `Memory` has it in its sum, and the version that it had then
    weighed_at: int = 0

    def idle(self) -> bool:
        """Whether it may leave memory: nobody listens, and nothing is under way."""
        under_way = self.in_flight or self.reloading or self.looking or self.failed
        return not (self.sessions or under_way or self.holds or self.waiting)

    @contextmanager
    def held(self) -> Iterator[None]:
        """It does not leave memory meanwhile."""
        self.holds += 1
        try:
            yield
        finally:
            self.holds -= 1

    def size(self) -> int:
        """Bytes of memory that this takes, estimated without looking at every card."""
        size = FIXED + size_of(self.table) + self.ring.size + self.recent.size + len(self.leaf)
        if self.footing is not None:
            size += len(self.footing.state)
        if isinstance(self.secret, RoundSecret):
            size += SECRET
        requests = len(self.failed) + len(self.refused) + len(self.waiting) + self.in_flight
        return size + REQUEST * requests + SUBSCRIBER * len(self.sessions)

    def require_here(self) -> None:
        """Raise TableArchived where the table's events are in the log no more."""
        if self.archived:
            raise TableArchived(self.archived)

    def remember(self, name: str, outcome: Remembered) -> None:
        """Answer this command, which is on disk, from memory for some time."""
        if self.recent.settle(name, outcome):
            self.forgetful = True

    def when_committed(self, version: int, call: Callable[[bool], None]) -> None:
        """Call with True once `version` is on disk, with False should it never get there."""
        if version <= self.committed:
            call(True)
        else:
            self.waiting.append((version, call))

    def tell_waiting(self) -> None:
        """Call whom the versions on disk concern; after a reload, all that still wait."""
        if not self.waiting:
            return
        waiting, self.waiting = self.waiting, []
        for version, call in waiting:
            if version <= self.committed:
                call(True)
            elif self.reloading:
                call(False)
            else:
                self.waiting.append((version, call))

    def set_foot(self) -> None:
        """Take a new footing if the old one lies far back and nothing is ahead of the log."""
        if self.table.version != self.committed:
            return
        if self.footing is None or self.committed - self.footing.version >= FRESH:
            self.footing = Footing.at(self.table, self.tree, self.secret, self.c1_root)

    def replace_with(self, fresh: Resident) -> None:
        """Take on the state that was loaded afresh; who listens stays."""
        self.table, self.tree, self.secret = fresh.table, fresh.tree, fresh.secret
        self.c1_root, self.recent, self.chain = fresh.c1_root, fresh.recent, fresh.chain
        self.forgetful, self.footing = fresh.forgetful, fresh.footing
        self.leaf = fresh.leaf
        self.ring.clear()
