"""Other nodes that share the log: the heads of tables, and who is connected where."""
