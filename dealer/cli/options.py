"""Options that several commands share, and how a table is named on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.config import DATABASE_VARIABLE
from dealer.errors import SetupError, UnknownTable

if TYPE_CHECKING:
    from dealer.eventlog import Log

TABLE_BYTES = 16

Database = Annotated[
    str,
    typer.Option(
        "--database",
        metavar="URL",
        envvar=DATABASE_VARIABLE,
        help="Where the log is kept: sqlite:/// and a path, absolute with a fourth slash.",
    ),
]
TableId = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's id, or as much of its beginning as no other table has.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for a script, not lines for a person.")]
HouseUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A house to ask instead of the database, like http://127.0.0.1:8080/.",
        show_default=False,
    ),
]


@contextmanager
def asked_rightly() -> Iterator[None]:
    """What is wrong with a setting in here was wrongly asked, and exits with 2."""
    try:
        yield
    except SetupError as error:
        raise typer.BadParameter(str(error)) from None


async def find_table(log: Log, text: str) -> bytes:
    """The id of the one table that `text`, hex digits, begins; UnknownTable otherwise."""
    digits = text.lower().replace("-", "")
    try:
        low = bytes.fromhex(digits.ljust(2 * TABLE_BYTES, "0"))
        high = bytes.fromhex(digits.ljust(2 * TABLE_BYTES, "f"))
    except ValueError:
        low = high = b""
    if not digits or len(low) != TABLE_BYTES:
        raise typer.BadParameter(f"A table's id is {2 * TABLE_BYTES} hex digits, not {text!r}.")
    found = await log.fetch(
        "SELECT table_id FROM stream WHERE table_id BETWEEN ? AND ? LIMIT 2", (low, high)
    )
    if not found:
        raise UnknownTable(f"No table {text} is in this log; `dealer tables` lists those that are.")
    if len(found) > 1:
        raise UnknownTable(f"Several tables begin with {text}; give more of the id.")
    table: bytes = found[0][0]
    return table
