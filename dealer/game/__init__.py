"""Rules of the table as pure functions: commands, events, state, decide, evolve and views."""
