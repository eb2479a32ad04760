"""Which network opened a table, as a keyed digest; and the newest open tables without a scan."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "opener",
        sa.Column("stream", KEY, nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_opener"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_tables_opened_at",
        "tables",
        ["opened_at"],
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_tables_opened_at", "tables")
    op.drop_table("opener")
