"""Updates of `stream` on PostgreSQL change no indexed column, so that they are HOT.

The column `behind` replaces the comparison of version and projected in the partial index: it is
true of each stream that may be behind, and a trigger sets it, whichever program writes the row.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_FUNCTION = """\
CREATE FUNCTION stream_is_behind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stream SET behind = true WHERE id = NEW.id;
    RETURN NULL;
END $$"""

_TRIGGER = """\
CREATE TRIGGER stream_marks_behind AFTER UPDATE ON stream FOR EACH ROW
WHEN (NEW.version > NEW.projected AND NOT NEW.behind) EXECUTE FUNCTION stream_is_behind()"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    # A constant default rewrites no row; the few streams that are behind have an index.
    op.add_column(
        "stream", sa.Column("behind", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.execute("UPDATE stream SET behind = true WHERE version > projected")
    op.alter_column("stream", "behind", server_default=sa.true())
    op.drop_index("ix_stream_behind", "stream")
    op.create_index("ix_stream_behind", "stream", ["id"], postgresql_where=sa.text("behind"))
    op.execute(_FUNCTION)
    op.execute(_TRIGGER)
    # Room in each page for the next versions of its rows; existing pages get it as they are used.
    op.execute("ALTER TABLE stream SET (fillfactor = 50)")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute("ALTER TABLE stream RESET (fillfactor)")
    op.execute("DROP TRIGGER stream_marks_behind ON stream")
    op.execute("DROP FUNCTION stream_is_behind()")
    op.drop_index("ix_stream_behind", "stream")
    op.drop_column("stream", "behind")
    op.create_index(
        "ix_stream_behind", "stream", ["id"], postgresql_where=sa.text("version > projected")
    )
