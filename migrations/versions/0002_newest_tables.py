"""An index for the newest tables, closed ones too, which `dealer tables` lists."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NAME = "ix_tables_opened_at_stream"


def upgrade() -> None:
    op.create_index(NAME, "tables", ["opened_at", "stream"])


def downgrade() -> None:
    op.drop_index(NAME, "tables")
