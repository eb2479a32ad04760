"""The first schema: the log, what the server keeps beside it, the read models, guards and views."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text()
INTEGER = sa.Integer()
BYTES = sa.LargeBinary()
# SQLite makes a column the row's own number only if it is called INTEGER.
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# On SQLite the short number of a table's stream, on PostgreSQL the table's id itself.
KEY = sa.LargeBinary(16).with_variant(sa.Integer(), "sqlite")
ZERO = sa.text("0")
LASTING = (
    "type = 'TableOpened' OR type = 'SeatTaken' OR type = 'SeatLeft' OR type = 'SeatVacated'"
    " OR type = 'HostTransferred'"
)


class Optional(NamedTuple):
    kind: Any


def create(table: str, /, *key: str, more: Any = (), rowid: bool = True, **columns: Any) -> None:
    """Create a table with this primary key; a column that is not `Optional` is NOT NULL."""
    made = [
        sa.Column(name, kind.kind)
        if isinstance(kind, Optional)
        else sa.Column(name, kind, nullable=False, autoincrement=False)
        for name, kind in columns.items()
    ]
    primary = sa.PrimaryKeyConstraint(*key, name=f"pk_{table}")
    op.create_table(table, *made, *more, primary, sqlite_with_rowid=rowid)


def unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def index(name: str, table: str, *columns: str, where: str | None = None, **options: Any) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(
        name, table, columns, sqlite_where=condition, postgresql_where=condition, **options
    )


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    if postgres:
        create_log_on_postgres()
    else:
        create_log_on_sqlite()
    create_operations()
    create_services()
    create_models(postgres)
    steps = POSTGRES_STEPS if postgres else ()
    guards, views = (POSTGRES_GUARDS, POSTGRES_VIEWS) if postgres else (SQLITE_GUARDS, SQLITE_VIEWS)
    for statement in (*guards, *steps, *views):
        op.get_bind().exec_driver_sql(statement)  # not op.execute: `:` is no parameter here


def downgrade() -> None:
    raise CommandError("This is the first schema: restore a backup, or name another database.")


CONTENT = {
    "type": TEXT,
    "schema": INTEGER,
    "at": NUMBER,
    "public": TEXT,
    "commitment": Optional(sa.LargeBinary(32)),
    "hidden": Optional(BYTES),
    "command": Optional(TEXT),
    "digest": Optional(BYTES),
}


def create_log_on_sqlite() -> None:
    def references(table: str) -> sa.ForeignKeyConstraint:
        return sa.ForeignKeyConstraint(["stream"], ["stream.id"], name=f"fk_{table}_stream")

    create(
        "stream", "id",
        id=NUMBER, table_id=sa.LargeBinary(16), version=NUMBER, projected=NUMBER,
        more=(sa.Column("cosigned", NUMBER, nullable=False, server_default=ZERO),
              unique("stream", "table_id")),
    )  # fmt: skip
    index("ix_stream_behind", "stream", "id", where="version > projected")
    # The row's own number, so that an event is written at the end of the table.
    create(
        "event", "id", id=NUMBER, stream=NUMBER, version=NUMBER, **CONTENT,
        more=(references("event"), unique("event", "stream", "version")),
    )  # fmt: skip
    create_log_beside_events(references("checkpoint"))


def create_log_on_postgres() -> None:
    create(
        "stream", "id", id=KEY, version=NUMBER, projected=NUMBER,
        more=(sa.Column("table_id", BYTES, sa.Computed("id", persisted=True)),
              sa.Column("cosigned", NUMBER, nullable=False, server_default=ZERO),
              sa.Column("behind", sa.Boolean(), nullable=False, server_default=sa.true())),
    )  # fmt: skip
    # Room in each page for the next versions of its rows, so that updates are HOT.
    op.execute("ALTER TABLE stream SET (fillfactor = 50)")
    index("ix_stream_behind", "stream", "id", where="behind")
    create("event", "stream", "version", stream=KEY, version=NUMBER, **CONTENT)
    create_log_beside_events()


def create_log_beside_events(*more: Any) -> None:
    index(
        "ix_event_command", "event", "stream", "command",
        where="command IS NOT NULL", unique=True,
    )  # fmt: skip
    index("ix_event_lasting", "event", "stream", "version", where=LASTING)
    create("checkpoint", "stream", "size", stream=KEY, size=NUMBER, note=TEXT, more=more)
    create("house", "name", name=TEXT, value=BYTES)


def create_operations() -> None:
    create(
        "journal", "at", "id",
        at=NUMBER, id=sa.LargeBinary(8), who=TEXT, what=TEXT, target=TEXT, why=TEXT, details=TEXT,
    )  # fmt: skip
    create("disabled", "target", target=TEXT, at=NUMBER, why=TEXT)
    create(
        "archived", "stream",
        stream=KEY, size=NUMBER, root=sa.LargeBinary(32), house_key=sa.LargeBinary(32), file=TEXT,
        length=NUMBER, sha256=sa.LargeBinary(32), closed_at=NUMBER, at=NUMBER,
    )  # fmt: skip
    create("opener", "stream", stream=KEY, digest=sa.LargeBinary(16), rowid=False)
    create("node", "id", id=sa.LargeBinary(8), at=NUMBER)
    create(
        "presence", "table_id", "node",
        table_id=sa.LargeBinary(16), node=sa.LargeBinary(8), seats=TEXT, watching=INTEGER,
    )  # fmt: skip
    index("ix_presence_node", "presence", "node")
    create(
        "table_savepoint", "stream",
        stream=KEY, version=NUMBER, format=INTEGER, code=sa.LargeBinary(8), sealed=BYTES,
    )  # fmt: skip


def create_services() -> None:
    identity = sa.Column("id", NUMBER, nullable=False)
    create(
        "service_key", "id",
        name=TEXT, digest=sa.LargeBinary(32), rights=TEXT, created_at=NUMBER,
        revoked_at=Optional(NUMBER),
        more=(identity, unique("service_key", "name"), unique("service_key", "digest")),
    )  # fmt: skip
    create(
        "service_table", "table_id",
        table_id=sa.LargeBinary(16), key=NUMBER, ref=Optional(TEXT),
        more=(unique("service_table", "key", "ref"),),
    )  # fmt: skip
    index("ix_service_table_key_table_id", "service_table", "key", "table_id")
    create(
        "seat_subject", "stream", "digest",
        stream=KEY, digest=sa.LargeBinary(32), seat=NUMBER, version=NUMBER,
        request=Optional(sa.LargeBinary(32)), key=Optional(NUMBER), subject=Optional(TEXT),
        rowid=False,
    )  # fmt: skip
    create(
        "feed", "seq", seq=NUMBER, of_stream=KEY, first=NUMBER, last=NUMBER, key=Optional(NUMBER)
    )
    index("ix_feed_of_stream_seq", "feed", "of_stream", "seq")
    index("ix_feed_key_seq", "feed", "key", "seq")
    create(
        "feed_state", "id",
        id=INTEGER, seq=NUMBER, event=NUMBER, event_stream=NUMBER, event_version=NUMBER,
        scan=Optional(KEY), at=NUMBER,
    )  # fmt: skip
    op.execute(
        "INSERT INTO feed_state (id, seq, event, event_stream, event_version, at)"
        " VALUES (1, 0, 0, 0, 0, 0)"
    )
    create(
        "webhook", "id",
        url=TEXT, key=NUMBER, types=TEXT, signing=TEXT, secret=BYTES, allow_private=INTEGER,
        position=TEXT, created_at=NUMBER, failing_since=Optional(NUMBER), problem=TEXT,
        disabled_at=Optional(NUMBER), owner=Optional(sa.LargeBinary(8)), lease=NUMBER,
        more=(sa.Column("id", NUMBER, nullable=False),),
    )  # fmt: skip


def create_models(postgres: bool) -> None:
    """The read models; dealer/projector/models.py says what they mean."""

    def model(table: str, /, *key: str, more: Any = (), **columns: Any) -> None:
        create(table, "stream", *key, rowid=False, more=more, stream=KEY, **columns)

    # Unique over all tables is what no shard can promise alone.
    model(
        "tables",
        table_id=TEXT, name=Optional(TEXT), origin=TEXT, house_key=TEXT, rules=TEXT,
        opened_at=NUMBER, closed_at=Optional(NUMBER), rounds=INTEGER, events=NUMBER,
        more=() if postgres else (unique("tables", "table_id"),),
    )  # fmt: skip
    if postgres:
        index("ix_tables_table_id", "tables", "table_id")
    index("ix_tables_opened_at", "tables", "opened_at", where="closed_at IS NULL")
    model(
        "seats", "seat", "since",
        seat=INTEGER, since=INTEGER, since_at=NUMBER, player=TEXT, key=Optional(TEXT),
        until=Optional(NUMBER), until_at=Optional(NUMBER),
    )  # fmt: skip
    model(
        "rounds", "round",
        round=INTEGER, since=NUMBER, since_at=NUMBER, cards=INTEGER, entropy=TEXT, commitment=TEXT,
        until=Optional(NUMBER), until_at=Optional(NUMBER), secret=Optional(TEXT),
    )  # fmt: skip
    model(
        "shuffles", "round", "k",
        round=INTEGER, k=INTEGER, stack=TEXT, n=INTEGER, algorithm=TEXT, steps=INTEGER,
        started=NUMBER, started_at=NUMBER, gathered=Optional(NUMBER), committed=Optional(INTEGER),
        revealed=Optional(INTEGER), outcome=TEXT, ended=Optional(NUMBER),
        ended_at=Optional(NUMBER), first_slot=Optional(INTEGER),
    )  # fmt: skip
    model(
        "swaps", "round", "k", "step",
        round=INTEGER, k=INTEGER, step=INTEGER, version=NUMBER, i=INTEGER, j=INTEGER, card_i=TEXT,
        card_j=TEXT,
    )  # fmt: skip
    model(
        "moves", "version",
        version=INTEGER, at=NUMBER, round=INTEGER, event=TEXT, source=TEXT, source_place=INTEGER,
        target=TEXT, target_place=INTEGER, slot=Optional(INTEGER), card=Optional(TEXT),
        shown=INTEGER,
    )  # fmt: skip
    lies = {"place": INTEGER, "slot": Optional(INTEGER), "card": Optional(TEXT)}
    model("deck", "round", "place", round=INTEGER, **lies)
    model("hands", "round", "seat", "place", round=INTEGER, seat=INTEGER, **lies)
    model("piles", "round", "pile", "place", round=INTEGER, pile=TEXT, **lies)


# An event can go once its table is archived, and a table is archived once and only when closed.
ARCHIVED = "EXISTS (SELECT 1 FROM archived WHERE stream = OLD.stream)"
CLOSED = """\
EXISTS (SELECT 1 FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
 WHERE s.id = NEW.stream AND s.version = NEW.size AND e.type = 'TableClosed')"""
# Its bundle may be written again, with tombstones; of the same log.
ARCHIVED_KEPT = " OF stream, size, root, house_key, file, closed_at, at"
EVENT_KEPT = "an event is never changed or deleted"
ROW_KEPT = "this row is never changed or deleted"
NOT_CLOSED = "only a closed table is archived, and whole"

SQLITE_GUARDS = (
    "CREATE TRIGGER event_refuses_update BEFORE UPDATE ON event "
    f"BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END",
    f"CREATE TRIGGER event_refuses_delete BEFORE DELETE ON event WHEN NOT {ARCHIVED} "
    f"BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END",
    f"CREATE TRIGGER archived_is_closed BEFORE INSERT ON archived WHEN NOT {CLOSED} "
    f"BEGIN SELECT RAISE(ABORT, '{NOT_CLOSED}'); END",
    *(
        f"CREATE TRIGGER {table}_refuses_{statement.lower()} BEFORE {statement}{of} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{ROW_KEPT}'); END"
        for table, statement, of in (
            ("journal", "UPDATE", ""),
            ("journal", "DELETE", ""),
            ("archived", "UPDATE", ARCHIVED_KEPT),
            ("archived", "DELETE", ""),
        )
    ),
)

RAISE = "RAISE EXCEPTION '{}' USING ERRCODE = 'integrity_constraint_violation';"
POSTGRES_GUARDS = (
    f"""\
