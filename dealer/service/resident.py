"""A table in memory: how it stands, its tree, the secret of its round, its latest events.

The state runs ahead of the log: a command is judged against all that was decided before it, also
while that is still on its way to the disk. `committed` is what is on disk, and nobody is told more.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dealer.errors import Refused, TableArchived
from dealer.eventlog import Chain
from dealer.game.decide import NoSecret
from dealer.game.state import Table
from dealer.proof.tree import Tree
from dealer.service.record import Entry
from dealer.service.requests import PendingDraw, Remembered, Request
from dealer.service.round_secret import RoundSecret
from dealer.service.tail import FRESH, Footing

RING = 64
"""How many of the latest events a table keeps at hand, so that a short gap costs no read."""

REMEMBERED = 256
"""How many of the latest commands are answered from memory; the log knows the others."""


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
    ring: deque[Entry] = field(default_factory=lambda: deque(maxlen=RING))
    recent: OrderedDict[str, Remembered] = field(default_factory=OrderedDict)
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

    def idle(self) -> bool:
        """Whether it may leave memory: nobody listens, and nothing is under way."""
        under_way = self.in_flight or self.reloading or self.looking
        return not (self.sessions or under_way or self.timer)

    def require_here(self) -> None:
        """Raise TableArchived where the table's events are in the log no more."""
        if self.archived:
            raise TableArchived(self.archived)

    def remember(self, name: str, outcome: Remembered) -> None:
        self.recent[name] = outcome
        if len(self.recent) > REMEMBERED:
            self.recent.popitem(last=False)
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
