"""Statistical tests of shuffles: five fair methods, five biased ones, and logged tables.

Read the modules in this order: `sources` (random numbers), `shuffles` (the methods), `counts` (what
is counted), `experiment` (many shuffles), `verdicts` (the tests), `report` and `pictures`, `exact`
(every possible choice enumerated, without randomness), `costs`. They need numpy and scipy, which
the extra `lab` installs.
"""
