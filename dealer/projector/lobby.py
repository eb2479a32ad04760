"""Open tables for the lobby, as the read models have them, a page at a time."""

from __future__ import annotations

LOBBY = """
SELECT t.table_id AS "table", t.name, t.rounds, t.events AS version, t.opened_at,
       (SELECT count(*) FROM seats s WHERE s.stream = t.stream AND s.until IS NULL) AS taken,
       o.digest, CASE WHEN t.rules LIKE '%"watch":"nobody"%' THEN t.rules END AS rules
FROM tables t LEFT JOIN opener o ON o.stream = t.stream
WHERE t.closed_at IS NULL AND t.table_id NOT IN (SELECT target FROM disabled)
  AND (t.opened_at < ? OR (t.opened_at = ? AND t.table_id > ?))
ORDER BY t.opened_at DESC, t.table_id LIMIT ?
"""
"""Open tables that are not disabled, the newest first, after one (opened_at twice, its id).

`digest` stands for the network that opened the table, NULL where that is not known; `rules` are
there only where they may say that nobody watches. The last parameter is how many at the most.
"""
