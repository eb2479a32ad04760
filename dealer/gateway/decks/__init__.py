"""Decks over simple REST: the paths of deckofcardsapi.com, each deck a table of the log."""
