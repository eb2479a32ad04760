"""SQL queries of lists of tables: the newest, all, the lobby and the tables of a service key.

The lists select their rows by an index first and read the rest for these only, so that listing a
few tables of many costs what is listed. What the read models do not have yet is as of the last
projection, a moment ago.
"""

from __future__ import annotations

from dealer.eventlog.protocols import Dialect
from dealer.eventlog.schema import TABLE_ID

# On SQLite a newer table has a larger number. A PostgreSQL id does not say (it may be derived from
# a command id), so there the index of `tables` by time is read.

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

_LISTED = """
SELECT t.table_id AS "table", t.name, t.rounds, t.events AS version, t.opened_at,
       (SELECT count(*) FROM seats s WHERE s.stream = t.stream AND s.until IS NULL) AS taken,
       o.digest, CASE WHEN t.rules LIKE '%"watch":"nobody"%' OR t.rules LIKE '%"listed":false%'
       OR t.rules LIKE '%"practice":{{%' THEN t.rules END AS rules
FROM tables t LEFT JOIN opener o ON o.stream = t.stream
WHERE t.closed_at IS {state} AND t.table_id NOT IN (SELECT target FROM disabled)
  AND t.opened_at <= ? AND (t.opened_at < ? OR t.table_id > ?)
ORDER BY t.opened_at DESC, t.table_id LIMIT ?
"""
LOBBY = _LISTED.format(state="NULL")
"""Open tables that are not disabled, the newest first, after one (opened_at twice, its id).

`digest` identifies the network that opened the table, NULL if unknown; `rules` are selected only if
they may forbid spectators or the list, or say that it is a practice table. The last parameter is
the maximal number of rows.
"""

FINISHED = _LISTED.format(state="NOT NULL")
"""Closed tables that are not disabled, as `LOBBY` selects open ones."""


_OWN = "SELECT table_id, key, ref FROM service_table WHERE key = ? AND table_id > ?{ref}"
_EVERY = """
SELECT s.{id} AS table_id, x.key, x.ref FROM stream s
LEFT JOIN service_table x ON x.table_id = s.{id} WHERE s.{id} > ?"""

_PAGE = """
SELECT p.table_id, p.ref, k.name AS opened_by, s.version, t.name, coalesce(t.rounds, 0) AS rounds,
       (SELECT count(*) FROM seats e WHERE e.stream = s.id AND e.until IS NULL) AS taken,
       t.opened_at, t.closed_at,
       CASE WHEN a.stream IS NOT NULL THEN 'archived'
            WHEN t.closed_at IS NOT NULL THEN 'closed' ELSE 'open' END AS state
FROM ({rows} ORDER BY table_id LIMIT ?) AS p
JOIN stream s ON s.{id} = p.table_id
LEFT JOIN service_key k ON k.id = p.key
LEFT JOIN tables t ON t.stream = s.id
LEFT JOIN archived a ON a.stream = s.id
ORDER BY p.table_id"""


def tables_of_key(
    dialect: Dialect, key: int, *, ref: str | None, after: bytes, limit: int
) -> tuple[str, tuple[object, ...]]:
    """A SELECT of at most `limit` tables that a key opened, after an id, and its parameters.

    A row that was claimed and has no table yet is left out.
    """
    condition, refs = ("", ()) if ref is None else (" AND ref = ?", (ref,))
    rows = _OWN.format(ref=condition)
    return _PAGE.format(rows=rows, id=TABLE_ID[dialect]), (key, after, *refs, limit)


def every_table(dialect: Dialect, *, after: bytes, limit: int) -> tuple[str, tuple[object, ...]]:
    """A SELECT of at most `limit` tables, of players too, after an id, and its parameters."""
    id = TABLE_ID[dialect]
    return _PAGE.format(rows=_EVERY.format(id=id), id=id), (after, limit)
