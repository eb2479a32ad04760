"""SQL schema: every table as SQLAlchemy declares it, for migrations and rebuilds; their meaning.

`metadata` is what SQLite has, `postgres` what PostgreSQL has: the same names, so that one SQL does
for both; one history of migrations creates them all. A running server does not import these
declarations: it has SQL. Those of the read models follow from `dealer.projector.models`.

A game table is a *stream*; its events have versions 1, 2, 3 … with no gap. Every key begins with
the stream, so nothing orders one table after another and the schema shards as it is. On SQLite a
short integer replaces the table's 16-byte id, and an event is an ordinary rowid row: both keep the
rows and their index narrow, which determines the speed of an append.

On PostgreSQL `stream.id` is the table's id itself, and so is every column called `stream`: the rows
of one table are stored together, in one shard if there are several, and the first 48 bits of the
id are its creation time.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
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

from dealer.eventlog.savepoints import CODE_BYTES
from dealer.eventlog.schema import LASTING
from dealer.eventlog.seat_subjects import DIGEST_BYTES
from dealer.projector.models import MODELS, Long, Model, StreamId

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
define_table(
    "house",
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# The network from which a game table was opened, as a keyed digest. A rebuild leaves it alone, and
# a row goes when its table is archived.
define_table(
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

define_table(
    "table_savepoint",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("version", Number, nullable=False),
    Column("format", Integer, nullable=False),
    Column("code", LargeBinary(CODE_BYTES), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

# Which seat a user or ticket got.
define_table(
    "seat_subject",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(DIGEST_BYTES), primary_key=True),
    Column("seat", Number, nullable=False),
    Column("version", Number, nullable=False),
    Column("request", LargeBinary(DIGEST_BYTES)),
    Column("key", Number),
    Column("subject", Text),
    sqlite_with_rowid=False,
)

# Administration

define_table(
    "journal",
    Column("at", Number, primary_key=True, autoincrement=False),
    Column("id", LargeBinary(8), primary_key=True),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("details", Text, nullable=False),
)
define_table(
    "disabled",
    Column("target", Text, primary_key=True),
    Column("at", Number, nullable=False),
    Column("why", Text, nullable=False),
)
# A game table is a short number on SQLite, and its id on PostgreSQL.
define_table(
    "archived",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("size", Number, nullable=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("house_key", LargeBinary(32), nullable=False),
    Column("file", Text, nullable=False),
    Column("length", Number, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("closed_at", Number, nullable=False),
    Column("at", Number, nullable=False),
)

# Nodes

define_table(
    "node",
    Column("id", LargeBinary(8), primary_key=True),
    Column("at", Number, nullable=False),
)
define_table(
    "presence",
    Column("table_id", LargeBinary(16), primary_key=True),
    Column("node", LargeBinary(8), primary_key=True),
    Column("seats", Text, nullable=False),
    Column("watching", Integer, nullable=False),
    Index("ix_presence_node", "node"),
)

# Other people's servers

define_table(
    "service_key",
    Column("id", Number, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("rights", Text, nullable=False),
    Column("created_at", Number, nullable=False),
    Column("revoked_at", Number),
)
# Written before the table's first event, so that no event of it is without its key.
define_table(
    "service_table",
    Column("table_id", LargeBinary(16), primary_key=True),
    Column("key", Number, nullable=False),
    Column("ref", Text),
    UniqueConstraint("key", "ref"),
    Index("ix_service_table_key_table_id", "key", "table_id"),
)
define_table(
    "webhook",
    Column("id", Number, primary_key=True),
    Column("url", Text, nullable=False),
    Column("key", Number, nullable=False),
    Column("types", Text, nullable=False),
    Column("signing", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("allow_private", Integer, nullable=False),
    Column("position", Text, nullable=False),
    Column("created_at", Number, nullable=False),
    Column("failing_since", Number),
    Column("problem", Text, nullable=False),
    Column("disabled_at", Number),
    Column("owner", LargeBinary(8)),
    Column("lease", Number, nullable=False),
)

# Read models

_TYPES: dict[Any, Any] = {StreamId: Key, int: Integer, Long: Number, str: Text}


def _define(model: Model, *more: SchemaItem) -> None:
    columns: list[Column[Any]] = []
    for name, kind, null in model.types():
        options: dict[str, Any] = {"nullable": null}
        if name in model.key:
            options = {"primary_key": True, "autoincrement": False}
        columns.append(Column(name, _TYPES[kind], **options))
    define_table(model.name, *columns, *more, sqlite_with_rowid=False)


_OPEN = text("closed_at IS NULL")
_MORE = {
    "tables": (
        # For the lobby: the newest open tables.
        Index("ix_tables_opened_at", "opened_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
        # For `dealer tables`: the newest ones, closed or not.
        Index("ix_tables_opened_at_stream", "opened_at", "stream"),
    )
}
for _each in MODELS:
    _define(_each, *_MORE.get(_each.name, ()))

# A shard cannot enforce uniqueness over all tables, and `stream` is unique already.
UniqueConstraint(metadata.tables["tables"].c.table_id)
Index("ix_tables_table_id", postgres.tables["tables"].c.table_id)
