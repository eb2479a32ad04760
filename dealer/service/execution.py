"""Command execution: one object for a command, from its request to its answer.

It is decided, its events are encoded into it, the log's writer has it in its queue, and it is
settled: `committed` or `lost`, and finally answered. A repetition that arrives meanwhile waits in
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct, field

from dealer.errors import DatabaseDamaged, DatabaseError, DealerError, Refused, Unavailable
from dealer.eventlog import Append, Appended, EventRecord, Result
from dealer.eventlog.encryption import HouseKeys
from dealer.eventlog.stored_form import DIGEST
from dealer.game.commands import Command, Draw
from dealer.game.events import Event


class CommandResult(Struct):
    """A command was executed: the table's version after it, and its events.

    `held` are frames for the caller's own connection, to be written before the answer, in one.
    """

    version: int
    events: list[Event]
    held: bytes = b""


Outcome = CommandResult | DealerError
OnResult = Callable[[Outcome], None]

ANONYMOUS_SCOPE = "new"
"""The scope of command ids of callers without a role; only unguessable ids are stored in it."""

ATTEMPTS = 8
"""How often a command is decided again after conflicts with other processes."""


class IdempotencyKey(Struct, frozen=True):
    """Identifies a command, so that a repetition is answered and not executed again.

    `cmd` is the caller's own id of the command and `scope` the caller's role, so that the ids of
    two callers do not collide. `content` are the canonical bytes of method and parameters: the
    same key with other content is refused.
    """

    scope: str
    cmd: str
    content: bytes = b""


def _nothing(outcome: Outcome) -> None:
    """For an outcome that was given already."""


class StoredCommand(Struct):
    """A committed command as the log has it: the version of its first event, and their number."""

    digest: bytes
    version: int
    count: int

    @classmethod
    def read(cls, version: int, stored: bytes) -> StoredCommand:
        """The record from the bytes next to the command's id, see `CommandExecution.stamp`."""
        digest, count = stored[:-_COUNT_BYTES], stored[-_COUNT_BYTES:]
        return cls(digest, version, int.from_bytes(count, "big"))


_COUNT_BYTES = 4


