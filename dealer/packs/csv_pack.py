"""A pack as a table: CSV with a header of `code,name,colour,text,count` and other members of cards.

Only `code` and `name` are required. Empty cells are left out. The title of the pack is its name.
"""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from dealer.errors import ConfigurationError

COLUMNS = ("code", "name", "colour", "ground", "corner", "text", "svg", "count")


def parse_csv(text: str, *, name: str) -> dict[str, Any]:
    """The pack in a CSV text, as the object that `pack.read` takes; a fault names its line."""
    reader = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    cards: dict[str, dict[str, Any]] = {}
    try:
        header = [column.strip() for column in next(reader, [])]
        _check_header(header)
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise ConfigurationError(
                    f"line {reader.line_num}: {len(row)} cells, but the header has {len(header)}."
                )
            cells = {
                key: cell.strip() for key, cell in zip(header, row, strict=True) if cell.strip()
            }
            _add(cards, cells, reader.line_num)
    except csv.Error as error:
        raise ConfigurationError(f"line {reader.line_num}: this is not CSV: {error}.") from None
    return {"pack": name, "title": name.replace("-", " ").capitalize(), "cards": cards}


def _check_header(header: list[str]) -> None:
    for column in header:
        if column not in COLUMNS:
            raise ConfigurationError(
                f"line 1: unknown column {column!r}; the columns are {', '.join(COLUMNS)}."
            )
    if len(set(header)) != len(header) or not {"code", "name"} <= set(header):
        raise ConfigurationError("line 1: the header must have code and name, and no column twice.")


def _add(cards: dict[str, dict[str, Any]], cells: dict[str, str], line: int) -> None:
    code = cells.pop("code", "")
    if not code:
        raise ConfigurationError(f"line {line}: code is empty.")
    if code in cards:
        raise ConfigurationError(f"line {line}: the code {code!r} occurs twice; use count.")
    card: dict[str, Any] = dict(cells)
    if "count" in cells:
        if not cells["count"].isdecimal() or len(cells["count"]) > 4:
            raise ConfigurationError(f"line {line}: count must be a whole number.")
        card["count"] = int(cells["count"])
    cards[code] = card
