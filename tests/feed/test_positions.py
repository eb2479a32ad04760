"""Positions: texts, generations, and the seams of a restored log."""

from __future__ import annotations

import pytest

from dealer.errors import PositionLost
from dealer.eventlog.high_water_mark import FIRST
from dealer.feed.positions import FEED_END, Generations, Place, began_at


class House:
    """A log of which only the metadata are read."""

    def __init__(self, **values: bytes) -> None:
        self.values = values

    async def fetch(self, sql: str, parameters: tuple[object, ...] = ()) -> list[object]:
        return list(self.values.items())


def generations(*ends: int) -> House:
    """A log with a generation for each of these, begun when the feed had so many rows."""
    values = {}
    for number, end in enumerate(ends, 1):
        values[f"generation.{number}"] = bytes([number] * 16)
        values[f"{FEED_END}{number}"] = end.to_bytes(8)
    return House(**values)


async def place(log: House, position: str) -> Place:
    known = Generations()
    await known.refresh(log)  # type: ignore[arg-type]
    return await known.place(log, position, head=70)  # type: ignore[arg-type]


async def test_a_position_names_its_place() -> None:
    known = Generations()
    text = known.text(Place(57, 3))
    assert await place(House(), text) == (57, 3)
    assert await place(House(), "start") == (1, 0)
    assert await place(House(), "now") == (71, 0)


@pytest.mark.parametrize(
    "text", ["57", "00000000-1", "0000000g-1-1", "00000000-1-1 ", "00000000--1-1", "ende", ""]
)
async def test_other_texts_are_no_positions(text: str) -> None:
    with pytest.raises(ValueError, match="position"):
        await place(House(), text)


async def test_a_position_beyond_the_newest_row_is_lost() -> None:
    """As after a restore without the mark that shows it."""
    known = Generations()
    assert await place(House(), known.text(Place(71))) == (71, 0)
    for beyond in (Place(71, 1), Place(72), Place(9999)):
        with pytest.raises(PositionLost):
            await place(House(), known.text(beyond))


async def test_of_an_earlier_generation_only_what_the_restore_kept_is_known() -> None:
    log = generations(50, 40)
    tag = FIRST[:4].hex()
    assert await place(log, f"{tag}-41-0") == (41, 0)
    for lost in (f"{tag}-41-1", f"{tag}-50-0", "01010101-45-1", "09090909-1-0"):
        with pytest.raises(PositionLost):
            await place(log, lost)
    assert await place(log, "01010101-40-2") == (40, 2)
    assert await place(log, "02020202-60-0") == (60, 0)


def test_without_a_record_of_the_feed_earlier_positions_are_lost() -> None:
    assert list(began_at({"generation.1": b"\1" * 16}).values()) == [0, 0]
