"""Which tables are open to look at, as the read models have them."""

LOBBY = """
SELECT t.table_id AS "table", t.name, t.rounds, t.events AS version, t.opened_at,
       (SELECT count(*) FROM seats s WHERE s.stream = t.stream AND s.until IS NULL) AS taken
FROM tables t WHERE t.closed_at IS NULL AND t.table_id NOT IN (SELECT target FROM disabled)
ORDER BY t.opened_at DESC, t.table_id LIMIT ?
"""
"""Open tables that are not disabled, the newest first; its parameter is how many at the most."""
