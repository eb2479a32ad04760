"""Changes of the read models as plain data, and the statements that write them.

For each stream, stacks are shortened first, then rows are added, then rows are updated; within one
list they are in the order of the events. The members of what shortens or updates are the parameters
of its `SQL`, in which a prefix of the names selects the tables that queries read (""), or those
that a rebuild prepares. Rows replace rows with the same key: stacks are overwritten, and rows that
were inserted by hand cannot make the projector fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple, TypeVar, get_args

import msgspec
from msgspec.structs import astuple

from dealer.eventlog.protocols import Connection
from dealer.game.stacks import DECK, seat_of
from dealer.projector import models


class InconsistentEvent(ValueError):
    """The event of this version contradicts the events before it."""

    def __init__(self, version: int, reason: object) -> None:
        super().__init__(
            f"The event of version {version} does not fit the ones before it ({reason}); `dealer "
            "audit` says whether the log was altered."
        )
        self.version = version


class StreamKey(NamedTuple):
    """A table in the log: its `stream` value and its id of 16 bytes."""

    id: models.StreamId
    table: bytes


class DeckLength(msgspec.Struct):
    """The rows of a stack from the place `length` on are deleted."""

    SQL: ClassVar[str] = "DELETE FROM {}deck WHERE stream = ? AND round = ? AND place >= ?"
    stream: models.StreamId
    round: int
    length: int


class HandLength(msgspec.Struct):
    SQL: ClassVar[str] = (
        "DELETE FROM {}hands WHERE stream = ? AND round = ? AND seat = ? AND place >= ?"
    )
    stream: models.StreamId
    round: int
    seat: int
    length: int


class PileLength(msgspec.Struct):
    SQL: ClassVar[str] = (
        "DELETE FROM {}piles WHERE stream = ? AND round = ? AND pile = ? AND place >= ?"
    )
    stream: models.StreamId
    round: int
    pile: str
    length: int


Length = DeckLength | HandLength | PileLength


def _kinds(stack: str) -> tuple[Any, Any, tuple[int | str, ...]]:
    """The row and the length of a stack's kind, and what names it among the stacks of its kind."""
    seat = seat_of(stack)
    if stack == DECK:
        return models.DeckRow, DeckLength, ()
    if seat is not None:
        return models.HandRow, HandLength, (seat,)
    return models.PileRow, PileLength, (stack.removeprefix("pile:"),)


class TableReached(msgspec.Struct):
    """`rounds` and `closed_at` are None if they are unchanged."""

    SQL: ClassVar[str] = (
        "UPDATE {}tables SET events = ?, rounds = coalesce(?, rounds),"
        " closed_at = coalesce(?, closed_at) WHERE stream = ?"
    )
    events: int
    rounds: int | None
    closed_at: int | None
    stream: models.StreamId


class SeatFreed(msgspec.Struct):
    SQL: ClassVar[str] = (
        "UPDATE {}seats SET until = ?, until_at = ?"
        " WHERE stream = ? AND seat = ? AND since < ? AND until IS NULL"
    )
    until: int
    until_at: int
    stream: models.StreamId
    seat: int
    before: int


class RoundEnded(msgspec.Struct):
    SQL: ClassVar[str] = (
        "UPDATE {}rounds SET until = ?, until_at = ?, secret = ? WHERE stream = ? AND round = ?"
    )
    until: int
    until_at: int
    secret: str
    stream: models.StreamId
    round: int


class EntropyGathered(msgspec.Struct):
    SQL: ClassVar[str] = (
        "UPDATE {}shuffles SET gathered = ?, committed = ? WHERE stream = ? AND round = ? AND k = ?"
    )
    gathered: int
    committed: int
    stream: models.StreamId
    round: int
    k: int


class ShuffleEnded(msgspec.Struct):
    SQL: ClassVar[str] = (
        "UPDATE {}shuffles SET outcome = ?, ended = ?, ended_at = ?, revealed = ?, first_slot = ?"
        " WHERE stream = ? AND round = ? AND k = ?"
    )
    outcome: str
    ended: int
    ended_at: int
    revealed: int
    first_slot: int | None
    stream: models.StreamId
    round: int
    k: int


