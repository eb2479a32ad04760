"""Values that the service gives to the gateway: commit notices and snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from dealer.eventlog import EventRecord
from dealer.service.live_table import LiveTable


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


class Snapshot(NamedTuple):
    """A table at `version`, which is on disk, for one viewer.

    `edge` has the roots of the full subtrees in hex, largest first; `checkpoint` is the note over
    exactly this version.
    """

    version: int
    state: dict[str, Any]
    edge: list[str]
    checkpoint: str
