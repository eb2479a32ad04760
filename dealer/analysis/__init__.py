"""The log for analysts: tables, typed events, past states, shuffles and bundles, read-only.

`dealer.open_log` is the entry point; README.md in this folder has examples, QUESTIONS.md the same
in SQL.
"""