class FaceShown(msgspec.Struct):
    """The moves of a slot between two versions get its face."""

    SQL: ClassVar[str] = (
        "UPDATE {}moves SET card = ? WHERE stream = ? AND version > ? AND version < ? AND slot = ?"
    )
    card: str
    stream: models.StreamId
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
        self.added: dict[type[models.Row], list[Any]] = {}
        self.updated: dict[type[Update], list[Any]] = {}

    def add(self, row: models.Row) -> None:
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

    def put_cards(
        self,
        key: tuple[models.StreamId, int, str],
        cards: Sequence[int | None],
        *,
        first: int,
        opened: Sequence[str],
        faces: Sequence[str | None],
    ) -> None:
        """Write the places from `first` on of one stack, (stream, round, stack), bottom first.

        `cards` are as in `dealer.game.state`, None for an unknown one; existing rows are replaced.
        """
        if first >= len(cards):
            return
        stream, round_, stack = key
        model, _, own = _kinds(stack)
        rows, row = self.rows(model), partial(model, stream, round_, *own)
        for place in range(first, len(cards)):
            card = cards[place]
            if card is None:
                rows.append(row(place, None, None))
            elif card < 0:
                rows.append(row(place, None, opened[~card]))
            else:
                rows.append(row(place, card, faces[card]))

    def shorten(self, key: tuple[models.StreamId, int, str], length: int) -> None:
        """Delete the rows of one stack, (stream, round, stack), above `length` places."""
        stream, round_, stack = key
        _, kind, own = _kinds(stack)
        self.shortened.setdefault(kind, []).append(kind(stream, round_, *own, length))


class ReadModelWriter:
    """Writes to the read models whose names begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self._sql = {kind: kind.SQL.format(prefix) for kind in get_args(Length | Update)}
        self._insert_sql = {kind: _insert(model, prefix) for kind, model in models.MODEL_OF.items()}
        self._prefix = prefix

    def write(self, connection: Connection, changes: Changes) -> None:
        """Inside the caller's transaction: shorten stacks, then add rows, then update rows."""
        execute = connection.exec_driver_sql
        for length, stacks in changes.shortened.items():
            execute(self._sql[length], [*map(astuple, stacks)])
        for model, added in changes.added.items():
            rows = [*map(astuple, added)]
            if on_postgres(connection):
                execute(_upsert(models.MODEL_OF[model], self._prefix), _newest(model, rows))
            else:
                execute(self._insert_sql[model], rows)
        for update, values in changes.updated.items():
            execute(self._sql[update], [*map(astuple, values)])


def on_postgres(connection: Connection) -> bool:
    return bool(connection.dialect.name == "postgresql")


def _insert(model: models.Model, prefix: str) -> str:
    columns = model.columns
    return (
        f"INSERT OR REPLACE INTO {prefix}{model.name} ({', '.join(columns)})"
        f" VALUES ({', '.join('?' * len(columns))})"
    )


@cache
def _upsert(model: models.Model, prefix: str) -> str:
    """One statement for any number of rows; its parameters are their columns."""
    columns, keys = model.columns, model.key
    arrays = ", ".join(
        f"CAST(? AS {models.POSTGRES_TYPES[kind]}[])" for _, kind, _ in model.types()
    )
    rest = ", ".join(f"{each} = excluded.{each}" for each in columns if each not in keys)
    return (
        f"INSERT INTO {prefix}{model.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {rest}"
    )


def _newest(kind: type[models.Row], rows: Sequence[tuple[Any, ...]]) -> tuple[list[object], ...]:
    """The columns of the rows, without all but the last of rows with the same key.

    ON CONFLICT DO UPDATE may update each row only once per statement.
    """
    model = models.MODEL_OF[kind]
    keys = [place for place, column in enumerate(model.columns) if column in model.key]
    kept = {tuple(row[place] for place in keys): row for row in rows}
    return tuple(map(list, zip(*kept.values(), strict=True)))
