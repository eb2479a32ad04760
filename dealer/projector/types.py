"""Input types of the projection, and its error."""

from __future__ import annotations

from typing import NamedTuple


class InconsistentEvent(ValueError):
    """The event of this version contradicts the events before it."""

    def __init__(self, version: int, reason: object) -> None:
        super().__init__(
            f"The event of version {version} does not fit the ones before it ({reason}); `dealer "
            "audit` says whether the log was altered."
        )
        self.version = version


StreamId = int | bytes
"""The value of `stream` columns: a short number on SQLite, the table's id on PostgreSQL."""


class StreamKey(NamedTuple):
    """A table in the log: its `stream` value and its id of 16 bytes."""

    id: StreamId
    table: bytes
