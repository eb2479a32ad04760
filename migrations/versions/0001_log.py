"""The event log: streams, events, checkpoints, and what is known of the house."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


_KEPT = """\
CREATE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an event is never changed or deleted'
    USING ERRCODE = 'integrity_constraint_violation';
END $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _upgrade_postgres()
    else:
        _upgrade_sqlite()
    op.create_table(
        "house",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_house"),
    )


def _upgrade_sqlite() -> None:
    op.create_table(
        "stream",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("table_id", sa.LargeBinary(16), nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("projected", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stream"),
        sa.UniqueConstraint("table_id", name="uq_stream_table_id"),
    )
    op.create_index(
        "ix_stream_behind",
        "stream",
        ["id"],
        sqlite_where=sa.text("version > projected"),
    )
    op.create_table(
        "event",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("stream", NUMBER, nullable=False),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("commitment", sa.LargeBinary(32)),
        sa.Column("hidden", sa.LargeBinary()),
        sa.Column("command", sa.Text()),
        sa.Column("digest", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name="fk_event_stream"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sa.UniqueConstraint("stream", "version", name="uq_event_stream_version"),
    )
    op.create_index(
        "ix_event_command",
        "event",
        ["stream", "command"],
        unique=True,
        sqlite_where=sa.text("command IS NOT NULL"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("stream", NUMBER, nullable=False),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name="fk_checkpoint_stream"),
        sa.PrimaryKeyConstraint("stream", "size", name="pk_checkpoint"),
    )
    # A fact is never changed or taken back, not by the service and not by hand.
    for statement in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER event_refuses_{statement.lower()} BEFORE {statement} ON event "
            f"BEGIN SELECT RAISE(ABORT, 'an event is never changed or deleted'); END"
        )


def _upgrade_postgres() -> None:
    op.create_table(
        "stream",
        sa.Column("id", sa.LargeBinary(), nullable=False),
        sa.Column("table_id", sa.LargeBinary(), sa.Computed("id", persisted=True)),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("projected", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stream"),
    )
    op.create_index(
        "ix_stream_behind", "stream", ["id"], postgresql_where=sa.text("version > projected")
    )
    op.create_table(
        "event",
        sa.Column("stream", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("commitment", sa.LargeBinary()),
        sa.Column("hidden", sa.LargeBinary()),
        sa.Column("command", sa.Text()),
        sa.Column("digest", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("stream", "version", name="pk_event"),
    )
    op.create_index(
        "ix_event_command",
        "event",
        ["stream", "command"],
        unique=True,
        postgresql_where=sa.text("command IS NOT NULL"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("stream", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "size", name="pk_checkpoint"),
    )
    op.execute(_KEPT)
    op.execute(
        "CREATE TRIGGER event_refuses_change BEFORE UPDATE OR DELETE ON event "
        "FOR EACH ROW EXECUTE FUNCTION event_is_kept()"
    )
    op.execute(
        "CREATE TRIGGER event_refuses_truncate BEFORE TRUNCATE ON event "
        "FOR EACH STATEMENT EXECUTE FUNCTION event_is_kept()"
    )


def downgrade() -> None:
    for name in ("house", "checkpoint", "event", "stream"):
        op.drop_table(name)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION event_is_kept()")
