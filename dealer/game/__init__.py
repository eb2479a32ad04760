"""What may happen at a table: pure functions over commands, events and state."""
