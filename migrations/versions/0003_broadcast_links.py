"""The numbers of broadcast links that were not taken back."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = "broadcast_link"
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        NAME,
        sa.Column("table_id", sa.LargeBinary(16), nullable=False),
        sa.Column("owner", NUMBER, nullable=False, autoincrement=False),
        sa.Column("number", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("table_id", "owner", name=f"pk_{NAME}"),
    )


def downgrade() -> None:
    op.drop_table(NAME)
