"""Events in their short form, and the view `events`, which has all of them in the canonical one.

No column changes, so nodes of the release before can keep writing to PostgreSQL. The trigger of
`event` lets an UPDATE shorten a row: it compares what the view makes of the new row with the old
row, so that the content of an event still cannot be changed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Code → type and members of the public part; see dealer/eventlog/short_form.py.
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
EVENT_KEPT = "an event is never changed or deleted"
ARCHIVED = "EXISTS (SELECT 1 FROM archived WHERE stream = OLD.stream)"

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
SQLITE_VIEW = f"""\
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
SAME = " AND ".join(
    f"NEW.{column} IS OLD.{column}"
    for column in ("id", "stream", "version", "schema", "at", "commitment")
)
SQLITE_TRIGGER = f"""\
CREATE TRIGGER event_refuses_update AFTER UPDATE ON event WHEN NOT (
    {SAME}
    AND (NEW.public IS NOT OLD.public OR NEW.command IS NOT OLD.command)
    AND (NEW.digest IS OLD.digest
         OR typeof(NEW.command) = 'blob' AND typeof(OLD.command) = 'text'
            AND length(OLD.digest) = 36 AND substr(OLD.digest, 33, 3) = x'000000'
            AND hex(NEW.digest) = hex(substr(OLD.digest, 1, 16)) || hex(substr(OLD.digest, 36)))
    AND EXISTS (SELECT 1 FROM events e WHERE e.id = NEW.id AND e.type = OLD.type
                AND e.public = OLD.public AND e.hidden IS OLD.hidden AND e.command IS OLD.command)
) BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END"""
SQLITE_TRIGGER_BEFORE = f"""\
CREATE TRIGGER event_refuses_update BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, '{EVENT_KEPT}'); END"""

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
POSTGRES_HIDDEN = (
    "(CASE WHEN {0}type = 'L' AND left({0}public, 1) = '[' THEN NULL ELSE {0}hidden END)"
)
POSTGRES_VIEW = f"""\
CREATE VIEW events AS
SELECT stream, version, event_type(type, public) AS type, schema, at,
       event_public(type, public, hidden) AS public, commitment,
       {POSTGRES_HIDDEN.format("")} AS hidden, event_command(command) AS command, digest
FROM event"""
# PostgreSQL deletes through such a view with its owner's rights; default privileges may grant that.
POSTGRES_READ_ONLY = """\
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
END $$"""
POSTGRES_KEPT = f"""\
CREATE OR REPLACE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ARCHIVED} THEN
            RETURN OLD;
        END IF;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF (NEW.stream, NEW.version, NEW.schema, NEW.at, NEW.commitment)
               IS NOT DISTINCT FROM (OLD.stream, OLD.version, OLD.schema, OLD.at, OLD.commitment)
           AND (NEW.public, NEW.command) IS DISTINCT FROM (OLD.public, OLD.command)
           AND event_type(NEW.type, NEW.public) = OLD.type
           AND event_public(NEW.type, NEW.public, NEW.hidden) = OLD.public
           AND {POSTGRES_HIDDEN.format("NEW.")} IS NOT DISTINCT FROM OLD.hidden
           AND event_command(NEW.command) IS NOT DISTINCT FROM OLD.command
           AND (NEW.digest IS NOT DISTINCT FROM OLD.digest
                OR NEW.command <> OLD.command AND length(OLD.digest) = 36
                   AND substr(OLD.digest, 33, 3) = '\\x000000'
                   AND NEW.digest = substr(OLD.digest, 1, 16) || substr(OLD.digest, 36))
        THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION '{EVENT_KEPT}' USING ERRCODE = 'integrity_constraint_violation';
END $$"""
POSTGRES_KEPT_BEFORE = f"""\
CREATE OR REPLACE FUNCTION event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {ARCHIVED} THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '{EVENT_KEPT}' USING ERRCODE = 'integrity_constraint_violation';
END $$"""

# See dealer/eventlog/event_form.py. No older program has an SQLite file open during a migration.
SQLITE_FORM = """\
INSERT INTO house (name, value)
SELECT 'event_form', CAST(CASE WHEN EXISTS (SELECT 1 FROM event) THEN 'mixed' ELSE 'short' END
                          AS BLOB)"""


def execute(*statements: str) -> None:
    # Not op.execute: `:` is no parameter here.
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        execute(POSTGRES_TYPE, POSTGRES_PUBLIC, POSTGRES_COMMAND)
        execute(POSTGRES_VIEW, POSTGRES_READ_ONLY, POSTGRES_KEPT)
    else:
        execute("DROP TRIGGER event_refuses_update", SQLITE_VIEW, SQLITE_TRIGGER, SQLITE_FORM)


def downgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    short = (
        "public LIKE '[%' OR command LIKE '~%'"
        if postgres
        else ("substr(public, 1, 1) = '[' OR typeof(command) = 'blob'")
    )
    if op.get_bind().execute(sa.text(f"SELECT 1 FROM event WHERE {short} LIMIT 1")).first():
        raise RuntimeError("Events are stored in their short form, which schema 0006 lacks.")
    execute("DELETE FROM house WHERE name = 'event_form'", "DROP VIEW events")
    if postgres:
        execute(
            POSTGRES_KEPT_BEFORE,
            "DROP FUNCTION event_type(text, text)",
            "DROP FUNCTION event_public(text, text, bytea)",
            "DROP FUNCTION event_command(text)",
        )
    else:
        execute("DROP TRIGGER event_refuses_update", SQLITE_TRIGGER_BEFORE)
