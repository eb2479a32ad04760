"""The event log: streams, events, checkpoints, and what is known of the house."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "stream",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("table_id", sa.LargeBinary(16), nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("projected", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stream"),
        sa.UniqueConstraint("table_id", name="uq_stream_table_id"),
    )
    op.create_index(
        "ix_stream_behind",
        "stream",
        ["id"],
        sqlite_where=sa.text("version > projected"),
        postgresql_where=sa.text("version > projected"),
    )
    op.create_table(
        "event",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("stream", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(32)),
        sa.Column("hidden", sa.LargeBinary()),
        sa.Column("command", sa.Text()),
        sa.Column("digest", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name="fk_event_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sa.UniqueConstraint("stream", "version", name="uq_event_stream_version"),
    )
    op.create_index(
        "ix_event_command",
        "event",
        ["stream", "command"],
        unique=True,
        sqlite_where=sa.text("command IS NOT NULL"),
        postgresql_where=sa.text("command IS NOT NULL"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("stream", NUMBER, nullable=False),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name="fk_checkpoint_stream"),
        sa.PrimaryKeyConstraint("stream", "size", name="pk_checkpoint"),
    )
    op.create_table(
        "house",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_house"),
    )
    # A fact is never changed or taken back, not by the service and not by hand.
    for wish in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER event_refuses_{wish.lower()} BEFORE {wish} ON event "
            f"BEGIN SELECT RAISE(ABORT, 'an event is never changed or deleted'); END"
        )


def downgrade() -> None:
    for name in ("house", "checkpoint", "event", "stream"):
        op.drop_table(name)
