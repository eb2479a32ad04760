"""Which seat another server's user, or a ticket, was given."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "seat_subject",
        sa.Column("stream", KEY, nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("seat", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("request", sa.LargeBinary(32), nullable=True),
        sa.PrimaryKeyConstraint("stream", "digest", name="pk_seat_subject"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("seat_subject")
