"""Statistical tests of shuffles: five fair methods, five biased ones, and logged tables.

Read the modules in this order: `shuffles` (random numbers and the methods), `experiment`
(many shuffles, and what is counted), `report` (the tests and the verdict), `costs`. They need
numpy and scipy, which the extra `lab` installs.
"""
