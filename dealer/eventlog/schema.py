"""SQL schema of the log: tables, columns and their meaning.

A game table is a *stream*; its events have versions 1, 2, 3 … with no gap. Every key begins with
the stream, so nothing orders one table after another and the schema shards as it is. On SQLite a
short integer replaces the table's 16-byte id, and an event is an ordinary rowid row: both keep the
rows and their index narrow, which determines the speed of an append.

On PostgreSQL `stream.id` is the table's id itself, and so is every column called `stream`: the rows
of one table are stored together, in one shard if there are several, and the first 48 bits of the
id are its creation time.

`metadata` is what SQLite has, `postgres` what PostgreSQL has: the same names, so that one SQL does
for both. The read models add their tables, and one history of migrations creates them all.

Alembic takes a third of a second to import, so it is imported only to migrate. The revision of a
database is one row; the revisions of this program are the names of its migration files,
`<revision>_<name>.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import SchemaItem

from dealer.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dealer.game.events import LASTING_TYPES

if TYPE_CHECKING:
    from alembic.config import Config

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=_NAMES)
postgres = MetaData(naming_convention=_NAMES)

# SQLite makes a column the row's own number only if it is called INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")
Key = LargeBinary(16).with_variant(Integer(), "sqlite")
"""The type of `stream` columns: a short number on SQLite, the table's id on PostgreSQL."""


def define_table(name: str, *columns: SchemaItem, **options: Any) -> Table:
    """Declare a table that is the same in both databases."""
    table = Table(name, metadata, *columns, **options)
    table.to_metadata(postgres)
    return table


# `cosigned` counts how often signature lines were added to a checkpoint of the table: other nodes
# learn from it, beside the version, that there is something to read.
stream = Table(
    "stream",
    metadata,
    Column("id", Number, primary_key=True),
    Column("table_id", LargeBinary(16), nullable=False, unique=True),
    Column("version", Number, nullable=False),
    Column("projected", Number, nullable=False),
    Column("cosigned", Number, nullable=False, server_default="0"),
    Index("ix_stream_behind", "id", sqlite_where=text("version > projected")),
)


LASTING = "(" + " OR ".join(f"type = '{name}'" for name in LASTING_TYPES) + ")"
"""The condition of the index of lasting events; a SELECT uses the index if it has the same text."""
# Not `type IN (…)`: SQLite builds a set from such a list for each row that is written.


def _content() -> list[SchemaItem]:
    """The columns of an event after its version, and the indexes of commands and lasting events.

    `commitment` is the salted hash of the hidden part; leaf and root follow from the row, so
    neither is stored. A command's id and digest are on the first event of its append.
    """
    given = text("command IS NOT NULL")
    return [
        Column("type", Text, nullable=False),
        Column("schema", Integer, nullable=False),
        Column("at", Number, nullable=False),
        Column("public", Text, nullable=False),
        Column("commitment", LargeBinary(32)),
        Column("hidden", LargeBinary),
        Column("command", Text),
        Column("digest", LargeBinary),
        Index(
            "ix_event_command",
            "stream",
            "command",
            unique=True,
            sqlite_where=given,
            postgresql_where=given,
        ),
        Index(
            "ix_event_lasting",
            "stream",
            "version",
            sqlite_where=text(LASTING),
            postgresql_where=text(LASTING),
        ),
    ]


