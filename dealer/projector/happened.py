"""What the fold is told: at which table, which event, when; and what it says if that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dealer.game.events import Event


class Happened(NamedTuple):
    """An event and its time in milliseconds; its version follows from the ones before it.

    `opened` comes with RoundClosed alone: the round's events from RoundOpened on, each with its
    version, hidden parts included.
    """

    event: Event
    at: int
    opened: Sequence[tuple[int, Event]] = ()


class Contradiction(ValueError):
    """The event of this version cannot have happened at that table."""

    def __init__(self, version: int, reason: object) -> None:
        super().__init__(
            f"The event of version {version} does not fit the ones before it ({reason}); the log "
            "was altered or written by another program: verify the table's bundle."
        )
        self.version = version


Number = int | bytes
"""What stands for a table in its rows: a short number on SQLite, its id on PostgreSQL."""


class Stream(NamedTuple):
    """A table in the log: what it is called there and its id, 16 bytes."""

    number: Number
    table: bytes
