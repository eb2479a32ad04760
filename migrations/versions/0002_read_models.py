"""The read models: tables, seats, rounds, shuffles, swaps, moves and where every card lies."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")

# Who drew what when.
DRAWS = """\
CREATE VIEW draws AS
SELECT t.table_id, m.stream, m.version, m.at, m.round,
       CAST(substr(m.target, 6) AS INTEGER) AS seat,
       (SELECT s.player FROM seats s
        WHERE s.stream = m.stream AND s.seat = CAST(substr(m.target, 6) AS INTEGER)
          AND s.since < m.version
        ORDER BY s.since DESC LIMIT 1) AS player,
       m.source, m.source_place AS place, m.slot, m.card
FROM moves m JOIN tables t ON t.stream = m.stream
WHERE m.event = 'CardDrawn'"""


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    # Unique over all tables is what no shard can promise alone.
    unique = () if postgres else (sa.UniqueConstraint("table_id", name="uq_tables_table_id"),)
    op.create_table(
        "tables",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("house_key", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("opened_at", NUMBER, nullable=False),
        sa.Column("closed_at", NUMBER),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("events", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_tables"),
        *unique,
        sqlite_with_rowid=False,
    )
    if postgres:
        op.create_index("ix_tables_table_id", "tables", ["table_id"])
    op.create_table(
        "seats",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("seat", sa.Integer(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("since_at", NUMBER, nullable=False),
        sa.Column("player", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("until", NUMBER),
        sa.Column("until_at", NUMBER),
        sa.PrimaryKeyConstraint("stream", "seat", "since", name="pk_seats"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rounds",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("since", NUMBER, nullable=False),
        sa.Column("since_at", NUMBER, nullable=False),
        sa.Column("cards", sa.Integer(), nullable=False),
        sa.Column("entropy", sa.Text(), nullable=False),
        sa.Column("commitment", sa.Text(), nullable=False),
        sa.Column("until", NUMBER),
        sa.Column("until_at", NUMBER),
        sa.Column("secret", sa.Text()),
        sa.PrimaryKeyConstraint("stream", "round", name="pk_rounds"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "shuffles",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("stack", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("started", NUMBER, nullable=False),
        sa.Column("started_at", NUMBER, nullable=False),
        sa.Column("gathered", NUMBER),
        sa.Column("committed", sa.Integer()),
        sa.Column("revealed", sa.Integer()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("ended", NUMBER),
        sa.Column("ended_at", NUMBER),
        sa.Column("first_slot", sa.Integer()),
        sa.PrimaryKeyConstraint("stream", "round", "k", name="pk_shuffles"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "swaps",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("i", sa.Integer(), nullable=False),
        sa.Column("j", sa.Integer(), nullable=False),
        sa.Column("card_i", sa.Text(), nullable=False),
        sa.Column("card_j", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "round", "k", "step", name="pk_swaps"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "moves",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_place", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("target_place", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer()),
        sa.Column("card", sa.Text()),
        sa.Column("shown", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "version", name="pk_moves"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "deck",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer()),
        sa.Column("card", sa.Text()),
        sa.PrimaryKeyConstraint("stream", "round", "place", name="pk_deck"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hands",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("seat", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer()),
        sa.Column("card", sa.Text()),
        sa.PrimaryKeyConstraint("stream", "round", "seat", "place", name="pk_hands"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "piles",
        sa.Column("stream", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("pile", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer()),
        sa.Column("card", sa.Text()),
        sa.PrimaryKeyConstraint("stream", "round", "pile", "place", name="pk_piles"),
        sqlite_with_rowid=False,
    )
    op.execute(DRAWS)


def downgrade() -> None:
    op.execute("DROP VIEW draws")
    for name in ("piles", "hands", "deck", "moves", "swaps"):
        op.drop_table(name)
    for name in ("shuffles", "rounds", "seats", "tables"):
        op.drop_table(name)
    op.execute("UPDATE stream SET projected = 0")
