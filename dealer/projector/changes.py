"""Changes of the read models as plain data, between the fold and the SQL writer.

The members of a row are the columns of its read model, which `dealer.projector.schema` describes.
For each stream, stacks are shortened first, then rows are added, then rows are updated; within one
list the order is that of the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from dealer.game.stacks import DECK, seat_of


class InconsistentEvent(ValueError):
    """The event of this version contradicts the events before it."""

    def __init__(self, version: int, reason: object) -> None:
        super().__init__(
            f"The event of version {version} does not fit the ones before it ({reason}); `dealer "
            "audit` says whether the log was altered."
        )
        self.version = version


StreamId = int | bytes
"""The value of `stream` columns: a short number on SQLite, the table's id on PostgreSQL."""


class StreamKey(NamedTuple):
    """A table in the log: its `stream` value and its id of 16 bytes."""

    id: StreamId
    table: bytes


Cards = list[int | None]
"""A stack in the public state, bottom first; None for an unknown card."""


class TableRow(msgspec.Struct):
    stream: StreamId
    table_id: str
    name: str | None
    origin: str
    house_key: str
    rules: str
    opened_at: int
    closed_at: int | None
    rounds: int
    events: int


class SeatRow(msgspec.Struct):
    stream: StreamId
    seat: int
    since: int
    since_at: int
    player: str
    key: str | None
    until: int | None = None
    until_at: int | None = None


class RoundRow(msgspec.Struct):
    stream: StreamId
    round: int
    since: int
    since_at: int
    cards: int
    entropy: str
    commitment: str
    until: int | None = None
    until_at: int | None = None
    secret: str | None = None


class ShuffleRow(msgspec.Struct):
    stream: StreamId
    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started: int
    started_at: int
    gathered: int | None = None
    committed: int | None = None
    revealed: int | None = None
    outcome: str = "running"
    ended: int | None = None
    ended_at: int | None = None
    first_slot: int | None = None


class SwapRow(msgspec.Struct):
    stream: StreamId
    round: int
    k: int
    step: int
    version: int
    i: int
    j: int
    card_i: str | None
    card_j: str | None


class MoveRow(msgspec.Struct):
    stream: StreamId
    version: int
    at: int
    round: int
    event: str
    source: str
    source_place: int
    target: str
    target_place: int
    slot: int | None
    card: str | None
    shown: int


class DeckRow(msgspec.Struct):
    stream: StreamId
    round: int
    place: int
    slot: int | None
    card: str | None


class HandRow(msgspec.Struct):
    stream: StreamId
    round: int
    seat: int
    place: int
    slot: int | None
    card: str | None


class PileRow(msgspec.Struct):
    stream: StreamId
    round: int
    pile: str
    place: int
    slot: int | None
    card: str | None


Row = TableRow | SeatRow | RoundRow | ShuffleRow | SwapRow | MoveRow | DeckRow | HandRow | PileRow


class DeckLength(msgspec.Struct):
    """The rows of places from `length` on are deleted; so for the other stacks."""

    stream: StreamId
    round: int
    length: int


class HandLength(msgspec.Struct):
    stream: StreamId
    round: int
    seat: int
    length: int


class PileLength(msgspec.Struct):
    stream: StreamId
    round: int
    pile: str
    length: int


Length = DeckLength | HandLength | PileLength


class TableReached(msgspec.Struct):
    """`rounds` and `closed_at` are None if they are unchanged."""

    events: int
    rounds: int | None
    closed_at: int | None
    stream: StreamId


class SeatFreed(msgspec.Struct):
    until: int
    until_at: int
    stream: StreamId
    seat: int
    before: int


class RoundEnded(msgspec.Struct):
    until: int
    until_at: int
    secret: str
    stream: StreamId
    round: int


class EntropyGathered(msgspec.Struct):
    gathered: int
    committed: int
    stream: StreamId
    round: int
    k: int


class ShuffleEnded(msgspec.Struct):
    outcome: str
    ended: int
    ended_at: int
    revealed: int
    first_slot: int | None
    stream: StreamId
    round: int
    k: int


class FaceShown(msgspec.Struct):
    """Of the moves of a slot between two versions."""

    card: str
    stream: StreamId
    after: int
    before: int
    slot: int


Update = TableReached | SeatFreed | RoundEnded | EntropyGathered | ShuffleEnded | FaceShown

_Row = TypeVar("_Row")


class Changes:
    """Parameters of statements by their types: rows to delete, to add and to update."""

    __slots__ = ("added", "shortened", "updated")

    def __init__(self) -> None:
        self.shortened: dict[type[Length], list[Any]] = {}
        self.added: dict[type[Row], list[Any]] = {}
        self.updated: dict[type[Update], list[Any]] = {}

    def add(self, row: Row) -> None:
        self.added.setdefault(type(row), []).append(row)

    def rows(self, model: type[_Row]) -> list[_Row]:
        """The list of the added rows of a read model, to append to."""
        return self.added.setdefault(model, [])  # type: ignore[arg-type]

    def update(self, values: Update) -> None:
        self.updated.setdefault(type(values), []).append(values)

    def extend(self, more: Changes) -> None:
        """Add another stream's changes, or later ones of the same stream; `more` is used up."""
        pairs: Any = (
            (self.shortened, more.shortened),
            (self.added, more.added),
            (self.updated, more.updated),
        )
        for mine, others in pairs:
            for kind, rows in others.items():
                known = mine.get(kind)
                if known is None:
                    mine[kind] = rows
                else:
                    known += rows

    def diff_stack(
        self,
        key: tuple[StreamId, int, str],
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
        if len(after) < len(before):
            self.shorten(key, len(after))
        if same == len(after):
            return
        stream, round_, stack = key
        seat = seat_of(stack)
        model: Any
        where: tuple[int | str, ...]
        if stack == DECK:
            model, where = DeckRow, ()
        elif seat is not None:
            model, where = HandRow, (seat,)
        else:
            model, where = PileRow, (stack.removeprefix("pile:"),)
        rows, row = self.rows(model), partial(model, stream, round_, *where)
        for place in range(same, len(after)):
            card = after[place]  # see `dealer.game.state` for its encoding as int
            if card is None:
                rows.append(row(place, None, None))
            elif card < 0:
                rows.append(row(place, None, opened[~card]))
            else:
                rows.append(row(place, card, faces[card]))

    def shorten(self, key: tuple[StreamId, int, str], length: int) -> None:
        """Delete the rows of one stack, (stream, round, stack), above `length` places."""
        stream, round_, stack = key
        seat = seat_of(stack)
        shortened: Length
        if stack == DECK:
            shortened = DeckLength(stream, round_, length)
        elif seat is not None:
            shortened = HandLength(stream, round_, seat, length)
        else:
            shortened = PileLength(stream, round_, stack.removeprefix("pile:"), length)
        self.shortened.setdefault(type(shortened), []).append(shortened)


def _common_length(before: Sequence[int | None], after: Sequence[int | None]) -> int:
    """How many places from the bottom are equal in both."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        return shorter
    return next(p for p in range(shorter) if before[p] != after[p])
