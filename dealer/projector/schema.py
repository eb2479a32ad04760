"""SQL schema of the read models: seats, rounds, shuffles, swaps, moves and stacks.

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

from sqlalchemy import Column, Index, Integer, Table, Text, UniqueConstraint, text
from sqlalchemy.schema import SchemaItem

from dealer.eventlog.schema import Key, Number, define_table, postgres


def _key(name: str, kind: type[Integer] | type[Text] = Integer) -> Column[object]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _model(name: str, *columns: SchemaItem) -> Table:
    stream: Column[object] = Column("stream", Key, primary_key=True, autoincrement=False)
    return define_table(name, stream, *columns, sqlite_with_rowid=False)


_OPEN = text("closed_at IS NULL")

# `events` is the version that the rows reflect, `rounds` the number of opened rounds.
tables = _model(
    "tables",
    Column("table_id", Text, nullable=False),
    Column("name", Text),
    Column("origin", Text, nullable=False),
    Column("house_key", Text, nullable=False),
    Column("rules", Text, nullable=False),
    Column("opened_at", Number, nullable=False),
    Column("closed_at", Number),
    Column("rounds", Integer, nullable=False),
    Column("events", Number, nullable=False),
    # For the lobby: the newest open tables.
    Index("ix_tables_opened_at", "opened_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
    # For `dealer tables`: the newest ones, closed or not.
    Index("ix_tables_opened_at_stream", "opened_at", "stream"),
)
# A shard cannot enforce uniqueness over all tables, and `stream` is unique already.
UniqueConstraint(tables.c.table_id)
Index("ix_tables_table_id", postgres.tables["tables"].c.table_id)

# One row for each time that a player took a seat; `since` and `until` are versions.
seats = _model(
    "seats",
    _key("seat"),
    _key("since"),
    Column("since_at", Number, nullable=False),
    Column("player", Text, nullable=False),
    Column("key", Text),
    Column("until", Number),
    Column("until_at", Number),
)

# `since` and `until` are the versions that open and close it; `secret` opened the commitment.
rounds = _model(
    "rounds",
    _key("round"),
    Column("since", Number, nullable=False),
    Column("since_at", Number, nullable=False),
    Column("cards", Integer, nullable=False),
    Column("entropy", Text, nullable=False),
    Column("commitment", Text, nullable=False),
    Column("until", Number),
    Column("until_at", Number),
    Column("secret", Text),
)

# `started`, `gathered` (no digest counts after it) and `ended` are versions; `committed` and
# `revealed` count the seats that sent a digest and those that opened it; `outcome` is running,
# sealed or voided; the sealed cards got the slots from `first_slot` on.
shuffles = _model(
    "shuffles",
    _key("round"),
    _key("k"),
    Column("stack", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("algorithm", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("started", Number, nullable=False),
    Column("started_at", Number, nullable=False),
    Column("gathered", Number),
    Column("committed", Integer),
    Column("revealed", Integer),
    Column("outcome", Text, nullable=False),
    Column("ended", Number),
    Column("ended_at", Number),
    Column("first_slot", Integer),
)

# Written when the round is closed: `card_i` was at place i before this step, at place j after it.
swaps = _model(
    "swaps",
    _key("round"),
    _key("k"),
    _key("step"),
    Column("version", Number, nullable=False),
    Column("i", Integer, nullable=False),
    Column("j", Integer, nullable=False),
    Column("card_i", Text, nullable=False),
    Column("card_j", Text, nullable=False),
)

# What was drawn, moved, shown or cut; `source` and `target` are stacks, places are counted from
# the bottom. A shown card keeps its place; a cut names no card, its place is `at`.
# `shown` is 1 if the face was public after this event.
moves = _model(
    "moves",
    _key("version"),
    Column("at", Number, nullable=False),
    Column("round", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_place", Integer, nullable=False),
    Column("target", Text, nullable=False),
    Column("target_place", Integer, nullable=False),
    Column("slot", Integer),
    Column("card", Text),
    Column("shown", Integer, nullable=False),
)


def _stacks(name: str, *which: Column[object]) -> Table:
    """The place of every card of a round, now or, once it is closed, at its end."""
    rest = (Column("slot", Integer), Column("card", Text))
    return _model(name, _key("round"), *which, _key("place"), *rest)


deck = _stacks("deck")
hands = _stacks("hands", _key("seat"))
piles = _stacks("piles", _key("pile", Text))

MODELS: tuple[Table, ...] = (
    tables, seats, rounds, shuffles, swaps, moves, deck, hands, piles,
)  # fmt: skip

VIEWS = ("draws", "log", "shuffle_swaps", "hand_changes")
"""The views that read these tables; the migrations define them."""
