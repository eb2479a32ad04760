"""What is to be written: rows to add, rows to touch up, and the part of a stack that changed.

Plain data between the fold, which decides, and the database, which obeys. For each stream the
tails are cut before rows are added, and rows are added before any is touched up; within one list
the order is that of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dealer.game.stacks import DECK, seat_of
from dealer.projector.happened import Number

Row = tuple[Any, ...]
Cards = list[int | None]
"""A stack as the public knows it, bottom first; None where nobody outside can tell the card."""


class Changes:
    """Rows by read model: `cut` tails of stacks, `added` rows, `set` of columns by statement."""

    __slots__ = ("added", "cut", "set")

    def __init__(self) -> None:
        self.cut: dict[str, list[Row]] = {}
        self.added: dict[str, list[Row]] = {}
        self.set: dict[str, list[Row]] = {}

    def add(self, model: str, row: Row) -> None:
        self.added.setdefault(model, []).append(row)

    def touch(self, statement: str, values: Row) -> None:
        self.set.setdefault(statement, []).append(values)

    def extend(self, more: Changes) -> None:
        """Takes in another stream's changes."""
        for mine, others in (
            (self.cut, more.cut),
            (self.added, more.added),
            (self.set, more.set),
        ):
            for name, rows in others.items():
                mine.setdefault(name, []).extend(rows)

    def lay(
        self,
        key: tuple[Number, int, str],
        *,
        before: Sequence[int | None],
        after: Sequence[int | None],
        opened: Sequence[str],
        faces: Sequence[str | None],
        turned: Iterable[int] = (),
    ) -> None:
        """Brings the rows of one stack, (stream, round, stack), from `before` to `after`.

        Only the places above the common bottom part are written, over what stands there.
        `turned` are slots whose face is told now and was not before.
        """
        kept = common(before, after)
        fresh = set(turned)
        if fresh:
            kept = next((p for p in range(kept) if after[p] in fresh), kept)
        stream, round_, stack = key
        model, where = _rows_of(stack)
        prefix = (stream, round_, *where)
        if len(after) < len(before):
            self.cut.setdefault(model, []).append((*prefix, len(after)))
        if kept < len(after):
            rows = self.added.setdefault(model, [])
            for place in range(kept, len(after)):
                rows.append((*prefix, place, *told(after[place], opened=opened, faces=faces)))


def common(before: Sequence[int | None], after: Sequence[int | None]) -> int:
    """How many places from the bottom are the same in both."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        return shorter
    return next(p for p in range(shorter) if before[p] != after[p])


def told(
    card: int | None, *, opened: Sequence[str], faces: Sequence[str | None]
) -> tuple[int | None, str | None]:
    """(slot, face) of a card as a row has it; the state's module says what the int means."""
    if card is None:
        return None, None
    if card < 0:
        return None, opened[~card]
    return card, faces[card]


def _rows_of(stack: str) -> tuple[str, tuple[int | str, ...]]:
    if stack == DECK:
        return "deck", ()
    seat = seat_of(stack)
    if seat is not None:
        return "hands", (seat,)
    return "piles", (stack.removeprefix("pile:"),)
