"""SQL read models: seats, rounds, shuffles, swaps, moves and stacks.

A row and its SQL table are one declaration: the members of a struct are the columns, in order.

Each row is keyed by its `stream`, the log's short number for a table; `tables` gives the table's
id for it:

    SELECT k, step, i, j, card_i, card_j FROM swaps JOIN tables USING (stream)
    WHERE table_id = '…' AND round = 1 ORDER BY k, step;

No other column of `tables` has a name that a second model has, so this join works for each.
A `card` is NULL while the public log does not reveal it, and is filled in when the card is shown or
its round closes. A `slot` is NULL before the stack's first seal, and both are NULL between a
shuffle's first swap and its seal, when no card's place is public. Times are
milliseconds since 1970. A version names the event in the log that caused it.

On PostgreSQL `stream` is the table's id itself, 16 bytes. On SQLite it leads every key and the rows
are stored in key order (WITHOUT ROWID): measured over 5,000 tables, a hex id in each row costs 1.5
times the time and three times the space.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec

StreamId = int | bytes
"""The value of `stream` columns: a short number on SQLite, the table's id on PostgreSQL."""

Long = Annotated[int, "64 bits"]
"""A version or a time."""

POSTGRES_TYPES: dict[Any, str] = {
    StreamId: "BYTEA", int: "INTEGER", Long: "BIGINT", str: "TEXT"
}  # fmt: skip


class TableRow(msgspec.Struct):
    """`events` is the version that the rows reflect, `rounds` the number of opened rounds."""

    stream: StreamId
    table_id: str
    name: str | None
    origin: str
    house_key: str
    rules: str
    opened_at: Long
    closed_at: Long | None
    rounds: int
    events: Long


class SeatRow(msgspec.Struct):
    """A time that a player held a seat; `since` and `until` are versions."""

    stream: StreamId
    seat: int
    since: int
    since_at: Long
    player: str
    key: str | None
    until: Long | None = None
    until_at: Long | None = None


class RoundRow(msgspec.Struct):
    """`since` and `until` are the versions that open and close it; `secret` opened the
    commitment."""

    stream: StreamId
    round: int
    since: Long
    since_at: Long
    cards: int
    entropy: str
    commitment: str
    until: Long | None = None
    until_at: Long | None = None
    secret: str | None = None


class ShuffleRow(msgspec.Struct):
    """`started`, `gathered` (no digest counts after it) and `ended` are versions.

    `committed` and `revealed` count the seats that sent a digest and those that opened it;
    `outcome` is running, sealed or voided; the sealed cards got the slots from `first_slot` on.
    """

    stream: StreamId
    round: int
    k: int
    stack: str
    n: int
    algorithm: str
    steps: int
    started: Long
    started_at: Long
    gathered: Long | None = None
    committed: int | None = None
    revealed: int | None = None
    outcome: str = "running"
    ended: Long | None = None
    ended_at: Long | None = None
    first_slot: int | None = None


class SwapRow(msgspec.Struct):
    """Written when the round is closed: `card_i` was at place i before this step, at place j after
    it."""

    stream: StreamId
    round: int
    k: int
    step: int
    version: Long
    i: int
    j: int
    card_i: str
    card_j: str


class MoveRow(msgspec.Struct):
    """What was drawn, moved, shown or cut.

    `source` and `target` are stacks, places are counted from the bottom. A shown card keeps its
    place; a cut names no card, its place is `at`. `shown` is 1 if the face was public after this
    event.
    """

    stream: StreamId
    version: int
    at: Long
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
    """The place of a card of a round, now or, once it is closed, at its end; so for all stacks."""

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


class Model(NamedTuple):
    """The SQL table of these rows; `key` are the columns of its primary key."""

    name: str
    row: type[Row]
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def types(self) -> Iterator[tuple[str, Any, bool]]:
        """Each column with its type, a key of `POSTGRES_TYPES`, and whether it may be NULL."""
        for column, hint in get_type_hints(self.row, include_extras=True).items():
            kind = next(kind for kind in POSTGRES_TYPES if hint in (kind, kind | None))
            yield column, kind, hint != kind


def _model(name: str, row: type[Row], *key: str) -> Model:
    """`key` are the columns of the primary key after `stream`."""
    return Model(name, row, row.__struct_fields__, ("stream", *key))


MODEL_OF: dict[type[Row], Model] = {
    TableRow: _model("tables", TableRow),
    SeatRow: _model("seats", SeatRow, "seat", "since"),
    RoundRow: _model("rounds", RoundRow, "round"),
    ShuffleRow: _model("shuffles", ShuffleRow, "round", "k"),
    SwapRow: _model("swaps", SwapRow, "round", "k", "step"),
    MoveRow: _model("moves", MoveRow, "version"),
    DeckRow: _model("deck", DeckRow, "round", "place"),
    HandRow: _model("hands", HandRow, "round", "seat", "place"),
    PileRow: _model("piles", PileRow, "round", "pile", "place"),
}
MODELS = tuple(MODEL_OF.values())

VIEWS = ("draws", "log", "shuffle_swaps", "hand_changes")
"""The views that read these tables; the migrations define them."""
