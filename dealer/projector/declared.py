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

import sqlalchemy as sa
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
metadata = sa.MetaData(naming_convention=_NAMES)
postgres = sa.MetaData(naming_convention=_NAMES)

# SQLite makes a column the row's own number only if it is called INTEGER.
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Key = sa.LargeBinary(16).with_variant(sa.Integer(), "sqlite")
"""The type of `stream` columns: a short number on SQLite, the table's id on PostgreSQL."""


def define_table(name: str, *columns: SchemaItem, **options: Any) -> sa.Table:
    """Declare a table that is the same in both databases."""
    table = sa.Table(name, metadata, *columns, **options)
    table.to_metadata(postgres)
    return table


# `cosigned` counts how often signature lines were added to a checkpoint of the table: other nodes
# learn from it, beside the version, that there is something to read.
stream = sa.Table(
    "stream",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("table_id", sa.LargeBinary(16), nullable=False, unique=True),
    sa.Column("version", Number, nullable=False),
    sa.Column("projected", Number, nullable=False),
    sa.Column("cosigned", Number, nullable=False, server_default="0"),
    sa.Index("ix_stream_behind", "id", sqlite_where=sa.text("version > projected")),
)


def _content() -> list[SchemaItem]:
    """The columns of an event after its version, and the indexes of commands and lasting events.

    `commitment` is the salted hash of the hidden part; leaf and root follow from the row, so
    neither is stored. A command's id and digest are on the first event of its append.
    """
    given = sa.text("command IS NOT NULL")
    return [
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("schema", sa.Integer, nullable=False),
        sa.Column("at", Number, nullable=False),
        sa.Column("public", sa.Text, nullable=False),
        sa.Column("commitment", sa.LargeBinary(32)),
        sa.Column("hidden", sa.LargeBinary),
        sa.Column("command", sa.Text),
        sa.Column("digest", sa.LargeBinary),
        sa.Index(
            "ix_event_command",
            "stream",
            "command",
            unique=True,
            sqlite_where=given,
            postgresql_where=given,
        ),
        sa.Index(
            "ix_event_lasting",
            "stream",
            "version",
            sqlite_where=sa.text(LASTING),
            postgresql_where=sa.text(LASTING),
        ),
    ]


event = sa.Table(
    "event",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("stream", Number, sa.ForeignKey("stream.id"), nullable=False),
    sa.Column("version", Number, nullable=False),
    *_content(),
    sa.UniqueConstraint("stream", "version"),
)

checkpoint = sa.Table(
    "checkpoint",
    metadata,
    sa.Column("stream", Number, sa.ForeignKey("stream.id"), primary_key=True),
    sa.Column("size", Number, primary_key=True),
    sa.Column("note", sa.Text, nullable=False),
)

# `behind` is true of each stream whose events may not all be projected: a trigger sets it when an
# update leaves `version` above `projected`, and the projector takes it back from streams that have
# been quiet for a while. So almost no update of a stream changes a column that an index uses, and
# PostgreSQL updates the row within its page (HOT), if the fill factor leaves room.
# No reference from event to stream on PostgreSQL: each row would lock and look up the row that the
# same statement has updated.
sa.Table(
    "stream",
    postgres,
    sa.Column("id", Key, primary_key=True),
    sa.Column("table_id", sa.LargeBinary(16), sa.Computed("id", persisted=True)),
    sa.Column("version", Number, nullable=False),
    sa.Column("projected", Number, nullable=False),
    sa.Column("cosigned", Number, nullable=False, server_default="0"),
    sa.Column("behind", sa.Boolean, nullable=False, server_default=sa.text("true")),
    sa.Index("ix_stream_behind", "id", postgresql_where=sa.text("behind")),
    postgresql_with={"fillfactor": 50},
)
sa.Table(
    "event",
    postgres,
    sa.Column("stream", Key, primary_key=True),
    sa.Column("version", Number, primary_key=True),
    *_content(),
)
sa.Table(
    "checkpoint",
    postgres,
    sa.Column("stream", Key, primary_key=True),
    sa.Column("size", Number, primary_key=True),
    sa.Column("note", sa.Text, nullable=False),
)

# Named metadata of the house, above all the check values of its keys: never a key.
define_table(
    "house",
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
)

# The network from which a game table was opened, as a keyed digest. A rebuild leaves it alone, and
# a row goes when its table is archived.
define_table(
    "opener",
    sa.Column("stream", Key, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.LargeBinary(16), nullable=False),
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
    sa.Column("seq", Number, primary_key=True, autoincrement=False),
    sa.Column("of_stream", Key, nullable=False),
    sa.Column("first", Number, nullable=False),
    sa.Column("last", Number, nullable=False),
    sa.Column("key", Number),
    sa.Index("ix_feed_of_stream_seq", "of_stream", "seq"),
    sa.Index("ix_feed_key_seq", "key", "seq"),
)
# `event`, of `event_stream` at `event_version`, is the newest row of `event` that was searched,
# on SQLite; `scan` is the last stream that a scan of all has searched, NULL if none is under
# way; `at` is when the search was last recorded, by the database's clock, on PostgreSQL.
define_table(
    "feed_state",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seq", Number, nullable=False),
    sa.Column("event", Number, nullable=False),
    sa.Column("event_stream", Number, nullable=False),
    sa.Column("event_version", Number, nullable=False),
    sa.Column("scan", Key),
    sa.Column("at", Number, nullable=False),
)

