"""SQL tables `feed` and `feed_state`: the order in which the feed sends the events of all tables.

They are not part of the log, and no append writes to them. A row of `feed` says that versions
`first` … `last` of a game table follow everything in the rows before it; `seq` has no gaps when it
is written, and rows become visible in its order, because one transaction at a time writes them.
When a table is archived, its rows are merged into its newest one.

`feed_state` has one row: the newest `seq`, and how far the log was searched for new events.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, Index, Integer

from dealer.eventlog.schema import Key, Number, define_table

_MERGE = (
    "UPDATE feed SET first = 1 WHERE of_stream = ?"
    " AND seq = (SELECT max(f.seq) FROM feed f WHERE f.of_stream = ?)",
    "DELETE FROM feed WHERE of_stream = ?"
    " AND seq < (SELECT max(f.seq) FROM feed f WHERE f.of_stream = ?)",
)

# An archive may delete events that no search has found yet, on SQLite. The scan finds their table.
_SCAN = """
UPDATE feed_state SET scan = 0 WHERE EXISTS (
    SELECT 1 FROM stream s WHERE s.id = ? AND s.version > coalesce(
        (SELECT max(f.last) FROM feed f WHERE f.of_stream = s.id), 0))
"""

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


def close_archived(connection: Connection, stream: Any) -> None:
    """Merge the rows of an archived table, by its value of `stream` columns, into the newest.

    Where the feed has not got all of its events, all tables are scanned for what it has not got.
    """
    for statement in _MERGE:
        connection.exec_driver_sql(statement, (stream, stream))
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_SCAN, (stream,))
