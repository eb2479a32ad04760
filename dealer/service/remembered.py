"""The latest commands of a table, packed: an id sent again is answered without asking the log.

A command that is on its way to the disk is kept as it is. Once it is committed 52 bytes are left of
it, in one of 32 buckets by the hash of its name:

    hash(name) as a signed 64-bit number ‖ digest (32 bytes) ‖ version of its first event (64 bits)
    ‖ number of events (32 bits)

The hash is Python's own, keyed anew in each process. Were two names of one table to share it, the
digest still tells whether the command is the same.
"""

from __future__ import annotations

from struct import Struct

from dealer.service.requests import Remembered

BUCKETS = 32
BUCKET = 9
"""Commands of a bucket: the oldest of it leaves for the next. A full one is just small enough for
Python's own allocator; larger ones leave holes between each other that nothing fits into."""

_NAME = Struct(">q")
_RECORD = Struct(">q32sQI")
_DIGEST_BYTES = 32
_IN_FLIGHT = 700
_EMPTY = 100


class RecentCommands:
    """About the latest 288 commands of one table by name (role and id); the log has the others."""

    __slots__ = ("_buckets", "_in_flight")

    def __init__(self) -> None:
        self._in_flight: dict[str, Remembered] = {}
        self._buckets: dict[int, bytes] = {}

    @property
    def size(self) -> int:
        """Bytes of memory that this takes, estimated."""
        size = _IN_FLIGHT * len(self._in_flight)
        for bucket in self._buckets.values():
            size += _EMPTY + len(bucket)
        return size

    def get(self, name: str) -> Remembered | None:
        """What is known of a command; a committed one is a new object each time."""
        found = self._in_flight.get(name)
        if found is not None or not self._buckets:
            return found
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        place = _find(bucket, _NAME.pack(number))
        if place < 0:
            return None
        _, digest, version, count = _RECORD.unpack_from(bucket, place)
        return Remembered(digest, version, count, committed=True)

    def start(self, name: str, command: Remembered) -> None:
        """Remember a command that is on its way to the disk, until `settle`."""
        self._in_flight[name] = command

    def settle(self, name: str, command: Remembered) -> bool:
        """Remember a command that is on disk; whether another one was forgotten for it."""
        self._in_flight.pop(name, None)
        if len(command.digest) != _DIGEST_BYTES:
            return True
        number = hash(name)
        bucket = self._buckets.get(number % BUCKETS, b"")
        if _find(bucket, _NAME.pack(number)) >= 0:
            return False
        full = len(bucket) >= BUCKET * _RECORD.size
        record = _RECORD.pack(number, command.digest, command.version, command.count)
        self._buckets[number % BUCKETS] = (bucket[_RECORD.size :] if full else bucket) + record
        return full

    def clear(self) -> None:
        self._in_flight.clear()
        self._buckets.clear()

    def committed(self) -> RecentCommands:
        """A copy without the commands that are on their way to the disk."""
        copy = RecentCommands()
        copy._buckets = dict(self._buckets)
        return copy


def _find(bucket: bytes, name: bytes) -> int:
    """Where the record of a name begins; -1 if there is none."""
    place = bucket.find(name)
    while place >= 0 and place % _RECORD.size:
        place = bucket.find(name, place + 1)
    return place
