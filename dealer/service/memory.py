"""Memory: whether this process has some left, for readiness.

After a MemoryError the request that met it was answered, or its connection closed; but the next one
may meet another, or a library may end the process.
"""

from __future__ import annotations

from mmap import mmap

RESERVE = 16 * 2**20
"""Bytes that a process that is ready can allocate."""


class MemoryWatch:
    """Counts in `errors` the MemoryErrors of this process that were given to `note`."""

    def __init__(self) -> None:
        self.errors = 0
        self._seen = 0

    def note(self, error: BaseException | None) -> None:
        """Count the error if it is a MemoryError."""
        self.errors += isinstance(error, MemoryError)

    def check(self) -> str | None:
        """Why the process is not ready: a MemoryError since the last check, or no `RESERVE`."""
        seen, self._seen = self._seen, self.errors
        try:
            # Not from the allocator, which would keep it, and touch it the next time.
            mmap(-1, RESERVE).close()
        except OSError:
            seen = -1
        if seen == self.errors:
            return None
        return "The process has no memory left; give it more, or restart it."


MEMORY = MemoryWatch()
"""That of this process; a log line of any internal error counts."""
