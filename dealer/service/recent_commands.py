"""Recent commands of a table, packed: most repetitions are answered without reading the log.

A command in flight is stored as an object. After its commit it takes 36 bytes in one of 16 buckets,
chosen by the hash of its name:

    hash(name) as a signed 64-bit number ‖ its digest of 16 bytes ‖ version of its first
    event (64 bits) ‖ number of events (32 bits)

The hash is Python's, with a different key in each process. If two names of one table have the same
hash, the digest still shows whether the command is the same: it is an HMAC, of which 128 bits
suffice for that.
"""

from __future__ import annotations

from struct import Struct

from dealer.eventlog.stored_form import DIGEST
from dealer.service.execution import CommandExecution, StoredCommand

BUCKETS = 16
BUCKET = 9
"""Commands in a bucket: a full one drops its oldest for the next. A full bucket is small enough for
Python's own allocator; larger ones fragment the heap."""

_NAME = Struct(">q")
_RECORD = Struct(">q16sQI")
_IN_FLIGHT = 700
_EMPTY = 100


class RecentCommands:
    """About the newest 144 commands of one table by name (role and id); the log has the others.

    `evicted` says whether there are others; a command in flight is in `pending` until `settle`.
    """

    __slots__ = ("_buckets", "evicted", "pending")

    def __init__(self) -> None:
        self.pending: dict[str, CommandExecution] = {}
        self._buckets: dict[int, bytes] = {}
        self.evicted = False

    @property
    def size(self) -> int:
        """Estimated bytes of memory."""
        size = _IN_FLIGHT * len(self.pending)
        for bucket in self._buckets.values():
            size += _EMPTY + len(bucket)
        return size

    def get(self, name: str) -> CommandExecution | StoredCommand | None:
        """The command of this name: as it is in flight, or the record of a committed one."""
        found = self.pending.get(name)
        if found is not None or not self._buckets:
            return found
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        packed = _NAME.pack(number)
        if packed not in bucket or (place := _find(bucket, packed)) < 0:
            return None
        _, digest, version, count = _RECORD.unpack_from(bucket, place)
        return StoredCommand(digest, version, count)

    def settle(self, name: str, digest: bytes, version: int, count: int) -> None:
        """Add a committed command, in the place of an older one where there is no other."""
        if self.pending:
            self.pending.pop(name, None)
        if len(digest) < DIGEST:
            self.evicted = True
            return
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        record = _RECORD.pack(number, digest, version, count)
        if record[: _NAME.size] in bucket and _find(bucket, record[: _NAME.size]) >= 0:
            return
        if len(bucket) >= BUCKET * _RECORD.size:
            bucket, self.evicted = bucket[_RECORD.size :], True
        self._buckets[number % BUCKETS] = bucket + record

    def clear(self) -> None:
        """Drop all commands."""
        self.pending.clear()
        self._buckets.clear()

    def committed(self) -> RecentCommands:
        """A copy without the commands in flight."""
        copy = RecentCommands()
        copy._buckets, copy.evicted = dict(self._buckets), self.evicted
        return copy


def _find(bucket: bytes, name: bytes) -> int:
    """Offset of the record of a name; -1 if there is none."""
    place = bucket.find(name)
    while place >= 0 and place % _RECORD.size:
        place = bucket.find(name, place + 1)
    return place
