"""SQL query of the lobby: open tables from the read models, by page."""

from __future__ import annotations

LOBBY = """
SELECT t.table_id AS "table", t.name, t.rounds, t.events AS version, t.opened_at,
       (SELECT count(*) FROM seats s WHERE s.stream = t.stream AND s.until IS NULL) AS taken,
       o.digest, CASE WHEN t.rules LIKE '%"watch":"nobody"%' OR t.rules LIKE '%"listed":false%'
       THEN t.rules END AS rules
FROM tables t LEFT JOIN opener o ON o.stream = t.stream
WHERE t.closed_at IS NULL AND t.table_id NOT IN (SELECT target FROM disabled)
  AND t.opened_at <= ? AND (t.opened_at < ? OR t.table_id > ?)
ORDER BY t.opened_at DESC, t.table_id LIMIT ?
"""
"""Open tables that are not disabled, the newest first, after one (opened_at twice, its id).

`digest` identifies the network that opened the table, NULL if unknown; `rules` are selected only if
they may forbid spectators or the list. The last parameter is the maximal number of rows.
"""
