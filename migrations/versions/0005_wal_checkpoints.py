"""No table changes. Programs of earlier schemas checkpoint SQLite's WAL without the write lock.

They refuse this schema when they start; one that runs beside this program could lose events
(`dealer/eventlog/sqlite/wal.py`).
"""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
