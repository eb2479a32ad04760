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
    """The columns of an event after its version, and the index of commands.

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
# PostgreSQL updates the row within its page (HOT), where the fill factor leaves room.
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
