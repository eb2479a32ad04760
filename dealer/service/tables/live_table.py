"""Live table: the state of one table in memory, and the state machine that it follows.

Theory of operation

A live table is a cache over the event log, which is the only authority. It holds two positions:

- `table`, `tree`, `secret` and `c1_root` are *optimistic*. A command is decided against everything
  that was decided before it, also while those events are still on their way to the disk.
- `committed` and `leaf` are the version and the leaf on disk. Nothing above `committed` is
  published or acknowledged.

The states:

    ACTIVE      Commands are decided and appended. `in_flight` appends are with the log's writer.
    RELOADING   An append was lost (another process was quicker, or the database failed), or the log
                has events that this process has not, or an internal error left the optimistic state
                undefined. New commands wait in `pending_retries`. When the last append in flight
                has been answered (`reload_due`), the table is read from the log again and adopted.
    UNREADABLE  The events have left the log because the table was archived, or they are damaged.
                Every command is refused; the state is final, and the table has left memory: the
                next request loads it again, and finds whether it was repaired.

The methods that change the state, and `TRANSITIONS`, which holds what each may do:

                        ACTIVE        RELOADING     UNREADABLE
    begin_append        ACTIVE        -             -
    append_committed    ACTIVE        RELOADING     -
    append_lost         RELOADING     RELOADING     -
    begin_reload        RELOADING     RELOADING     -
    adopt               -             RELOADING     -
    resume              -             ACTIVE        -
    give_up             -             UNREADABLE    -

A method without an entry for the current state raises RuntimeError: that is a bug in the caller.

Why it is safe: all appends since the last reload share one `chain`. When one of them is lost the
log refuses every later append of that chain, so nothing that was decided on a void state can be
written. `append_committed` may still follow in RELOADING for appends that were queued before an
internal error. `adopt` replaces the chain for the appends that follow. Between `adopt` and `resume`
the missed events are published; commands that listeners submit meanwhile wait, so that they are
decided after the publication.

Callers wait for a version with `when_committed` or `wait_committed`. A version that was void when
the table was reloaded is answered with False, even if other processes wrote as many events.

A `savepoint` is a copy of the table at a version that was on disk. A reload starts from it and
reads only the log's tail. Without one it reads the whole table. For the next load of a long table
one that a checkpoint covers is stored in the database (`due`).
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from dealer.errors import Unavailable
from dealer.eventlog import Chain, EventRecord
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.rows import resolve
from dealer.eventlog.savepoints import encode_table
from dealer.eventlog.seat_subjects import Subjects
from dealer.game.decide import NoRoundSecrets
from dealer.game.size import size_of
from dealer.game.state import SeatHolder, Table
from dealer.game.view import BROADCAST, SPECTATOR, Audience, Viewer
from dealer.proof.tree import Tree
from dealer.service.tables import execution as executions
from dealer.service.tables.round_secret import RoundSecret
from dealer.service.tables.savepoint import SAVEPOINT_EVERY, STORE_EVERY, Savepoint

TABLE_BYTES = 2_200
"""Estimated bytes of a live table without its game state and its caches."""

SECRET_BYTES = 5_000
"""Estimated bytes of a round's secret with its keys and ciphers."""

REQUEST_BYTES = 700
"""Estimated bytes of a waiting request."""

SUBSCRIBER_BYTES = 1_500
"""Estimated bytes of a subscription with what the gateway holds for it."""


class TableState(StrEnum):
    """State of a live table; the module describes them."""

    ACTIVE = "active"
    RELOADING = "reloading"
    UNREADABLE = "unreadable"


TRANSITIONS = {
    "begin_append": {TableState.ACTIVE: TableState.ACTIVE},
    "append_committed": {
        TableState.ACTIVE: TableState.ACTIVE,
        TableState.RELOADING: TableState.RELOADING,
    },
    "append_lost": {
        TableState.ACTIVE: TableState.RELOADING,
        TableState.RELOADING: TableState.RELOADING,
    },
    "begin_reload": {
        TableState.ACTIVE: TableState.RELOADING,
        TableState.RELOADING: TableState.RELOADING,
    },
    "adopt": {TableState.RELOADING: TableState.RELOADING},
    "resume": {TableState.RELOADING: TableState.ACTIVE},
    "give_up": {TableState.RELOADING: TableState.UNREADABLE},
}
"""Next state by method and current state."""


