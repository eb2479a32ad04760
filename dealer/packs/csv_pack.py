"""A pack as a table: CSV with a header of `code,name,colour,text,count` and other members of cards.

Read is what spreadsheet programs save: with commas, semicolons or tabs, line ends of any kind,
trailing empty cells, and columns of remarks. README.md has the rules. The same table gives the same
pack however it was saved.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from difflib import get_close_matches
from io import StringIO
from typing import Any, NamedTuple

from dealer.errors import ConfigurationError, amount

COLUMNS = ("code", "name", "colour", "ground", "corner", "text", "svg", "count")
_REQUIRED = {"code", "name"}
_DELIMITERS = (",", ";", "\t")
_SIMILAR = 0.8
"""How near to a column's name another one is taken for its misspelling, from 0 to 1."""

_SEPARATOR = re.compile(r'"?sep=([^"\n])"?[,;\t]*(?=\n|\Z)', re.IGNORECASE)
_COUNT = re.compile(r"([0-9]{1,4})(?:[.,]0{1,2})?")
# A column with one of these has a meaning for its author: a number, a colour, a formula, a picture.
_DATA = re.compile(r"[#=<].+|[-+]?[0-9][0-9.,\s]*", re.DOTALL)


class _Row(NamedTuple):
    """A row with text: its last line in the file, and its cells without the spaces around them."""

    line: int
    cells: list[str]


def parse_csv(text: str, *, name: str, notes: list[str] | None = None) -> dict[str, Any]:
    """The pack in a CSV text, as the object that `pack.read` takes; a fault names its line.

    A sentence about columns that have no meaning is added to `notes`.
    """
    lines = re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff"))
    header, rows = _read(lines)
    columns = _columns(header)
    cards: dict[str, dict[str, Any]] = {}
    for row in rows:
        _add(cards, _cells(row, columns), row.line)
    ignored = [column for column in columns if column and column not in COLUMNS]
    if ignored and notes is not None:
        notes.append(f"Ignored columns: {', '.join(ignored)}.")
    return {"pack": name, "title": name.replace("-", " ").capitalize(), "cards": cards}


def _read(text: str) -> tuple[_Row, Iterator[_Row]]:
    """The header, and the rows after it, with the delimiter that gives the required columns."""
    delimiters: tuple[str, ...] = _DELIMITERS
    if separator := _SEPARATOR.match(text):
        delimiters = (separator[1],)
        if separator[1] not in _DELIMITERS:
            raise ConfigurationError(
                f"line 1: {separator[0]}: separate cells by commas, semicolons or tabs."
            )
        text = text[separator.end() :]  # its line stays, so that lines keep their numbers
    for delimiter in delimiters:
        rows = _rows(text, delimiter)
        try:
            header = next(rows, None)
        except ConfigurationError:
            continue  # quoted cells with another delimiter between them
        if header and {cell.casefold() for cell in header.cells} >= _REQUIRED:
            return header, rows
    begins = text.lstrip().partition("\n")[0]
    rows = _rows(text, max(delimiters, key=begins.count))
    return next(rows, _Row(1, [])), rows


def _rows(text: str, delimiter: str) -> Iterator[_Row]:
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            row = _Row(reader.line_num, [cell.strip() for cell in cells])
            if any(row.cells):
                yield row
    except csv.Error as error:
        raise ConfigurationError(f"line {reader.line_num}: this is not CSV: {error}.") from None


def _columns(header: _Row) -> list[str]:
    """The columns' names: in lower case if they are known, and empty for an empty column."""
    columns = []
    for given in header.cells:
        column = given.casefold()
        if column in COLUMNS:
            columns.append(column)
            continue
        columns.append(given)
        if column in ("suit", "rank"):
            raise ConfigurationError(
                f"line {header.line}: unknown column {given!r}; only a pack in JSON has suits and "
                "ranks."
            )
        if similar := get_close_matches(column, COLUMNS, n=1, cutoff=_SIMILAR):
            raise ConfigurationError(
                f"line {header.line}: unknown column {given!r}; did you mean {similar[0]}?"
            )
    named = [column for column in columns if column]
    if len(set(named)) != len(named) or not set(named) >= _REQUIRED:
        raise ConfigurationError(
            f"line {header.line}: the header must have code and name, and no column twice."
        )
    return columns


def _cells(row: _Row, columns: list[str]) -> dict[str, str]:
    """The cells with text, by column; programs leave out empty ones at the end of a row."""
    cells = {}
    for number, (column, cell) in enumerate(zip(columns, row.cells, strict=False), 1):
        if cell and not column:
            raise ConfigurationError(
                f"line {row.line}: column {number} has no name in the header, but {cell[:32]!r}."
            )
        if column in COLUMNS:
            if cell.startswith("=") and len(cell) > 1:
                raise ConfigurationError(
                    f"line {row.line}: {column} is the formula {cell[:32]!r}: save the values of "
                    "the cells."
                )
            if cell:
                cells[column] = cell if column == "svg" else cell.replace("\n", " ")
        elif _DATA.fullmatch(cell):
            raise ConfigurationError(
                f"line {row.line}: unknown column {column!r} with {cell[:32]!r}. Call it one of "
                f"{', '.join(COLUMNS)}, or remove it."
            )
    short = len(row.cells) < len(columns) and not cells.keys() >= _REQUIRED
    if short or any(row.cells[len(columns) :]):
        raise ConfigurationError(
            f"line {row.line}: {amount(len(row.cells), 'cell')}, but the header has {len(columns)}."
        )
    return cells


def _add(cards: dict[str, dict[str, Any]], cells: dict[str, str], line: int) -> None:
    code = cells.pop("code", "")
    if not code or "name" not in cells:
        raise ConfigurationError(f"line {line}: {'name' if code else 'code'} is empty.")
    if code in cards:
        raise ConfigurationError(f"line {line}: the code {code!r} occurs twice; use count.")
    # In one order, so that the order of the columns does not change the pack.
    card: dict[str, Any] = {column: cells[column] for column in COLUMNS if column in cells}
    if "count" in cells:
        count = _COUNT.fullmatch(cells["count"])
        if count is None:
            raise ConfigurationError(f"line {line}: count must be a whole number, like 2.")
        card["count"] = int(count[1])
    cards[code] = card
