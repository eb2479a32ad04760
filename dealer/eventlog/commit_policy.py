"""Commit policy: which thread commits, by how long the last commits took."""

from __future__ import annotations

from collections.abc import Collection

from dealer.eventlog.rows import Append

MODES = ("auto", "thread", "loop")

QUICK = 0.001
"""The loop commits after the mean of the durations has fallen below so many seconds."""

SLOW = 0.002
"""The writer thread commits after the mean has risen above so many seconds."""

FAILED = 1.0
"""The duration in seconds that a failed commit counts as: the thread commits for a while."""

MAX_ROWS = 256
"""Rows above which a batch goes to the writer thread however quick the disk is."""

_WEIGHT = 1 / 16


class CommitPolicy:
    """Whether the loop commits, by the exponentially weighted mean of the last durations.

    A commit on the event loop's thread saves four switches between threads, but nothing else of
    the server runs meanwhile. `mode` is one of `MODES`: with `thread` or `loop` the durations
    decide nothing. With `auto` the thread begins. `on_loop` may be read on any thread; `measured`
    and `failed` are called by the thread that commits, while it holds the writer's lock.
    """

    def __init__(self, mode: str) -> None:
        self.on_loop = mode == "loop"
        self.mean = SLOW
        self._fixed = mode != "auto"

    def allows(self, queue: Collection[Append]) -> bool:
        """Whether the loop may write these appends in one batch."""
        return (
            self.on_loop
            and len(queue) <= MAX_ROWS
            and sum([len(append.rows) for append in queue]) <= MAX_ROWS
        )

    def measured(self, seconds: float) -> None:
        """Note how long a COMMIT took, on either thread."""
        self.mean += (seconds - self.mean) * _WEIGHT
        if not self._fixed:
            self.on_loop = self.mean <= (SLOW if self.on_loop else QUICK)

    def failed(self) -> None:
        self.mean = max(self.mean, FAILED)
        self.measured(FAILED)
