"""What the service hands to the gateway: news of one append, and a table as one viewer sees it."""

from __future__ import annotations

from typing import Any, NamedTuple

from dealer.service.record import Entry


class Published(NamedTuple):
    """What one append made public: its events in order, and the checkpoints (size, note) due.

    `reset`, which comes with neither, says that what was told of the table may be in the log no
    more: that was put back to an older state, or the table was archived.
    """

    entries: list[Entry]
    notes: list[tuple[int, str]]
    reset: bool = False


class Snapshot(NamedTuple):
    """A table at `version` for one viewer; all of it is on disk.

    `edge` are the roots of the full subtrees, in hex, largest first; `checkpoint` is the note over
    just this version.
    """

    version: int
    state: dict[str, Any]
    edge: list[str]
    checkpoint: str
