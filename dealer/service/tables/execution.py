"""Command execution: one object for a command, from its request to its answer; and command ids.

It is decided, its events are encoded into it, the log's writer has it in its queue, and after the
commit it is published and answered. A repetition that arrives meanwhile waits in it.

A repeated command is found by its name, the scope and the id of its `IdempotencyKey`: in flight, in
`RecentCommands`, or in the log, where name and digest are next to its first event.
`CommandProcessor.submit` looks it up, and `answer_repeated` answers it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct as Packing
from typing import Any

from msgspec import Struct, field

from dealer.errors import DatabaseDamaged, DatabaseError, DealerError, Refused, Unavailable
from dealer.eventlog import Append, EventRecord, rows
from dealer.eventlog.stored_form import DIGEST
from dealer.game.commands import Command, Draw
from dealer.game.events import Event


@dataclass(slots=True)
class CommandResult:
    """A command was executed: the table's version after it, and its events; equal if these are.

    `held` are frames for the caller's own connection, to be written before the answer, in one. With
    `repeated` an earlier execution wrote the events, and the caller of that one got the frames.
    """

    version: int
    events: list[Event]
    held: bytes = dataclasses.field(default=b"", compare=False)
    repeated: bool = dataclasses.field(default=False, compare=False)


Outcome = CommandResult | DealerError
OnResult = Callable[[Outcome], None]

ANONYMOUS_SCOPE = "new"
"""The scope of command ids of callers without a role; only unguessable ids are stored in it."""

ATTEMPTS = 8
"""How often a command is decided again after conflicts with other processes."""

BUCKETS = 16
BUCKET = 9
"""Commands in a bucket: a full one drops its oldest for the next. A full bucket is small enough for
Python's own allocator; larger ones fragment the heap."""

_NAME = Packing(">q")
_RECORD = Packing(">q16sQI")
_IN_FLIGHT = 700
_EMPTY = 100


class IdempotencyKey(Struct, frozen=True):
    """Identifies a command, so that a repetition is answered and not executed again.

    `cmd` is the caller's own id of the command and `scope` the caller's role, so that the ids of
    two callers do not collide. `content` are the canonical bytes of method and parameters: the
    same key with other content is refused.
    """

    scope: str
    cmd: str
    content: bytes = b""


def _answered(outcome: Outcome) -> None:
    """For an outcome that was given already."""


class StoredCommand(Struct):
    """A committed command as the log has it: the version of its first event, and their number."""

    digest: bytes
    version: int
    count: int

    @classmethod
    def read(cls, version: int, stored: bytes) -> StoredCommand:
        """The record from the bytes next to the command's id: its digest, and be32 of the count."""
        digest, count = stored[:-COUNT_BYTES], stored[-COUNT_BYTES:]
        return cls(digest, version, int.from_bytes(count, "big"))


COUNT_BYTES = 4
"""Bytes of the number of events, which follow the digest of a stored command."""


