"""How the tables look now, and how they looked after each round, in SQL that anyone can read.

Every row here follows from the log alone and can be thrown away: `rebuild` makes it again.
"""
