"""A wish on its way, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from dealer.errors import DealerError, Refused, Unavailable
from dealer.game.commands import Command, Draw
from dealer.game.events import Event


class Done(NamedTuple):
    """A command was carried out: the table's version after it, and what happened."""

    version: int
    events: list[Event]


Outcome = Done | DealerError
Answer = Callable[[Outcome], None]


ATTEMPTS = 8
"""How often a command is judged again while other processes keep being quicker."""


@dataclass(slots=True, eq=False)
class Request:
    """A command with the id that its caller gave it, and whom to tell.

    `name` is the id with its caller's role in front, so that two callers' ids do not collide;
    None for a command without one. `digest` is 32 bytes, an HMAC over method and parameters.
    `then` is drawn as soon as the shuffle that the command starts is sealed, and `drawn` told.
    """

    command: Command
    done: Answer
    name: str | None = None
    digest: bytes = b""
    expect: int | None = None  # the version it was decided on: refused if the table is past it
    attempts: int = 0
    known: Remembered | None = None  # what the log had under this name already
    again: bool = False  # whether the answer is that of an earlier time
    then: Draw | None = None
    drawn: Answer | None = None


@dataclass(slots=True, eq=False)
class Remembered:
    """A command that was decided: where its events begin, how many they are, who else asks."""

    digest: bytes
    version: int
    count: int
    committed: bool = False
    also: list[Request] = field(default_factory=list)

    _COUNT_BYTES = 4

    def stored(self) -> bytes:
        """As the log keeps it beside the command's id: digest, then the count as be32."""
        return self.digest + self.count.to_bytes(self._COUNT_BYTES, "big")

    @classmethod
    def read(cls, version: int, stored: bytes) -> Remembered:
        digest, count = stored[: -cls._COUNT_BYTES], stored[-cls._COUNT_BYTES :]
        return cls(digest, version, int.from_bytes(count, "big"), committed=True)


@dataclass(slots=True, eq=False)
class PendingDraw:
    """What a seat draws as soon as the shuffle that runs is sealed, and whom that concerns."""

    draw: Draw
    answers: list[Answer]


def settling(future: asyncio.Future[Done]) -> Answer:
    """An answer that settles a future, unless who waited for it has gone."""

    def settle(outcome: Outcome) -> None:
        if future.done():
            return
        if isinstance(outcome, Done):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    return settle


def knowing(future: asyncio.Future[bool]) -> Callable[[bool], None]:
    """The same for who waits only to know whether something is there."""

    def settle(there: bool) -> None:
        # Who asked may have gone meanwhile; those who are told after them have not.
        if not future.done():
            future.set_result(there)

    return settle


def unavailable(error: DealerError) -> DealerError:
    """What a caller is told of an error: a refusal as it is, all else as something temporary.

    Where the database is, and what is wrong with it, is for the operator alone.
    """
    if isinstance(error, Refused):
        return error
    return Unavailable("The house cannot use its log just now; send this again shortly.")
