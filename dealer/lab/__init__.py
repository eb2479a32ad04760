"""Is it fair? Every way of shuffling that one meets, good and bad, and what tells them apart.

The modules read in this order: `shuffles` (one deck at a time, to be read), `many` (the same over
a million decks at once), `methods` (their list), `sources` (where the numbers come from), `tally`
(what is counted), `expected` (what a fair shuffle would give), `tails` (how far off is too far),
`findings` (the verdict), `exact` (no chance at all: every choice enumerated). All but `shuffles`,
`exact` and `tails` need numpy, which `pip install '.[lab]'` brings.
"""
