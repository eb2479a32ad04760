"""Keys of other people's servers, and the tables that they opened."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "service_key",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("rights", sa.Text(), nullable=False),
        sa.Column("created_at", NUMBER, nullable=False),
        sa.Column("revoked_at", NUMBER, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_service_key"),
        sa.UniqueConstraint("name", name="uq_service_key_name"),
        sa.UniqueConstraint("digest", name="uq_service_key_digest"),
    )
    op.create_table(
        "service_table",
        sa.Column("table_id", sa.LargeBinary(16), nullable=False),
        sa.Column("key", NUMBER, nullable=False),
        sa.Column("ref", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("table_id", name="pk_service_table"),
        sa.UniqueConstraint("key", "ref", name="uq_service_table_key_ref"),
    )
    op.create_index("ix_service_table_key_table_id", "service_table", ["key", "table_id"])


def downgrade() -> None:
    op.drop_table("service_table")
    op.drop_table("service_key")