define_table(
    "table_savepoint",
    sa.Column("stream", Key, primary_key=True, autoincrement=False),
    sa.Column("version", Number, nullable=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("code", sa.LargeBinary(CODE_BYTES), nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)

# Which seat a user or ticket got.
define_table(
    "seat_subject",
    sa.Column("stream", Key, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.LargeBinary(DIGEST_BYTES), primary_key=True),
    sa.Column("seat", Number, nullable=False),
    sa.Column("version", Number, nullable=False),
    sa.Column("request", sa.LargeBinary(DIGEST_BYTES)),
    sa.Column("key", Number),
    sa.Column("subject", sa.Text),
    sqlite_with_rowid=False,
)

# Administration

define_table(
    "journal",
    sa.Column("at", Number, primary_key=True, autoincrement=False),
    sa.Column("id", sa.LargeBinary(8), primary_key=True),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("details", sa.Text, nullable=False),
)
define_table(
    "disabled",
    sa.Column("target", sa.Text, primary_key=True),
    sa.Column("at", Number, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
)
# A game table is a short number on SQLite, and its id on PostgreSQL.
define_table(
    "archived",
    sa.Column("stream", Key, primary_key=True, autoincrement=False),
    sa.Column("size", Number, nullable=False),
    sa.Column("root", sa.LargeBinary(32), nullable=False),
    sa.Column("house_key", sa.LargeBinary(32), nullable=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("length", Number, nullable=False),
    sa.Column("sha256", sa.LargeBinary(32), nullable=False),
    sa.Column("closed_at", Number, nullable=False),
    sa.Column("at", Number, nullable=False),
)

# Nodes

define_table(
    "node",
    sa.Column("id", sa.LargeBinary(8), primary_key=True),
    sa.Column("at", Number, nullable=False),
)
define_table(
    "presence",
    sa.Column("table_id", sa.LargeBinary(16), primary_key=True),
    sa.Column("node", sa.LargeBinary(8), primary_key=True),
    sa.Column("seats", sa.Text, nullable=False),
    sa.Column("watching", sa.Integer, nullable=False),
    sa.Index("ix_presence_node", "node"),
)

# Other people's servers

define_table(
    "service_key",
    sa.Column("id", Number, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    sa.Column("rights", sa.Text, nullable=False),
    sa.Column("created_at", Number, nullable=False),
    sa.Column("revoked_at", Number),
)
# Written before the table's first event, so that no event of it is without its key.
define_table(
    "service_table",
    sa.Column("table_id", sa.LargeBinary(16), primary_key=True),
    sa.Column("key", Number, nullable=False),
    sa.Column("ref", sa.Text),
    sa.UniqueConstraint("key", "ref"),
    sa.Index("ix_service_table_key_table_id", "key", "table_id"),
)
# The links to a table's broadcast that were made and not taken back: one of each service key, and
# the host's, whose owner is 0. Numbers are random, so that none is ever valid again.
define_table(
    "broadcast_link",
    sa.Column("table_id", sa.LargeBinary(16), primary_key=True),
    sa.Column("owner", Number, primary_key=True, autoincrement=False),
    sa.Column("number", Number, nullable=False),
)
define_table(
    "webhook",
    sa.Column("id", Number, primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("key", Number, nullable=False),
    sa.Column("types", sa.Text, nullable=False),
    sa.Column("signing", sa.Text, nullable=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
    sa.Column("allow_private", sa.Integer, nullable=False),
    sa.Column("position", sa.Text, nullable=False),
    sa.Column("created_at", Number, nullable=False),
    sa.Column("failing_since", Number),
    sa.Column("problem", sa.Text, nullable=False),
    sa.Column("disabled_at", Number),
    sa.Column("owner", sa.LargeBinary(8)),
    sa.Column("lease", Number, nullable=False),
)

# Read models

_TYPES: dict[Any, Any] = {
    StreamId: Key,
    int: sa.Integer,
    Long: Number,
    str: sa.Text,
}


def _define(model: Model, *more: SchemaItem) -> None:
    columns: list[sa.Column[Any]] = []
    for name, kind, null in model.types():
        options: dict[str, Any] = {"nullable": null}
        if name in model.key:
            options = {"primary_key": True, "autoincrement": False}
        columns.append(sa.Column(name, _TYPES[kind], **options))
    define_table(model.name, *columns, *more, sqlite_with_rowid=False)


_OPEN = sa.text("closed_at IS NULL")
_MORE = {
    "tables": (
        # For the lobby: the newest open tables.
        sa.Index("ix_tables_opened_at", "opened_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
        # For `dealer tables`: the newest ones, closed or not.
        sa.Index("ix_tables_opened_at_stream", "opened_at", "stream"),
    )
}
for _each in MODELS:
    _define(_each, *_MORE.get(_each.name, ()))

# A shard cannot enforce uniqueness over all tables, and `stream` is unique already.
sa.UniqueConstraint(metadata.tables["tables"].c.table_id)
sa.Index("ix_tables_table_id", postgres.tables["tables"].c.table_id)
