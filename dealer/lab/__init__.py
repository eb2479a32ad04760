"""Statistical tests of shuffles: five fair methods, five biased ones, and logged tables.

Read the modules in this order: `shuffles` (one deck at a time), `vectorised` (the same over many
decks), `methods` (their list), `sources` (random numbers), `counts` (what is counted), `expected`
(the distributions of a fair shuffle), `p_values`, `verdicts` (the tests), `exact` (every possible
choice enumerated, without randomness). All but `shuffles` and `exact` need numpy, and `p_values`
scipy, which the extra `lab` installs.
"""
