"""Changes of the read models as plain data, between the fold and the SQL writer.

For each stream, stacks are truncated first, then rows are added, then rows are updated; within one
list the order is that of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dealer.game.stacks import DECK, seat_of
from dealer.projector.types import Number

Row = tuple[Any, ...]
Cards = list[int | None]
"""A stack in the public state, bottom first; None for an unknown card."""


class Changes:
    """Parameters of statements: `truncated` and `added` by read model, `updated` by statement."""

    __slots__ = ("added", "truncated", "updated")

    def __init__(self) -> None:
        self.truncated: dict[str, list[Row]] = {}
        self.added: dict[str, list[Row]] = {}
        self.updated: dict[str, list[Row]] = {}

    def add(self, model: str, row: Row) -> None:
        self.added.setdefault(model, []).append(row)

    def update(self, statement: str, values: Row) -> None:
        self.updated.setdefault(statement, []).append(values)

    def extend(self, more: Changes) -> None:
        """Add another stream's changes."""
        for mine, others in (
            (self.truncated, more.truncated),
            (self.added, more.added),
            (self.updated, more.updated),
        ):
            for name, rows in others.items():
                mine.setdefault(name, []).extend(rows)

    def diff_stack(
        self,
        key: tuple[Number, int, str],
        *,
        before: Sequence[int | None],
        after: Sequence[int | None],
        opened: Sequence[str],
        faces: Sequence[str | None],
        newly_shown: Iterable[int] = (),
    ) -> None:
        """Change the rows of one stack, (stream, round, stack), from `before` to `after`.

        Only the places above the common bottom part are written, replacing existing rows.
        `newly_shown` are slots whose face is public now and was not before.
        """
        same = _common_length(before, after)
        shown = set(newly_shown)
        if shown:
            same = next((p for p in range(same) if after[p] in shown), same)
        stream, round_, stack = key
        model, where = _rows_of(stack)
        prefix = (stream, round_, *where)
        if len(after) < len(before):
            self.truncated.setdefault(model, []).append((*prefix, len(after)))
        if same < len(after):
            rows = self.added.setdefault(model, [])
            for place in range(same, len(after)):
                card = after[place]  # see `dealer.game.state` for its encoding as int
                if card is None:
                    rows.append((*prefix, place, None, None))
                elif card < 0:
                    rows.append((*prefix, place, None, opened[~card]))
                else:
                    rows.append((*prefix, place, card, faces[card]))


def _common_length(before: Sequence[int | None], after: Sequence[int | None]) -> int:
    """How many places from the bottom are equal in both."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        return shorter
    return next(p for p in range(shorter) if before[p] != after[p])


def _rows_of(stack: str) -> tuple[str, tuple[int | str, ...]]:
    if stack == DECK:
        return "deck", ()
    seat = seat_of(stack)
    if seat is not None:
        return "hands", (seat,)
    return "piles", (stack.removeprefix("pile:"),)
