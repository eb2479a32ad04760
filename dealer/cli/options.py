"""Options that several commands share, and how a table is named on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from math import inf
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.config import SETTINGS, with_password
from dealer.errors import SetupError, TableArchived, UnknownTable

if TYPE_CHECKING:
    from dealer.eventlog import Reading

TABLE_BYTES = 16

_TOLD = {setting.name: setting for setting in SETTINGS}


def option(name: str, **more: Any) -> Any:
    """The option of a setting, as the table of settings has it."""
    setting = _TOLD[name]
    return typer.Option(setting.flag, envvar=setting.variable, help=setting.help, **more)


def _with_password(url: str) -> str:
    with asked_rightly():
        return with_password(url, os.environ)


Database = Annotated[str, option("database", metavar="URL", callback=_with_password)]
HouseKey = Annotated[Path | None, option("house_key", metavar="FILE", show_default=False)]
Marks = Annotated[Path | None, option("marks", metavar="FOLDER", show_default=False)]
TableId = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's id, or as much of its beginning as no other table has.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for a script, not lines for a person.")]
Why = Annotated[
    str,
    typer.Option("--why", metavar="TEXT", help="The reason, for the operators' journal."),
]
Operator = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="NAME",
        envvar="DEALER_OPERATOR",
        help="Who does it, for the operators' journal; you and this machine, if not said.",
        show_default=False,
    ),
]
HouseUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="A house to ask instead of the database, like http://127.0.0.1:8080/.",
        show_default=False,
    ),
]


def whole(text: str | int) -> int:
    """The number that an option says."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"This is a whole number, not {text!r}.") from None


def seconds(text: str | float) -> float:
    """So many seconds, 0 or more, as an option says them."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise typer.BadParameter(f"This is a number of seconds, 0 or more, not {text!r}.")
    return number


def whoami() -> str:
    """Who types: the user's name and the machine's, as far as the system tells."""
    try:
        user = getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{gethostname()}"


@contextmanager
def asked_rightly() -> Iterator[None]:
    """What is wrong with a setting in here was wrongly asked, and exits with 2."""
    try:
        yield
    except SetupError as error:
        raise typer.BadParameter(str(error)) from None


async def find_table(log: Reading, text: str) -> bytes:
    """The id of the one table that `text`, hex digits, begins; UnknownTable otherwise.

    TableArchived, which says where its events are, if they are in the database no more.
    """
    from dealer.service import archived

    digits = text.lower().replace("-", "")
    try:
        low = bytes.fromhex(digits.ljust(2 * TABLE_BYTES, "0"))
        high = bytes.fromhex(digits.ljust(2 * TABLE_BYTES, "f"))
    except ValueError:
        low = high = b""
    if not digits or len(low) != TABLE_BYTES:
        raise typer.BadParameter(f"A table's id is {2 * TABLE_BYTES} hex digits, not {text!r}.")
    found = await log.tables_between(low, high, limit=2)
    if not found:
        raise UnknownTable(f"No table {text} is in this log; `dealer tables` lists those that are.")
    if len(found) > 1:
        raise UnknownTable(f"Several tables begin with {text}; give more of the id.")
    kept = await archived.find(log, found[0])
    if kept is not None:
        raise TableArchived(
            f"Table {found[0].hex()} is archived: {kept.file} in the folder of `dealer archive` is "
            "all of it. `dealer history FILE` tells it, `dealer verify FILE` checks it."
        )
    return found[0]
