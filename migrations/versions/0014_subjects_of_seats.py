"""A service's own ids of its users, in the rows of the seats that they take."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("seat_subject", sa.Column("key", NUMBER, nullable=True))
    op.add_column("seat_subject", sa.Column("subject", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("seat_subject", "subject")
    op.drop_column("seat_subject", "key")
