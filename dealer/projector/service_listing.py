"""SQL queries of the tables of a service key, and of all tables, by page in the order of their ids.

A page selects its rows by an index first and joins the rest for these only, so that it costs what
it lists. What the read models do not have yet is as of the last projection, a moment ago.
"""

from __future__ import annotations

from dealer.eventlog.queries import TABLE_ID
from dealer.eventlog.store import Dialect

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
