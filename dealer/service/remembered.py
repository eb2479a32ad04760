"""The latest commands of a table, packed: an id sent again is answered without asking the log.

A command that is on its way to the disk is kept as it is. Once it is committed 60 bytes are left of
it, in one of 16 buckets by the hash of its name:

    sha256(name)[:16] ‖ digest (32 bytes) ‖ be64(version of its first event) ‖ be32(events)
"""

from __future__ import annotations

from hashlib import sha256

from dealer.service.requests import Remembered

BUCKETS = 16
BUCKET = 16
"""Commands of a bucket: the oldest of it leaves for the next. 256 are kept in all."""

_NAME, _DIGEST, _VERSION = 16, 48, 56
_RECORD = 60
_IN_FLIGHT = 700
_EMPTY = 64


class RecentCommands:
    """About the latest 256 commands of one table by name (role and id); the log has the others."""

    __slots__ = ("_buckets", "_in_flight")

    def __init__(self) -> None:
        self._in_flight: dict[str, Remembered] = {}
        self._buckets: dict[int, bytearray] = {}

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
        key = _key(name)
        bucket = self._buckets.get(key[0] % BUCKETS)
        place = -1 if bucket is None else _find(bucket, key)
        if bucket is None or place < 0:
            return None
        record = bytes(bucket[place : place + _RECORD])
        version = int.from_bytes(record[_DIGEST:_VERSION], "big")
        count = int.from_bytes(record[_VERSION:], "big")
        return Remembered(record[_NAME:_DIGEST], version, count, committed=True)

    def start(self, name: str, command: Remembered) -> None:
        """Remember a command that is on its way to the disk, until `settle`."""
        self._in_flight[name] = command

    def settle(self, name: str, command: Remembered) -> bool:
        """Remember a command that is on disk; whether another one was forgotten for it."""
        self._in_flight.pop(name, None)
        if len(command.digest) != _DIGEST - _NAME:
            return True
        key = _key(name)
        bucket = self._buckets.setdefault(key[0] % BUCKETS, bytearray())
        if _find(bucket, key) >= 0:
            return False
        full = len(bucket) >= BUCKET * _RECORD
        if full:
            del bucket[:_RECORD]
        bucket += key + command.digest
        bucket += command.version.to_bytes(8, "big") + command.count.to_bytes(4, "big")
        return full

    def clear(self) -> None:
        self._in_flight.clear()
        self._buckets.clear()

    def committed(self) -> RecentCommands:
        """A copy without the commands that are on their way to the disk."""
        copy = RecentCommands()
        copy._buckets = {place: bytearray(bucket) for place, bucket in self._buckets.items()}
        return copy


def _key(name: str) -> bytes:
    return sha256(name.encode()).digest()[:_NAME]


def _find(bucket: bytearray, key: bytes) -> int:
    """Where the record of `key` begins; -1 if there is none."""
    place = bucket.find(key)
    while place >= 0 and place % _RECORD:
        place = bucket.find(key, place + 1)
    return place