CREATE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ARCHIVED} THEN
            RETURN OLD;
        END IF;
    END IF;
    {RAISE.format(EVENT_KEPT)}
END $$""",
    f"""\
CREATE FUNCTION row_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {RAISE.format(ROW_KEPT)}
END $$""",
    f"""\
CREATE FUNCTION archived_is_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT {CLOSED} THEN
        {RAISE.format(NOT_CLOSED)}
    END IF;
    RETURN NEW;
END $$""",
    "CREATE TRIGGER archived_is_closed BEFORE INSERT ON archived "
    "FOR EACH ROW EXECUTE FUNCTION archived_is_closed()",
    # `behind` is true of each stream that may be behind, whichever program writes the row.
    """\
CREATE FUNCTION stream_is_behind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stream SET behind = true WHERE id = NEW.id;
    RETURN NULL;
END $$""",
    "CREATE TRIGGER stream_marks_behind AFTER UPDATE ON stream FOR EACH ROW "
    "WHEN (NEW.version > NEW.projected AND NOT NEW.behind) EXECUTE FUNCTION stream_is_behind()",
    *(
        f"CREATE TRIGGER {table}_refuses_{name} BEFORE {statements} ON {table} "
        f"FOR EACH {each} EXECUTE FUNCTION {function}()"
        for table, function, of in (
            ("event", "event_is_kept", ""),
            ("journal", "row_is_kept", ""),
            ("archived", "row_is_kept", ARCHIVED_KEPT),
        )
        for name, statements, each in (
            ("change", f"UPDATE{of} OR DELETE", "ROW"),
            ("truncate", "TRUNCATE", "STATEMENT"),
        )
    ),
)

# Statements on one table after the other, for a log whose tables are in shards: there a statement
# that changes rows of several tables is a distributed transaction, or refused. No loop waits for a
# lock. Their parameters are columns.
POSTGRES_STEPS = (
    # Moves the heads that are at the expected versions, and returns their tables; adds the events
    # and checkpoints of these. Few events are added singly, which a shard plans once.
    """\
