"""Positions: how far a follower has read the feed, as a text that it gives back.

A position names the generation of the log, a row of `feed` and a version of that row's table. The
generation is new after each restore from an older backup (`service/operations/restore_check.py`),
with the newest row of the restored feed: a position beyond it is of rows that the restore has lost,
and would skip those that have their numbers now. So is a position beyond the newest row of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dealer.errors import PositionLost
from dealer.eventlog import Log
from dealer.eventlog.high_water_mark import FIRST
from dealer.eventlog.read_only_log import ReadOnlyLog

START, NOW = "start", "now"
"""What may be given instead of a position: before all events, or after those so far."""

FEED_END = "feed_end."
"""Before the number of a generation: the name of its first position in `house`, 8 bytes."""

_GENERATION = "generation."
_TAG_BYTES = 4
_POSITION = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})-([0-9]{1,18})")


class Place(NamedTuple):
    """A place in the feed: after version `version` in row `seq`, before the rows after it."""

    seq: int
    version: int = 0


FIRST_PLACE = Place(1)


class Generations:
    """The generations of a log; `refresh` reads them.

    `newest` is the tag of the newest one, with which every new position begins.
    """

    def __init__(self) -> None:
        # Tags in their order, each with the newest row when its generation began.
        self._began: dict[str, int] = {_tag(FIRST): 0}
        self.newest = _tag(FIRST)

    async def refresh(self, log: ReadOnlyLog) -> None:
        """Read the generations; raises DatabaseError."""
        found = {name: bytes(value) for name, value in await log.fetch(_HOUSE)}
        self._began = began_at(found)
        self.newest = next(reversed(self._began))

    def text(self, place: Place) -> str:
        """The position of a place in the newest generation."""
        return f"{self.newest}-{place.seq}-{place.version}"

    async def place(self, log: ReadOnlyLog, position: str, *, head: int) -> Place:
        """The place of a position in a feed whose newest row is `head`.

        Raises PositionLost if the log does not have it, ValueError if the text is no position.
        """
        if position == START:
            return FIRST_PLACE
        if position == NOW:
            return Place(head + 1)
        match = _POSITION.fullmatch(position)
        if match is None:
            raise ValueError("not a position")
        tag, place = match[1], Place(int(match[2]), int(match[3]))
        if tag != self.newest:
            await self.refresh(log)
        tags = list(self._began)
        if tag not in self._began:
            raise _lost()
        later = tags[tags.index(tag) + 1 :]
        ends = [*(self._began[tag] for tag in later), head]
        if any(place > Place(end + 1) for end in ends):
            raise _lost()
        return place


HEAD = "SELECT seq FROM feed_state WHERE id = 1"
_HOUSE = (
    f"SELECT name, value FROM house WHERE name LIKE '{_GENERATION}%' OR name LIKE '{FEED_END}%'"
)


def began_at(house: Mapping[str, bytes]) -> dict[str, int]:
    """The tags of the generations in `house`, in their order, and the newest row at their begin.

    Without a record of that row, all positions of earlier generations are lost.
    """
    found = {_tag(FIRST): 0}
    number = 1
    while (generation := house.get(f"{_GENERATION}{number}")) is not None:
        found[_tag(generation)] = int.from_bytes(house.get(f"{FEED_END}{number}", b""))
        number += 1
    return found


async def record_end(log: Log, number: int) -> None:
    """Store the newest row of the feed, before generation `number` begins; raises DatabaseError."""
    (seq,) = await log.fetch_row("feed_state", HEAD)
    await log.put_metadata(f"{FEED_END}{number}", int(seq).to_bytes(8))


def _tag(generation: bytes) -> str:
    return generation[:_TAG_BYTES].hex()


def _lost() -> PositionLost:
    return PositionLost(
        "The log does not have this position: it was restored from an older backup. Follow from a "
        "position that you stored before, or from the start."
    )
