"""Tables with which nodes that share a log exchange presence and cosignatures."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("stream", sa.Column("cosigned", NUMBER, nullable=False, server_default="0"))
    op.create_table(
        "node",
        sa.Column("id", sa.LargeBinary(8), nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_node"),
    )
    op.create_table(
        "presence",
        sa.Column("table_id", sa.LargeBinary(16), nullable=False),
        sa.Column("node", sa.LargeBinary(8), nullable=False),
        sa.Column("seats", sa.Text(), nullable=False),
        sa.Column("watching", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "node", name="pk_presence"),
    )
    op.create_index("ix_presence_node", "presence", ["node"])


def downgrade() -> None:
    op.drop_table("presence")
    op.drop_table("node")
    op.drop_column("stream", "cosigned")
