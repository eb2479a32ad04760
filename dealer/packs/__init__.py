"""Packs of cards and game files, which others write: checked and completed."""
