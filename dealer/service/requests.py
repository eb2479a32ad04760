"""Requests to the command processor, their results, and the record of a stored command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dealer.errors import DatabaseDamaged, DatabaseError, DealerError, Refused, Unavailable
from dealer.eventlog.encryption import HouseKeys
from dealer.eventlog.stored_form import DIGEST
from dealer.game.commands import Command, Draw
from dealer.game.events import Event


class CommandResult(NamedTuple):
    """A command was executed: the table's version after it, and its events."""

    version: int
    events: list[Event]


Outcome = CommandResult | DealerError
OnResult = Callable[[Outcome], None]

ANONYMOUS_SCOPE = "new"
"""The scope of command ids of callers without a role; only unguessable ids are stored in it."""

ATTEMPTS = 8
"""How often a command is decided again after conflicts with other processes."""


class IdempotencyKey(NamedTuple):
    """Identifies a command, so that a repetition is answered and not executed again.

    `cmd` is the caller's own id of the command and `scope` the caller's role, so that the ids of
    two callers do not collide. `content` are the canonical bytes of method and parameters: the
    same key with other content is refused.
    """

    scope: str
    cmd: str
    content: bytes = b""


@dataclass(slots=True, eq=False)
class Request:
    """A command, its idempotency key as the log stores it, and the callback for its outcome.

    `name` is the scope and the id of the key; None for a command without one. `digest` is 16
    bytes, an HMAC over the key's content. `then` is executed as soon as the shuffle that the
    command starts is sealed, and `drawn` gets its outcome.
    """

    command: Command
    done: OnResult
    name: str | None = None
    digest: bytes = b""
    expect: int | None = None  # refused if the table is past this version
    attempts: int = 0
    duplicate_of: StoredCommand | None = None  # the stored command of this name
    is_replay: bool = False  # whether an earlier execution answers it
    then: Draw | None = None
    drawn: OnResult | None = None

    def settle(self, outcome: Outcome) -> None:
        """Call `done`, unless this has called it before, also where it failed."""
        done, self.done = self.done, _nothing
        done(outcome)

    def identify(self, key: IdempotencyKey, keys: HouseKeys) -> None:
        """Set name and digest; `keys` are the house's keys of the table."""
        scope, cmd, content = key
        if scope == ANONYMOUS_SCOPE:
            # A repetition is answered with a token, so the database must not reveal the id.
            cmd = keys.command_digest(b"cmd " + cmd.encode()).hex()
        self.name = f"{scope}/{cmd}"
        self.digest = keys.command_digest(content)[:DIGEST]


def _nothing(outcome: Outcome) -> None:
    """For an outcome that was given already."""


@dataclass(slots=True, eq=False)
class StoredCommand:
    """Idempotency record of a decided command: version of its first event, and their number.

    `waiters` are repetitions that arrived before it was committed.
    """

    digest: bytes
    version: int
    count: int
    committed: bool = False
    waiters: list[Request] = field(default_factory=list)

    _COUNT_BYTES = 4

    def packed(self) -> bytes:
        """The bytes in the log next to the command's id: digest, then the count as be32."""
        return self.digest + self.count.to_bytes(self._COUNT_BYTES, "big")

    @classmethod
    def read(cls, version: int, stored: bytes) -> StoredCommand:
        """The record of a committed command, from its bytes in the log."""
        digest, count = stored[: -cls._COUNT_BYTES], stored[-cls._COUNT_BYTES :]
        return cls(digest, version, int.from_bytes(count, "big"), committed=True)


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

    def postpone(self) -> None:
        """Answer with Unavailable: a retry finds the cards, or the shuffle that still runs."""
        for answer in self.answers:
            answer(Unavailable("The table was reloaded; send this again with the same cmd."))


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


def unavailable(error: Exception) -> DealerError:
    """The error for the caller: a refusal unchanged, everything else as Unavailable.

    The address of the database and its faults are for the operator only.
    """
    if isinstance(error, Refused):
        return error
    return Unavailable("The server cannot use its log at the moment; send this again shortly.")