class CommandExecution(Append, eq=False, kw_only=True):
    """A command from its request to its answer, and its append to the log.

    `done` is called once, with the outcome. From its `key` comes its `name`, None without one; its
    `digest` is 16 bytes of an HMAC over table, version, name and the key's content. It is refused
    if the table is past version `expect`. `draw_when_sealed` is executed as soon as the shuffle
    that the command starts is sealed, and `on_drawn` gets its outcome.

    While it is decided, `rows`, `checkpoints` and `events` are filled, and `pending_draw` is the
    draw that its append carries out, with `draw_result`. `waiters` are repetitions that arrive
    before it is committed. It is decided again, at most `ATTEMPTS` times, if another process was
    quicker.
    """

    command: Command
    done: OnResult = _answered
    origin: object | None = None  # the transport that waits for the answer
    key: IdempotencyKey | None = None
    name: str | None = None
    digest: bytes = b""
    expect: int | None = None
    draw_when_sealed: Draw | None = None
    on_drawn: OnResult | None = None
    attempts: int = 0
    duplicate_of: StoredCommand | None = None  # the stored command of this name

    live_table: Any = None  # the LiveTable, once it is decided; its module imports this one
    table: bytes = b""
    expected: int = 0
    rows: list[EventRecord] = field(default_factory=list)
    checkpoints: list[tuple[int, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    pending_draw: PendingDraw | None = None
    draw_result: list[Event] | Refused = field(default_factory=list)
    waiters: list[CommandExecution] = field(default_factory=list)

    @property
    def version(self) -> int:
        """The version of its first event, once it is decided."""
        return self.expected + 1

    def answer(self, outcome: Outcome) -> None:
        """Call `done`, unless this has called it before; what it raises is reported.

        A caller that answers several commands goes on to the next one.
        """
        done, self.done = self.done, _answered
        try:
            done(outcome)
        except Exception as error:
            report("answering a command failed", error)

    def draw_outcome(self) -> Outcome:
        """The outcome of the draw that its append carries out."""
        result = self.draw_result
        return result if isinstance(result, Refused) else CommandResult(self.end, result)


class RecentCommands:
    """About the newest 144 commands of one table by name, packed; the log has the others.

    `evicted` says whether there are others. A command in flight is an object in `pending`. After
    its commit it takes 36 bytes in one of 16 buckets, chosen by the hash of its name:

        hash(name) as a signed 64-bit number ‖ its digest of 16 bytes ‖ version of its first
        event (64 bits) ‖ number of events (32 bits)

    The hash is Python's, with a different key in each process. If two names of one table have the
    same hash, the digest still shows whether the command is the same: it is an HMAC, of which 128
    bits suffice for that.
    """

    __slots__ = ("_buckets", "evicted", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, CommandExecution] = {}
        self._buckets: dict[int, bytes] = {}
        self.evicted = False

    @property
    def size(self) -> int:
        """Estimated bytes of memory."""
        size = _IN_FLIGHT * len(self.pending)
        for bucket in self._buckets.values():
            size += _EMPTY + len(bucket)
        return size

    def get(self, name: str) -> CommandExecution | StoredCommand | None:
        """The command of this name: as it is in flight, or the record of a committed one."""
        found = self.pending.get(name)
        if found is not None or not self._buckets:
            return found
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        packed = _NAME.pack(number)
        if packed not in bucket or (place := _find(bucket, packed)) < 0:
            return None
        _, digest, version, count = _RECORD.unpack_from(bucket, place)
        return StoredCommand(digest, version, count)

    def add(self, name: str, digest: bytes, version: int, count: int) -> None:
        """Add a committed command, in the place of an older one if there is no other."""
        if self.pending:
            self.pending.pop(name, None)
        if len(digest) < DIGEST:
            self.evicted = True
            return
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        record = _RECORD.pack(number, digest, version, count)
        if record[: _NAME.size] in bucket and _find(bucket, record[: _NAME.size]) >= 0:
            return
        if len(bucket) >= BUCKET * _RECORD.size:
            bucket, self.evicted = bucket[_RECORD.size :], True
        self._buckets[number % BUCKETS] = bucket + record

    def committed(self) -> RecentCommands:
        """A copy without the commands in flight."""
        copy = RecentCommands()
        copy._buckets, copy.evicted = dict(self._buckets), self.evicted
        return copy


def _find(bucket: bytes, name: bytes) -> int:
    """Offset of the record of a name; -1 if there is none."""
    place = bucket.find(name)
    while place >= 0 and place % _RECORD.size:
        place = bucket.find(name, place + 1)
    return place


@dataclass(slots=True, eq=False)
class PendingDraw:
    """A draw that waits for the running shuffle to be sealed, and the callbacks for its outcome."""

    draw: Draw
    answers: list[OnResult]

    def equals(self, draw: Draw) -> bool:
        """Whether it gives the same player as many cards of the same stack as `draw`."""
        mine, other = self.draw.actor, draw.actor
        same_player = mine.seat == other.seat and mine.taken_at == other.taken_at
        return same_player and self.draw.count == draw.count and self.draw.source == draw.source

    def answer(self, outcome: Outcome) -> None:
        """Call each of the callbacks, once."""
        answers, self.answers = self.answers, []
        for answer in answers:
            try:
                answer(outcome)
            except Exception as error:
                report("answering a draw failed", error)

    def ask_to_repeat(self) -> None:
        """Answer with Unavailable: a repetition finds the cards, or the shuffle that still runs."""
        self.answer(Unavailable("The table was reloaded; send this again with the same cmd."))


def resolve(future: asyncio.Future[CommandResult]) -> OnResult:
    """A callback that resolves a future with an outcome, unless it was cancelled."""

    def on_outcome(outcome: Outcome) -> None:
        if isinstance(outcome, DealerError):
            rows.reject(future, outcome)
        else:
            rows.resolve(future, outcome)

    return on_outcome


def may_pass(error: Exception) -> bool:
    """Whether a later attempt to read a table may succeed without anyone's doing."""
    if isinstance(error, Refused):
        return error.temporary
    passing = isinstance(error, DatabaseError | MemoryError)
    return passing and not isinstance(error, DatabaseDamaged)


def report(message: str, error: Exception) -> None:
    """Log a bug, or a lack of memory, if others have to be answered first."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


def internal(message: str, error: Exception) -> Unavailable:
    """The error for the caller of what was interrupted by a bug, which is reported."""
    report(message, error)
    return Unavailable("The server had an internal error; its log says more.")


def failed(message: str, error: Exception) -> DealerError:
    """The error for the caller if anything may have gone wrong: its own, or `internal`."""
    return error if isinstance(error, DealerError) else internal(message, error)


def unavailable(error: Exception) -> DealerError:
    """The error for the caller: a refusal unchanged, everything else as Unavailable.

    The address of the database and its faults are for the operator only.
    """
    if isinstance(error, Refused):
        return error
    return Unavailable("The server cannot use its log at the moment; send this again shortly.")
