"""A table of a document, replaced by one of the program."""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\|.*\n(?:\|.*\n)+", re.MULTILINE)


def with_table(text: str, table: str) -> str:
    """The text with its first table replaced. Raises ValueError if it has none."""
    found, replaced = _TABLE.subn(lambda _: table, text, count=1)
    if not replaced:
        raise ValueError("the section has no table to replace")
    return found
