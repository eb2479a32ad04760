"""What the log has, as records: tables, events, rounds and shuffles.

Each is a named tuple of plain values, so that a list of them becomes a data frame as it is. Times
are in milliseconds since 1970, versions count a table's events from 1.
"""

from __future__ import annotations

from typing import NamedTuple

from dealer.game.events import Event
from dealer.proof.verify import Swap


class LoggedTable(NamedTuple):
    """A table by its id in hex; `version` is its newest event's, `name` is from its rules."""

    table: str
    name: str | None
    opened_at: int
    version: int
    closed: bool


class LoggedEvent(NamedTuple):
    """One event. `at` is when the server received its command, see `dealer/analysis/README.md`.

    `round` is 0 outside of rounds. `command` is the scope and id of the command, on the first event
    that it caused. `event` is of a class of `dealer.game.events`; its hidden member is None in a
    round that is open, unless the log was opened with the house key.
    """

    table: str
    version: int
    at: int
    round: int
    type: str
    command: str | None
    event: Event


class LoggedRound(NamedTuple):
    """A round: the versions that opened and closed it, and their times; None while it is open.

    `commitment` and the `secret` that opened it are in hex.
    """

    table: str
    round: int
    opened: int
    opened_at: int
    closed: int | None
    closed_at: int | None
    cards: int
    entropy: str
    commitment: str
    secret: str | None


class LoggedShuffle(NamedTuple):
    """A shuffle, number `k` of its round, of `n` cards of a stack.

    `outcome` is running, sealed or voided, `ended` is the version of the DeckSealed or
    ShuffleVoided. `committed` and `revealed` are the seats that sent a digest and those that opened
    it. `swaps` are recomputed from the random bytes, each with the words of the tape that gave its
    j; none while the round is open.
    """

    table: str
    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started: int
    started_at: int
    ended: int | None = None
    ended_at: int | None = None
    outcome: str = "running"
    committed: tuple[int, ...] = ()
    revealed: tuple[int, ...] = ()
    swaps: tuple[Swap, ...] = ()