event = Table(
    "event",
    metadata,
    Column("id", Number, primary_key=True),
    Column("stream", Number, ForeignKey("stream.id"), nullable=False),
    Column("version", Number, nullable=False),
    *_content(),
    UniqueConstraint("stream", "version"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("stream", Number, ForeignKey("stream.id"), primary_key=True),
    Column("size", Number, primary_key=True),
    Column("note", Text, nullable=False),
)

# `behind` is true of each stream whose events may not all be projected: a trigger sets it when an
# update leaves `version` above `projected`, and the projector takes it back from streams that have
# been quiet for a while. So almost no update of a stream changes a column that an index uses, and
# PostgreSQL updates the row within its page (HOT), if the fill factor leaves room.
# No reference from event to stream on PostgreSQL: each row would lock and look up the row that the
# same statement has updated.
Table(
    "stream",
    postgres,
    Column("id", Key, primary_key=True),
    Column("table_id", LargeBinary(16), Computed("id", persisted=True)),
    Column("version", Number, nullable=False),
    Column("projected", Number, nullable=False),
    Column("cosigned", Number, nullable=False, server_default="0"),
    Column("behind", Boolean, nullable=False, server_default=text("true")),
    Index("ix_stream_behind", "id", postgresql_where=text("behind")),
    postgresql_with={"fillfactor": 50},
)
Table(
    "event",
    postgres,
    Column("stream", Key, primary_key=True),
    Column("version", Number, primary_key=True),
    *_content(),
)
Table(
    "checkpoint",
    postgres,
    Column("stream", Key, primary_key=True),
    Column("size", Number, primary_key=True),
    Column("note", Text, nullable=False),
)

# Named metadata of the house, above all the check values of its keys: never a key.
house = define_table(
    "house",
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# The network from which a game table was opened, as a keyed digest. A rebuild leaves it alone, and
# a row goes when its table is archived.
opener = define_table(
    "opener",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(16), nullable=False),
    sqlite_with_rowid=False,
)

# The order in which the feed sends the events of all tables. No append writes to it. A row says
# that versions `first` … `last` of a game table follow everything in the rows before it; `seq` has
# no gaps when it is written, and rows become visible in its order, because one transaction at a
# time writes them. When a table is archived, its rows are merged into its newest one.
# `of_stream` is the value that other SQL tables call `stream`: a game table's rows are not
# stored together here. `key` is the service key that opened it, NULL for all others.
define_table(
    "feed",
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("of_stream", Key, nullable=False),
    Column("first", Number, nullable=False),
    Column("last", Number, nullable=False),
    Column("key", Number),
    Index("ix_feed_of_stream_seq", "of_stream", "seq"),
    Index("ix_feed_key_seq", "key", "seq"),
)
# `event`, of `event_stream` at `event_version`, is the newest row of `event` that was searched,
# on SQLite; `scan` is the last stream that a scan of all has searched, NULL if none is under
# way; `at` is when the search was last recorded, by the database's clock, on PostgreSQL.
define_table(
    "feed_state",
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", Number, nullable=False),
    Column("event", Number, nullable=False),
    Column("event_stream", Number, nullable=False),
    Column("event_version", Number, nullable=False),
    Column("scan", Key),
    Column("at", Number, nullable=False),
)


# What statements on both databases have in common

TABLE_ID = {"sqlite": "table_id", "postgresql": "id"}
"""The column of `stream` with the table's id and an index on it."""

_MAX_VARIABLES = 500


def select_in(
    dialect: str, select: str, column: str, ids: Sequence[bytes | int]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Statements, each with its parameters, that together select the rows with these ids."""
    if dialect == "postgresql":
        if ids:
            yield f"{select} WHERE {column} = ANY(?)", (list(ids),)
        return
    for start in range(0, len(ids), _MAX_VARIABLES):
        part = tuple(ids[start : start + _MAX_VARIABLES])
        yield f"{select} WHERE {column} IN ({','.join('?' * len(part))})", part


def lagging(dialect: str) -> str:
    """The condition that a row of `stream` has events to be projected, for which there is an index.

    On PostgreSQL the index has all rows that may have such events.
    """
    condition = "stream.version > stream.projected"
    return f"stream.behind AND {condition}" if dialect == "postgresql" else condition


_MIGRATION_LOCK = int.from_bytes(b"dealer/m")
"""The advisory lock under which a PostgreSQL schema is migrated."""


def scripts() -> Path:
    """The folder of the migrations: inside the package in a wheel, else at the repository's top."""
    package = Path(__file__).resolve().parent
    in_wheel = package / "migrations"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "migrations"


def revisions() -> list[str]:
    """Every revision of this program, oldest first."""
    return sorted(file.name.split("_", 1)[0] for file in scripts().glob("versions/[0-9]*.py"))


def current_revision(connection: Connection) -> str | None:
    """The revision of the database; None if it is empty.

    Raises DatabaseError if it holds another program's tables.
    """
    names = {name for (name,) in connection.exec_driver_sql(_select_tables(connection)).fetchall()}
    if "alembic_version" in names:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        if found is not None:
            return str(found)
    if names - {"alembic_version"}:
        raise DatabaseError(
            "The database holds tables of another program; name another file for the log."
        )
    return None


def _select_tables(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        return "SELECT name FROM sqlite_master"
    # A PostgreSQL database may hold other tables too, for example of extensions.
    ours = ", ".join(f"'{name}'" for name in ("alembic_version", *postgres.tables))
    return (
        "SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema()"
        f" AND tablename IN ({ours})"
    )


def is_newest(connection: Connection) -> bool:
    """Whether the schema is the newest; raises SchemaTooNew on a revision of a newer program."""
    found, known = current_revision(connection), revisions()
    if found is not None and found not in known:
        raise SchemaTooNew(
            f"The database was made by a newer version of this program (its schema is {found}, "
            f"the newest known here is {known[-1]}); install that version or a later one."
        )
    return found == known[-1]


def outdated(name: str, found: str | None) -> SchemaOutdated:
    """The error for the database `name` whose revision is `found`, not the newest."""
    schema = "is empty" if found is None else f"has the schema {found} of an older version"
    return SchemaOutdated(f"The database {name} {schema}; run `dealer migrate --database …` on it.")


def lock_schema(connection: Connection) -> None:
    """Wait for other processes that migrate; SQLite's transactions do that themselves."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))


def upgrade(connection: Connection) -> None:
    """Bring the schema to the newest revision, inside the caller's transaction.

    On PostgreSQL a second process waits for the first one's transaction.
    """
    lock_schema(connection)
    if is_newest(connection):
        return
    from alembic import command

    command.upgrade(alembic_config(connection), "head")


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for commands on this connection, which print nothing."""
    from alembic.config import Config

    config = Config(stdout=StringIO(), attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return config