CREATE FUNCTION append_events(
    tables bytea[], expected bigint[], ends bigint[],
    streams bytea[], versions bigint[], types text[], schemas integer[], ats bigint[],
    publics text[], commitments bytea[], hiddens bytea[], commands text[], digests bytea[],
    noted bytea[], sizes bigint[], notes text[]
) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE
    t bytea;
    low bigint;
    high bigint;
    e record;
    taken bytea[] := '{}';
BEGIN
    FOR t, low, high IN SELECT * FROM unnest(tables, expected, ends) ORDER BY 1 LOOP
        IF low = 0 THEN
            INSERT INTO stream (id, version, projected) VALUES (t, high, 0) ON CONFLICT DO NOTHING;
        ELSE
            UPDATE stream SET version = high WHERE id = t AND version = low;
        END IF;
        IF FOUND THEN
            taken := taken || t;
            RETURN NEXT t;
        END IF;
    END LOOP;
    IF cardinality(streams) <= 16 THEN
        FOR e IN SELECT * FROM unnest(streams, versions, types, schemas, ats, publics, commitments,
                hiddens, commands, digests)
                AS r (stream, version, type, schema, at, public, commitment, hidden, command,
                    digest)
            WHERE r.stream = ANY (taken)
        LOOP
            INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden,
                command, digest)
            VALUES (e.stream, e.version, e.type, e.schema, e.at, e.public, e.commitment, e.hidden,
                e.command, e.digest);
        END LOOP;
    ELSE
        INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden, command,
            digest)
        SELECT * FROM unnest(streams, versions, types, schemas, ats, publics, commitments, hiddens,
            commands, digests)
            AS r (stream, version, type, schema, at, public, commitment, hidden, command, digest)
        WHERE r.stream = ANY (taken);
    END IF;
    FOR e IN SELECT * FROM unnest(noted, sizes, notes) AS r (stream, size, note)
        WHERE r.stream = ANY (taken)
    LOOP
        INSERT INTO checkpoint (stream, size, note) VALUES (e.stream, e.size, e.note);
    END LOOP;
