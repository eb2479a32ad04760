"""A game written down for people to read and for poker programs to study.

`story` goes through a verified bundle, `words` tells every event in a sentence, `text` makes the
plain history of a round or of a whole table, `phh` the poker hand history file of a closed round.
"""
