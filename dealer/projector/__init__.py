"""SQL read models of the log: the current tables, and the state after each round.

Every row is derived from the log alone and can be deleted: `rebuild` writes it again.
"""
