"""SQL query of the newest tables, with closed ones and those that are not projected yet.

It selects the newest streams first and reads the rest for these only, so that listing a few tables
of many costs what is listed. On SQLite a newer table has a larger number. A PostgreSQL id does not
say (it may be derived from a command id), so there the index of `tables` by time is read.
"""

from __future__ import annotations

from dealer.eventlog.store import Dialect

# An archived table has a stream and no events.
_NEWEST_ON_SQLITE = """
SELECT id FROM stream
WHERE EXISTS (SELECT 1 FROM event e WHERE e.stream = stream.id AND e.version = 1)
ORDER BY id DESC LIMIT ?"""

# In the order of the last line below; of a stream without projected events the first event says
# when the table was opened.
_NEWEST_ON_POSTGRES = """
SELECT id FROM (
    (SELECT stream AS id, opened_at FROM tables ORDER BY opened_at DESC, stream DESC LIMIT ?)
    UNION ALL
    SELECT s.id, e.at FROM stream s JOIN event e ON e.stream = s.id AND e.version = 1
    WHERE s.behind AND s.version > s.projected AND s.projected = 0
) AS known ORDER BY opened_at DESC, id DESC LIMIT ?"""

# The open round of a table, if any, is its last one.
_TABLES = """
WITH newest AS ({newest})
SELECT s.id, s.table_id, s.version, coalesce(t.rounds, 0), t.closed_at IS NOT NULL,
       (SELECT count(*) FROM seats x WHERE x.stream = s.id AND x.until IS NULL),
       (SELECT count(*) FROM (SELECT r.until FROM rounds r WHERE r.stream = s.id
                              ORDER BY r.round DESC LIMIT 1) AS last WHERE last.until IS NULL),
       s.version > s.projected, s.projected, first.at, first.public
FROM newest JOIN stream s ON s.id = newest.id
LEFT JOIN tables t ON t.stream = s.id
JOIN event first ON first.stream = s.id AND first.version = 1
ORDER BY first.at DESC, s.table_id DESC"""

NEWER = """
SELECT type, count(*) FROM event
WHERE stream = ? AND version > ? GROUP BY type
"""
"""Types and counts of the events of a stream after a version, by which its row is corrected."""


def newest_tables(dialect: Dialect, limit: int) -> tuple[str, tuple[int, ...]]:
    """A SELECT of at most `limit` tables, the newest first, and its parameters.

    Its columns: stream, table id, version, rounds, closed, occupied seats, open rounds (0 or 1),
    lagging, projected version, and time and public part of the first event. Those from rounds to
    open rounds are as of the projected version.
    """
    if dialect == "sqlite":
        return _TABLES.format(newest=_NEWEST_ON_SQLITE), (limit,)
    return _TABLES.format(newest=_NEWEST_ON_POSTGRES), (limit, limit)


ALL_TABLES = """
SELECT s.table_id, s.version, first.at, first.public,
       (SELECT last.type FROM event last WHERE last.stream = s.id AND last.version = s.version)
FROM stream s JOIN event first ON first.stream = s.id AND first.version = 1
ORDER BY first.at, s.table_id"""
"""A SELECT of all tables whose events are in the log, the oldest first: table id, version, time and
public part of the first event, and the type of the last one. It reads no read model."""