class CommandExecution(Append, eq=False, kw_only=True):
    """A command from its request to its answer, and its append to the log.

    `done` is called once, with the outcome. `name` is the scope and the id of its idempotency key,
    None without one; `digest` is 16 bytes, an HMAC over the key's content. It is refused if the
    table is past version `expect`. `then` is executed as soon as the shuffle that the command
    starts is sealed, and `drawn` gets its outcome.

    While it is decided, `rows`, `checkpoints` and `events` are filled, and `pending_draw` is the
    draw that its append settles, with `draw_result`. `waiters` are repetitions that arrive before
    it is committed. It is decided again, at most `ATTEMPTS` times, if another process was quicker.
    """

    command: Command
    done: OnResult = _nothing
    origin: object | None = None  # the transport that waits for the answer
    name: str | None = None
    digest: bytes = b""
    expect: int | None = None
    then: Draw | None = None
    drawn: OnResult | None = None
    attempts: int = 0
    duplicate_of: StoredCommand | None = None  # the stored command of this name
    is_replay: bool = False  # whether an earlier execution answers it

    live_table: Any = None  # the LiveTable, from `begin` on; its module imports this one
    settler: Settler = None  # type: ignore[assignment]
    table: bytes = b""
    expected: int = 0
    rows: list[EventRecord] = field(default_factory=list)
    checkpoints: list[tuple[int, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    pending_draw: PendingDraw | None = None
    draw_result: list[Event] | Refused = field(default_factory=list)
    waiters: list[CommandExecution] = field(default_factory=list)

    def begin(self, live_table: Any, settler: Settler) -> None:
        """Become an append that follows what was decided at the table, still without events."""
        self.live_table, self.settler = live_table, settler
        self.table, self.chain = live_table.id, live_table.chain
        self.expected = live_table.table.version
        self.rows, self.checkpoints, self.events, self.waiters = [], [], [], []
        self.pending_draw = None

    def settle(self, result: Result | DealerError) -> None:
        """Called by the log's writer, see `Settler`."""
        if type(result) is Appended:
            self.settler.committed(self)
        else:
            self.settler.lost(self, result)

    def answer(self, outcome: Outcome) -> None:
        """Call `done`, unless this has called it before; what it raises is reported.

        A caller that answers several commands goes on to the next one.
        """
        done, self.done = self.done, _nothing
        try:
            done(outcome)
        except Exception as error:
            report("answering a command failed", error)

    def draw_outcome(self) -> Outcome:
        """The outcome of the draw that its append settles."""
        result = self.draw_result
        return result if isinstance(result, Refused) else CommandResult(self.end, result)

    def identify(self, key: IdempotencyKey, keys: HouseKeys) -> None:
        """Set name and digest; `keys` are the house's keys of the table."""
        cmd = key.cmd
        if key.scope == ANONYMOUS_SCOPE:
            # A repetition is answered with a token, so the database must not reveal the id.
            cmd = keys.command_digest(b"cmd " + cmd.encode()).hex()
        self.name = f"{key.scope}/{cmd}"
        self.digest = keys.command_digest(key.content)[:DIGEST]

    def stamp(self) -> None:
        """Store the id with the first event: the name, and the digest with the count as be32."""
        first, count = self.rows[0], len(self.rows)
        first.command, first.digest = self.name, self.digest + count.to_bytes(_COUNT_BYTES, "big")


class Settler(Protocol):
    """Continues a command when its append is durable, or was not written.

    It is the `CommandProcessor`, whose module imports this one. The log's writer calls
    `CommandExecution.settle` on the loop, once for each append, in the order of commits.
    """

    def committed(self, execution: CommandExecution) -> None:
        """Publish its events and answer: they are durable."""

    def lost(self, execution: CommandExecution, result: Result | DealerError) -> None:
        """Reload the table, and decide again or answer: nothing was written, as `result` says."""


@dataclass(slots=True, eq=False)
class PendingDraw:
    """A draw that waits for the running shuffle to be sealed, and the callbacks for its outcome."""

    draw: Draw
    answers: list[OnResult]

    def is_of(self, draw: Draw) -> bool:
        """Whether it gives its player what this draw, of a repeated command, would give."""
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

    def postpone(self) -> None:
        """Answer with Unavailable: a retry finds the cards, or the shuffle that still runs."""
        self.answer(Unavailable("The table was reloaded; send this again with the same cmd."))


def resolve(future: asyncio.Future[CommandResult]) -> OnResult:
    """A callback that resolves a future, unless it was cancelled."""

    def settle(outcome: Outcome) -> None:
        if future.done():
            return
        if isinstance(outcome, CommandResult):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    return settle


def resolve_bool(future: asyncio.Future[bool]) -> Callable[[bool], None]:
    """The same for a future of a bool."""

    def settle(there: bool) -> None:
        if not future.done():
            future.set_result(there)

    return settle


def may_pass(error: Exception) -> bool:
    """Whether a later attempt to read a table may succeed without anyone's doing."""
    if isinstance(error, Refused):
        return error.temporary
    passing = isinstance(error, DatabaseError | MemoryError)
    return passing and not isinstance(error, DatabaseDamaged)


def report(message: str, error: Exception) -> None:
    """Log a bug, or a lack of memory, where others have to be answered first."""
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})


def internal(message: str, error: Exception) -> Unavailable:
    """The error for the caller of what was interrupted by a bug, which is reported."""
    report(message, error)
    return Unavailable("The server had an internal error; its log says more.")


def failed(message: str, error: Exception) -> DealerError:
    """The error for the caller where anything may have gone wrong: its own, or `internal`."""
    return error if isinstance(error, DealerError) else internal(message, error)


def unavailable(error: Exception) -> DealerError:
    """The error for the caller: a refusal unchanged, everything else as Unavailable.

    The address of the database and its faults are for the operator only.
    """
    if isinstance(error, Refused):
        return error
    return Unavailable("The server cannot use its log at the moment; send this again shortly.")
