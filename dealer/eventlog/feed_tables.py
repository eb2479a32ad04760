"""SQL tables `feed` and `feed_state`: the order in which the feed sends the events of all tables.

They are not part of the log, and no append writes to them. A row of `feed` says that versions
`first` … `last` of a game table follow everything in the rows before it; `seq` has no gaps when it
is written, and rows become visible in its order, because one transaction at a time writes them.
When a table is archived, its rows are merged into its newest one.

`feed_state` has one row: the newest `seq`, and how far the log was searched for new events.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, Index, Integer, LargeBinary, MetaData, Table

from dealer.eventlog.schema import Number, metadata, postgres

_MERGE = (
    "UPDATE feed SET first = 1 WHERE stream = ?"
    " AND seq = (SELECT max(f.seq) FROM feed f WHERE f.stream = ?)",
    "DELETE FROM feed WHERE stream = ?"
    " AND seq < (SELECT max(f.seq) FROM feed f WHERE f.stream = ?)",
)


def define_tables(schema: MetaData) -> None:
    """Add the tables of this module to a schema."""
    key = LargeBinary(16).with_variant(Integer(), "sqlite")
    # `key` is the service key that opened the table, NULL for all others.
    Table(
        "feed",
        schema,
        Column("seq", Number, primary_key=True, autoincrement=False),
        Column("stream", key, nullable=False),
        Column("first", Number, nullable=False),
        Column("last", Number, nullable=False),
        Column("key", Number),
        Index("ix_feed_stream_seq", "stream", "seq"),
        Index("ix_feed_key_seq", "key", "seq"),
    )
    # `event`, with its `stream` and `version`, is the newest row of `event` that was searched, on
    # SQLite; `scan` is the last stream that a scan of all has searched, NULL if none is under way;
    # `at` is when the search was last recorded, by the database's clock, on PostgreSQL.
    Table(
        "feed_state",
        schema,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("seq", Number, nullable=False),
        Column("event", Number, nullable=False),
        Column("stream", Number, nullable=False),
        Column("version", Number, nullable=False),
        Column("scan", key),
        Column("at", Number, nullable=False),
    )


define_tables(metadata)
define_tables(postgres)


def merge_rows(connection: Connection, stream: Any) -> None:
    """Merge the rows of an archived table, by its value of `stream` columns, into the newest."""
    for statement in _MERGE:
        connection.exec_driver_sql(statement, (stream, stream))