class PendingRejection(NamedTuple):
    """A request, its outcome, and the chain of appends that the command was decided in.

    The outcome is a refusal, or the result of a command that changes nothing.
    """

    execution: executions.CommandExecution
    outcome: executions.Outcome
    chain: Chain


@dataclass(slots=True, eq=False, weakref_slot=True)
class LiveTable:
    """One table in memory; `id` has 16 bytes, `table_id` is the same in hex."""

    id: bytes
    table_id: str
    table: Table = field(default_factory=Table)
    tree: Tree = field(default_factory=Tree)
    secret: RoundSecret | NoRoundSecrets = field(default_factory=NoRoundSecrets)
    c1_root: bytes = b""  # root of checkpoint C1, while a shuffle waits for its reveals
    committed: int = 0
    leaf: str = ""  # leaf of the event at `committed`; another one there means the log was rewound
    state: TableState = TableState.ACTIVE
    in_flight: int = 0
    why_unreadable: Exception | None = None
    savepoint: Savepoint | None = None
    due: Savepoint | None = None  # to be stored in the database
    stored_upto: int = 0  # version of the savepoint there, as far as this process knows
    chain: Chain = field(default_factory=Chain)
    stored_commands: executions.RecentCommands = field(default_factory=executions.RecentCommands)
    cosigned: int = 0  # the stream's count of cosignatures that subscribers have been sent
    pushed: dict[int, str] = field(default_factory=dict)  # cosigned notes as last pushed, by size
    signed: tuple[int, bytes, str] = (0, b"", "")  # size, root and note of the newest signed head
    # Decided again after a reload.
    pending_retries: list[executions.CommandExecution] = field(default_factory=list)
    pending_rejections: list[PendingRejection] = field(default_factory=list)
    confirming: bool = False  # whether a task confirms the rejections against the log
    pending_draw: executions.PendingDraw | None = None
    commit_waiters: list[tuple[int, Callable[[bool], None]]] = field(default_factory=list)
    failed_reads: int = 0  # reloads that could not read the log
    timer: TimerHandle | None = None
    subscribers: set[Any] = field(default_factory=set)  # the gateway's subscriptions
    audience: Viewer | Audience = SPECTATOR  # who those without a seat are
    source: LiveTable | None = None  # the table that it shows, if it is a broadcast
    broadcasts: list[LiveTable] = field(default_factory=list)  # of it, which keep it in memory
    holds: int = 0  # callers that keep it in memory
    weight: int = 0  # its size as the table cache counted it, and the version at that time
    weighed_at: int = 0
    weighed_busy: bool = False  # whether an append was in flight then, or about to open the table
    noted_at: int = 0  # version of this process's note of its program

    # States

    @property
    def reloading(self) -> bool:
        """Whether commands wait for the table to be read from the log again."""
        return self.state is TableState.RELOADING

    @property
    def reload_due(self) -> bool:
        """Whether the table is to be reloaded and no append of it is in flight."""
        return self.state is TableState.RELOADING and not self.in_flight

    def require_here(self) -> None:
        """Raise TableArchived, or what its reload raised, if the table is UNREADABLE."""
        if self.why_unreadable is not None:
            raise copy(self.why_unreadable)  # each has a traceback of its own

    def begin_append(self) -> None:
        """Count an append that goes to the log's writer now."""
        if self.state is not TableState.ACTIVE:
            self._transition("begin_append")
        self.in_flight += 1

    def append_committed(self, version: int, leaf: str, *, signed: int = 0) -> None:
        """Advance `committed` to `version`, whose event has this leaf; no waiter is called yet.

        `signed` is the size of the append's newest checkpoint, 0 if it has none: a savepoint that
        it covers becomes due for the database. Every 256 events the savepoint is renewed.
        """
        self.in_flight -= 1
        if self.state is not TableState.ACTIVE:
            self._transition("append_committed")
        saved = self.savepoint
        if signed and saved and self.stored_upto + STORE_EVERY <= saved.version <= signed:
            self.due = saved
        self.committed = version
        self.leaf = leaf
        if self.savepoint is None or version - self.savepoint.version >= SAVEPOINT_EVERY:
            self.refresh_savepoint()

    def append_lost(self) -> None:
        """Go to RELOADING: the append was not written, and all that was decided since is void."""
        self.in_flight -= 1
        self._transition("append_lost")

    def begin_reload(self) -> None:
        """Go to RELOADING: commands wait, and a reload is due once no append is in flight."""
        self._transition("begin_reload")

    def adopt(self, fresh: LiveTable) -> None:
        """Take over the state of `fresh`, which was loaded; subscribers and waiting requests stay.

        Waiters for a version that was void get False, even if other processes wrote as many
        events. Commands still wait, until `resume`.
        """
        self._transition("adopt")
        self.table, self.tree, self.secret = fresh.table, fresh.tree, fresh.secret
        self.c1_root, self.leaf = fresh.c1_root, fresh.leaf
        self.chain, self.savepoint = fresh.chain, fresh.savepoint
        self.due, self.stored_upto = fresh.due, fresh.stored_upto
        self.stored_commands = fresh.stored_commands
        if self.noted_at > self.committed:  # its append was lost
            self.noted_at = 0
        # Before `committed` moves: void versions stay void if others wrote as many events.
        self.notify_commit_waiters()
        self.committed = fresh.committed

    def resume(self) -> list[executions.CommandExecution]:
        """Go to ACTIVE; returns the commands that waited, for the caller to decide them."""
        self._transition("resume")
        return self.take_pending_retries()

    def give_up(self, error: Exception) -> None:
        """Go to UNREADABLE, for good: every command that waits or comes is refused with `error`.

        That is TableArchived, DatabaseDamaged, or what another load raises. Waiters get False.
        """
        self._transition("give_up")
        self.why_unreadable = error
        for execution in self.take_pending_retries():
            execution.answer(executions.unavailable(error))
        self.notify_commit_waiters()

    def _transition(self, method: str) -> None:
        try:
            self.state = TRANSITIONS[method][self.state]
        except KeyError:
            raise RuntimeError(f"table {self.table_id}: {method} in state {self.state}") from None

    # Loading

    def add_leaf(self, leaf: str) -> None:
        """Add the next leaf to the tree, and make it the leaf of `committed`."""
        self.leaf = leaf
        self.tree.add(leaf.encode())

    def loaded(self) -> None:
        """Take the version that was reached as `committed`, and a first savepoint there."""
        self.committed = self.table.version
        self.refresh_savepoint()

    def refresh_savepoint(self) -> None:
        """Take a new savepoint if the old one is far back and nothing is ahead of the log."""
        if self.table.version != self.committed:
            return
        if self.savepoint is None or self.committed - self.savepoint.version >= SAVEPOINT_EVERY:
            self.savepoint = self._new_savepoint()

    def _new_savepoint(self) -> Savepoint:
        state, tree = encode_table(self.table), self.tree.copy()
        return Savepoint(self.table.version, state, tree, self.secret, self.c1_root, self.leaf)

    def at_checkpoint(self) -> None:
        """Store this state, which the newest checkpoint signs, if a savepoint is due.

        Its round is open in the log, too, so that its faces are known: a round that was closed
        since would have a newer checkpoint.
        """
        if self.table.version - self.stored_upto >= STORE_EVERY:
            self.due = self._new_savepoint()

    def pop_savepoint(self) -> Savepoint | None:
        """The savepoint, to be used once: a reload that fails with it reads the whole table."""
        savepoint, self.savepoint = self.savepoint, None
        return savepoint

    # Waiting

    def when_committed(self, version: int, call: Callable[[bool], None]) -> None:
        """Call with True once `version` is on disk, with False if it turned out to be void."""
        if version <= self.committed:
            call(True)
        else:
            self.commit_waiters.append((version, call))

    async def wait_committed(self, version: int) -> bool:
        """Wait until `version` is on disk; False if it was void and will never be.

        Raises Unavailable if the table cannot be read from the log at present, and what
        `require_here` raises.
        """
        self.require_here()
        failed_reads = self.failed_reads
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.when_committed(version, partial(resolve, future))
        there = await future
        self.require_here()
        if not there and self.failed_reads > failed_reads:
            raise Unavailable("This table cannot be read at the moment; try again shortly.")
        return there

    async def seat_on_disk(self, holder: SeatHolder) -> SeatHolder | None:
        """The current seat of the player who took the seat `holder`; None once they have left.

        It is read from events that are on disk, because an append that is lost neither moves nor
        removes a player. Raises what `wait_committed` raises.
        """
        while True:
            latest = self.table.latest(holder)
            seated = self.table.still_seated(latest)
            if seated and latest.taken_at <= self.committed:
                return latest
            there = await self.wait_committed(latest.taken_at if seated else self.table.version)
            if there and not seated:
                return None

    def notify_commit_waiters(self) -> None:
        """Call the waiters whose versions are on disk; unless in ACTIVE all of them."""
        if not self.commit_waiters:
            return
        waiting, self.commit_waiters = self.commit_waiters, []
        for version, call in waiting:
            if version <= self.committed:
                _call(call, True)
            elif self.state is not TableState.ACTIVE:
                _call(call, False)
            else:
                self.commit_waiters.append((version, call))

    def read_failed(self) -> None:
        """Answer all who wait for a version with False: the log cannot be read at present."""
        self.failed_reads += 1
        self.notify_commit_waiters()

    def take_pending_retries(self) -> list[executions.CommandExecution]:
        """Empty `pending_retries`, and return what was there."""
        requests, self.pending_retries = self.pending_retries, []
        return requests

    def drop_pending_draw(self) -> None:
        """Forget the draw that waits for a seal, if any; its callers are to send it again."""
        pending, self.pending_draw = self.pending_draw, None
        if pending is not None:
            pending.ask_to_repeat()

    # Memory

    def idle(self) -> bool:
        """Whether it may leave memory: no subscriber, and no work under way."""
        under_way = self.in_flight or self.reloading or self.confirming or self.pending_retries
        used = self.subscribers or self.broadcasts or self.holds or self.commit_waiters
        return not (under_way or used)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep it in memory for as long as the block runs."""
        self.holds += 1
        try:
            yield
        finally:
            self.holds -= 1

    def size(self) -> int:
        """Estimated bytes of memory, with its broadcasts; does not visit every card."""
        size = TABLE_BYTES + size_of(self.table) + len(self.leaf)
        size += sum(broadcast.size() for broadcast in self.broadcasts)
        size += self.stored_commands.size
        if self.savepoint is not None:
            size += len(self.savepoint.state)
            if self.savepoint.secret is not self.secret:
                size += SECRET_BYTES if isinstance(self.savepoint.secret, RoundSecret) else 0
        if isinstance(self.secret, RoundSecret):
            size += SECRET_BYTES
        requests = (
            len(self.pending_retries)
            + len(self.pending_rejections)
            + len(self.commit_waiters)
            + self.in_flight
        )
        return size + REQUEST_BYTES * requests + SUBSCRIBER_BYTES * len(self.subscribers)


class CommitNotice(Struct):
    """What one append made public: its events in order, and its checkpoints (size, note).

    `reset`, with neither, says that published events may no longer be in the log: the log was
    rewound to an older state, or the table was archived.

    The broadcaster does not write to the transport `origin`, whose command this is: it leaves the
    frames in `held`, to be written with the answer.
    """

    entries: list[EventRecord]
    notes: list[tuple[int, str]]
    reset: bool = False
    origin: object | None = None
    held: bytes = b""


NoticeListener = Callable[[LiveTable, CommitNotice], None]


class Notices:
    """Notifies its listeners of what became public at any table.

    They are called on the loop, in the order of their registration: for each commit, of this
    process or of another, in the order of a table's versions; for cosignatures; and when the log
    was rewound. Then what `recent` and `subjects` remember may be void, too.
    """

    def __init__(self, recent: RecentEvents, subjects: Subjects) -> None:
        self._recent = recent
        self._subjects = subjects
        self._listeners: list[NoticeListener] = []

    def listen(self, listener: NoticeListener) -> None:
        """Register a listener for the notices of all tables."""
        self._listeners.append(listener)

    def send(self, live_table: LiveTable, notice: CommitNotice) -> None:
        """Call the listeners; what one raises is reported."""
        if notice.reset and live_table.audience != BROADCAST:
            self._recent.forget()
            self._subjects.forget()
        for listener in self._listeners:
            try:
                listener(live_table, notice)
            except Exception as error:  # the others are called, and the caller is answered
                executions.report("notifying of an append failed", error)


class Snapshot(NamedTuple):
    """A table at `version`, which is on disk, for one viewer.

    `edge` has the roots of the full subtrees in hex, largest first; `checkpoint` is the note over
    exactly this version.
    """

    version: int
    state: dict[str, Any]
    edge: list[str]
    checkpoint: str


def _call(call: Callable[[bool], None], there: bool) -> None:
    try:
        call(there)
    except Exception as error:  # the others that wait are called all the same
        executions.report("notifying of a commit failed", error)
