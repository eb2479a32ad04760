"""The feed: every event of every table of a service key, at least once and in the table's order."""
