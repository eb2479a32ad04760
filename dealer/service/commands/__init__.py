"""From a command to an append and back: executed, committed, answered, refused or repeated."""
