"""The order of the feed of other people's servers, and their webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "feed",
        sa.Column("seq", NUMBER, nullable=False, autoincrement=False),
        sa.Column("of_stream", KEY, nullable=False),
        sa.Column("first", NUMBER, nullable=False),
        sa.Column("last", NUMBER, nullable=False),
        sa.Column("key", NUMBER, nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_feed"),
    )
    op.create_index("ix_feed_of_stream_seq", "feed", ["of_stream", "seq"])
    op.create_index("ix_feed_key_seq", "feed", ["key", "seq"])
    op.create_table(
        "feed_state",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("seq", NUMBER, nullable=False),
        sa.Column("event", NUMBER, nullable=False),
        sa.Column("event_stream", NUMBER, nullable=False),
        sa.Column("event_version", NUMBER, nullable=False),
        sa.Column("scan", KEY, nullable=True),
        sa.Column("at", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_feed_state"),
    )
    op.execute(
        "INSERT INTO feed_state (id, seq, event, event_stream, event_version, at)"
        " VALUES (1, 0, 0, 0, 0, 0)"
    )
    op.create_table(
        "webhook",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("key", NUMBER, nullable=False),
        sa.Column("types", sa.Text(), nullable=False),
        sa.Column("signing", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("allow_private", sa.Integer(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("created_at", NUMBER, nullable=False),
        sa.Column("failing_since", NUMBER, nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("disabled_at", NUMBER, nullable=True),
        sa.Column("owner", sa.LargeBinary(8), nullable=True),
        sa.Column("lease", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
    )


def downgrade() -> None:
    op.drop_table("webhook")
    op.drop_table("feed_state")
    op.drop_table("feed")
