"""What operators do to a house: their journal, what they disabled, which tables were archived."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.LargeBinary().with_variant(sa.Integer(), "sqlite")

# An event can go once its table is archived, and a table is archived once and only when closed.
ARCHIVED = "EXISTS (SELECT 1 FROM archived WHERE stream = OLD.stream)"
CLOSED = """\
EXISTS (SELECT 1 FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
 WHERE s.id = NEW.stream AND s.version = NEW.size AND e.type = 'TableClosed')"""
EVENT_KEPT = "an event is never changed or deleted"
ROW_KEPT = "this row is never changed or deleted"
NOT_CLOSED = "only a closed table is archived, and whole"

EVENT_IS_KEPT = f"""\
CREATE OR REPLACE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ARCHIVED} THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '{EVENT_KEPT}' USING ERRCODE = 'integrity_constraint_violation';
END $$"""
EVENT_IS_KEPT_ALWAYS = f"""\
CREATE OR REPLACE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{EVENT_KEPT}' USING ERRCODE = 'integrity_constraint_violation';
END $$"""
ROW_IS_KEPT = f"""\
CREATE FUNCTION row_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{ROW_KEPT}' USING ERRCODE = 'integrity_constraint_violation';
END $$"""
ARCHIVED_IS_CLOSED = f"""\
CREATE FUNCTION archived_is_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT {CLOSED} THEN
        RAISE EXCEPTION '{NOT_CLOSED}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$"""
KEPT = ("journal", "archived")


def upgrade() -> None:
    op.create_table(
        "journal",
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("id", sa.LargeBinary(8), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("at", "id", name="pk_journal"),
    )
    op.create_table(
        "disabled",
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("target", name="pk_disabled"),
    )
    op.create_table(
        "archived",
        sa.Column("stream", KEY, nullable=False, autoincrement=False),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("house_key", sa.LargeBinary(32), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("length", NUMBER, nullable=False),
        sa.Column("sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("closed_at", NUMBER, nullable=False),
        sa.Column("at", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_archived"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgres()
    else:
        _guard_sqlite()


def _guard_sqlite() -> None:
    op.execute("DROP TRIGGER event_refuses_delete")
    op.execute(
        f"CREATE TRIGGER event_refuses_delete BEFORE DELETE ON event WHEN NOT {ARCHIVED} "
        f"BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END"
    )
    op.execute(
        f"CREATE TRIGGER archived_is_closed BEFORE INSERT ON archived WHEN NOT {CLOSED} "
        f"BEGIN SELECT RAISE(ABORT, '{NOT_CLOSED}'); END"
    )
    for table in KEPT:
        for statement in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_refuses_{statement.lower()} BEFORE {statement} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{ROW_KEPT}'); END"
            )


def _guard_postgres() -> None:
    for function in (EVENT_IS_KEPT, ROW_IS_KEPT, ARCHIVED_IS_CLOSED):
        op.execute(function)
    op.execute(
        "CREATE TRIGGER archived_is_closed BEFORE INSERT ON archived "
        "FOR EACH ROW EXECUTE FUNCTION archived_is_closed()"
    )
    for table in KEPT:
        op.execute(
            f"CREATE TRIGGER {table}_refuses_change BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION row_is_kept()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_refuses_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION row_is_kept()"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(EVENT_IS_KEPT_ALWAYS)
    else:
        op.execute("DROP TRIGGER event_refuses_delete")
        op.execute(
            "CREATE TRIGGER event_refuses_delete BEFORE DELETE ON event "
            f"BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END"
        )
    for table in ("archived", "disabled", "journal"):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION archived_is_closed()")
        op.execute("DROP FUNCTION row_is_kept()")
