"""A table in memory: its state, the commands in flight, and how both are read from the log."""
