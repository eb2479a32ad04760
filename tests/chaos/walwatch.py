"""Locks that processes took on an SQLite file, read from the trace of `walwatch.c`.

A checkpoint is safe from the WAL-reset bug while its process holds the WAL's write lock, because
the WAL is only restarted under that lock. See `dealer/eventlog/sqlite/wal.py`.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("walwatch.c")

# https://sqlite.org/walformat.html#wal_locks and the file locks of os_unix.c.
WRITE_LOCK, CHECKPOINT_LOCK, RECOVERY_LOCK = 120, 121, 122
RESTART = (124, 4)
"""All reader locks but the first: taken to restart the WAL."""

SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""A write lock on these bytes of the database file excludes every other connection."""


def library(folder: Path) -> Path:
    """The tracer, compiled."""
    made = folder / "walwatch.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    return made


def environment(preload: Path, *, folder: Path, trace: Path) -> dict[str, str]:
    """Environment of processes whose locks on the database in `folder` are traced."""
    return {
        "LD_PRELOAD": str(preload),
        "WALWATCH_FOLDER": str(folder),
        "WALWATCH_TRACE": str(trace),
    }


@dataclass
class _Held:
    """The bytes that one process holds a write lock on, by file."""

    shm: set[int] = field(default_factory=set)
    exclusive: bool = False


class Watch:
    """Reads a growing trace. `faults` are locks that allow the WAL-reset bug."""

    def __init__(self, trace: Path) -> None:
        self.checkpoints = 0
        self.restarts = 0
        self.recoveries = 0
        self.faults: list[str] = []
        self._trace = trace
        self._read = 0
        self._held: dict[str, _Held] = {}

    @property
    def processes(self) -> int:
        return len(self._held)

    def read(self) -> None:
        """Read the lines that were added since the last call."""
        if not self._trace.exists():
            return
        with self._trace.open("rb") as trace:
            trace.seek(self._read)
            text = trace.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode().splitlines():
            process, file, what, start, length = line.split()
            held = self._held.setdefault(process, _Held())
            self._take(process, held, file, what, int(start), int(length))

    def _take(
        self, process: str, held: _Held, file: str, what: str, start: int, length: int
    ) -> None:
        if file == "db":
            if what == "write" and (start, length) == (SHARED_FIRST, SHARED_SIZE):
                held.exclusive = True
            elif what in ("read", "close") or length == 0 or start >= SHARED_FIRST:
                held.exclusive = False
            return
        concerned = set(range(start, start + length))
        if what == "write":
            held.shm |= concerned
            self._count(concerned, (start, length))
        elif what == "close":
            held.shm.clear()
        else:
            held.shm -= concerned
        if CHECKPOINT_LOCK in held.shm and not (held.exclusive or WRITE_LOCK in held.shm):
            self.faults.append(f"process {process} checkpoints without the write lock: {what}")

    def _count(self, concerned: set[int], lock: tuple[int, int]) -> None:
        self.restarts += lock == RESTART
        if CHECKPOINT_LOCK in concerned:
            if RECOVERY_LOCK in concerned:
                self.recoveries += 1
            else:
                self.checkpoints += 1