END $$""",
    # Advances the streams that are projected up to the given versions, and returns them.
    """\
CREATE FUNCTION advance_streams(reached bigint[], streams bytea[], before bigint[])
RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE
    t bytea;
    low bigint;
    high bigint;
BEGIN
    FOR t, low, high IN SELECT * FROM unnest(streams, before, reached) LOOP
        PERFORM 1 FROM stream WHERE id = t AND projected = low FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE stream SET projected = high WHERE id = t AND projected = low;
            RETURN NEXT t;
        END IF;
    END LOOP;
END $$""",
    # Takes the mark from streams that are projected up to their end.
    """\
CREATE FUNCTION unmark_streams(streams bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t bytea;
BEGIN
    FOREACH t IN ARRAY streams LOOP
        PERFORM 1 FROM stream WHERE id = t FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE stream SET behind = false WHERE id = t AND version = projected;
        END IF;
    END LOOP;
END $$""",
)

# Code → type and members of the public part; see dealer/eventlog/stored_form.py.
KINDS = {
    "S": ("CardsSwapped", ("i", "k", "round", "step")),
    "D": ("CardDrawn", ("from", "round", "seat", "slot")),
    "L": ("DeckSealed", ("first", "k", "round")),
    "M": ("CardMoved", ("from", "place", "round", "slot", "to")),
    "P": ("CardPeeked", ("round", "seat", "slot")),
    "F": ("CardShown", ("card", "round", "salt", "slot")),
    "E": ("EntropyClosed", ("k", "round")),
    "C": ("EntropyCommitted", ("digest", "k", "round", "seat")),
    "R": ("EntropyRevealed", ("k", "nonce", "round", "seat")),
    "B": ("ShuffleStarted", ("algorithm", "k", "n", "round", "stack", "steps")),
}
TYPE = " ".join(f"WHEN '{code}' THEN '{name}'" for code, (name, _) in KINDS.items())


def publics(value: str, slots: str) -> str:
    """The branches of a CASE over the type; `value` formats the text of a value by its place."""
    branches = []
    for code, (_, members) in KINDS.items():
        parts = [
            f"'{',' if place else '{'}\"{member}\":' || " + value.format(place)
            for place, member in enumerate(members)
        ]
        if code == "L":
            parts.append(f"',\"slots\":[' || {slots} || ']'")
        branches.append(f"WHEN '{code}' THEN {' || '.join(parts)} || '}}'")
    return " ".join(branches)


SQLITE_SLOTS = """\
(WITH RECURSIVE slot(n) AS (
    SELECT 0 UNION ALL SELECT n + 1 FROM slot WHERE n + 1 < length(hidden) / 32
 ) SELECT group_concat('"' || lower(hex(substr(hidden, 32 * n + 1, 32))) || '"', ',') FROM slot)"""
SQLITE_UUID = " || '-' || ".join(
    f"lower(hex(substr(command, {first}, {count})))"
    for first, count in ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6))
)
SQLITE_EVENTS = f"""\
CREATE VIEW events AS
SELECT id, stream, version,
       CASE WHEN substr(public, 1, 1) = '[' THEN CASE type {TYPE} ELSE type END
            ELSE type END AS type,
       schema, at,
       CASE WHEN substr(public, 1, 1) = '[' THEN CASE type
            {publics("json_quote(json_extract(public, '$[{}]'))", SQLITE_SLOTS)}
            ELSE public END ELSE public END AS public,
       commitment,
       CASE WHEN type = 'L' AND substr(public, 1, 1) = '[' THEN NULL ELSE hidden END AS hidden,
       CASE typeof(command) WHEN 'blob'
            THEN CASE WHEN substr(command, 17, 1) = x'2f' THEN CAST(substr(command, 18) AS TEXT)
                      ELSE 'seat:' || CAST(substr(command, 17) AS TEXT) END
                 || '/' || {SQLITE_UUID}
            ELSE command END AS command,
       digest
FROM event"""

POSTGRES_TYPE = f"""\
CREATE FUNCTION event_type(type text, public text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN left(public, 1) = '[' THEN CASE type {TYPE} ELSE type END ELSE type END
$$"""
POSTGRES_SLOTS = """\
(SELECT string_agg('"' || encode(substr(hidden, 32 * n + 1, 32), 'hex') || '"', ',' ORDER BY n)
 FROM generate_series(0, length(hidden) / 32 - 1) AS n)"""
POSTGRES_PUBLIC = f"""\
CREATE FUNCTION event_public(type text, public text, hidden bytea) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN left(public, 1) = '[' THEN CASE type
        {publics("CAST(CAST(public AS json) -> {} AS text)", POSTGRES_SLOTS)}
        ELSE public END ELSE public END
$$"""
# A UUID of 16 bytes is 22 characters of base64 without padding.
POSTGRES_COMMAND = r"""
CREATE FUNCTION event_command(command text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN command ~ '^~[A-Za-z0-9+/]{22}'
        THEN CASE WHEN substr(command, 24, 1) = '/' THEN substr(command, 25)
                  ELSE 'seat:' || substr(command, 24) END || '/'
             || CAST(CAST(encode(decode(substr(command, 2, 22) || '==', 'base64'), 'hex') AS uuid)
                     AS text)
        ELSE command END
$$"""
POSTGRES_EVENTS = """\
CREATE VIEW events AS
SELECT stream, version, event_type(type, public) AS type, schema, at,
       event_public(type, public, hidden) AS public, commitment,
       CASE WHEN type = 'L' AND left(public, 1) = '[' THEN NULL ELSE hidden END AS hidden,
       event_command(command) AS command, digest
FROM event"""

# Who drew what when.
DRAWS = """\
CREATE VIEW draws AS
SELECT t.table_id, m.stream, m.version, m.at, m.round,
       CAST(substr(m.target, 6) AS INTEGER) AS seat,
       (SELECT s.player FROM seats s
        WHERE s.stream = m.stream AND s.seat = CAST(substr(m.target, 6) AS INTEGER)
          AND s.since < m.version
        ORDER BY s.since DESC LIMIT 1) AS player,
       m.source, m.source_place AS place, m.slot, m.card
FROM moves m JOIN tables t ON t.stream = m.stream
WHERE m.event = 'CardDrawn'"""


# The hand that a move changes: `-` where the card was, `+` where it lies now.
HAND = "(CASE c.change WHEN '-' THEN m.source ELSE m.target END)"
SEAT = f"CAST(substr({HAND}, 6) AS INTEGER)"


def readable(*, time: str, id_: str, seat: str) -> tuple[str, str, str]:
    """The views for people: no bytes, no codes, times as text in UTC, `table_id` in each.

    The arguments format a time in milliseconds, a table's id, and the seat that a public part
    names.
    """

    def player(row: str, seat: str) -> str:
        return (
            f"(SELECT x.player FROM seats x WHERE x.stream = {row}.stream AND x.seat = {seat}"
            f" AND x.since <= {row}.version ORDER BY x.since DESC LIMIT 1)"
        )

    return (
        f"""\
CREATE VIEW log AS
SELECT {id_} AS table_id, t.name, e.version, {time.format("e.at")} AS time, e.type,
       {player("e", seat)} AS who, e.public,
       w.i AS place, w.j AS other_place, w.card_i AS card, w.card_j AS other_card
FROM events e JOIN stream s ON s.id = e.stream
LEFT JOIN tables t ON t.stream = e.stream
LEFT JOIN swaps w ON w.stream = e.stream AND e.type = 'CardsSwapped'
     AND w.round = {seat.replace("seat", "round")} AND w.k = {seat.replace("seat", "k")}
     AND w.step = {seat.replace("seat", "step")}""",
        f"""\
CREATE VIEW shuffle_swaps AS
SELECT t.table_id, w.round, w.k AS shuffle, w.step, w.i AS place, w.j AS other_place,
       w.card_i AS card, w.card_j AS other_card, {time.format("e.at")} AS time
FROM swaps w JOIN tables t ON t.stream = w.stream
LEFT JOIN event e ON e.stream = w.stream AND e.version = w.version""",
        # CROSS JOIN, so that SQLite reads the moves in their order.
        f"""\
CREATE VIEW hand_changes AS
SELECT t.table_id, m.version, {time.format("m.at")} AS time, {player("m", SEAT)} AS player,
       {SEAT} AS seat, c.change, m.card, m.source AS "from", m.target AS "to", m.round
FROM moves m CROSS JOIN (SELECT '-' AS change UNION ALL SELECT '+') c
JOIN tables t ON t.stream = m.stream
WHERE m.event IN ('CardDrawn', 'CardMoved') AND {HAND} LIKE 'hand:%'""",
    )


SQLITE_VIEWS = (
    SQLITE_EVENTS,
    DRAWS,
    *readable(
        time="strftime('%Y-%m-%d %H:%M:%f', {} / 1000.0, 'unixepoch')",
        id_="lower(hex(s.table_id))",
        seat="json_extract(e.public, '$.seat')",
    ),
)
POSTGRES_VIEWS = (
    POSTGRES_TYPE,
    POSTGRES_PUBLIC,
    POSTGRES_COMMAND,
    POSTGRES_EVENTS,
    DRAWS,
    *readable(
        time="to_char(to_timestamp({} / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')",
        id_="encode(s.id, 'hex')",
        seat="CAST(CAST(e.public AS json) ->> 'seat' AS integer)",
    ),
    # PostgreSQL writes through such a view with its owner's rights, which default privileges may
    # have given to others.
    """\
DO $$
DECLARE role name;
BEGIN
    FOR role IN
        SELECT DISTINCT r.rolname FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        JOIN pg_roles r ON r.oid = a.grantee
        WHERE c.oid = CAST('events' AS regclass) AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON events FROM %I', role);
    END LOOP;
END $$""",
)
