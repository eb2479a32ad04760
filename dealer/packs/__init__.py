"""Packs of cards and presets of games: files that others write, checked and completed."""
