"""The newest savepoint of each long table, from which it is loaded without reading all events."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "table_savepoint",
        sa.Column("stream", KEY, nullable=False, autoincrement=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("code", sa.LargeBinary(8), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_table_savepoint"),
    )


def downgrade() -> None:
    op.drop_table("table_savepoint")
