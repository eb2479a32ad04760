"""Histories of games, from verified bundles.

`replay` iterates over the events of a bundle with the table's state, `sentences` describes an event
in English, and `text` writes the plain history of a round or table.
"""
