"""Options that several commands share, and the lookup of a table by a prefix of its id."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from getpass import getuser
from inspect import Parameter
from math import inf
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from dealer.config import SETTINGS, with_password
from dealer.errors import BadRequest, ConfigurationError, TableArchived

if TYPE_CHECKING:
    from dealer.eventlog import Log, ReadOnlyLog

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Commands(typer.Typer):
    """Commands in which an option is given once, unless it may be given several times."""

    def command(self, *args: Any, **options: Any) -> Callable[[_Command], _Command]:
        """As in Typer."""
        return super().command(*args, cls=_EachOnce, **options)


class _EachOnce(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As in Typer; refuses an option of which all values but the last would be ignored."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            if given.count(option) > 1 and not option.multiple:
                name = max(option.opts, key=len)
                raise typer.BadParameter("it is given more than once.", ctx=ctx, param_hint=name)
        return super().parse_args(ctx, args)


_SETTINGS = {setting.name: setting for setting in SETTINGS}


def parse_int(text: str | int) -> int:
    """A whole number, as an option gives it."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"Give a whole number, not {text!r}.") from None


def parse_seconds(text: str | float) -> float:
    """Seconds, 0 or more, as an option gives them."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise typer.BadParameter(f"Give a number of seconds, 0 or more, not {text!r}.")
    return number


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ConfigurationError into a usage error, which exits with 2."""
    try:
        yield
    except ConfigurationError as error:
        raise typer.BadParameter(str(error)) from None


def _with_password(url: str) -> str:
    with usage_errors():
        return with_password(url, os.environ)


_PARSERS = {int: parse_int, int | None: parse_int, float: parse_seconds}
_OPTION_TYPES = {tuple[str, ...]: list[str] | None}


def option(name: str) -> Any:
    """The annotation of a parameter that is the option of a setting."""
    setting = _SETTINGS[name]
    declared = typer.Option(
        setting.flag,
        envvar=setting.variable,
        help=setting.help,
        metavar=setting.metavar,
        parser=_PARSERS.get(setting.type),
        callback=_with_password if name == "database" else None,
        show_default=setting.default not in (None, ()),
    )
    return Annotated[_OPTION_TYPES.get(setting.type, setting.type), declared]


def setting_parameters() -> list[Parameter]:
    """A parameter for each setting that has a flag, for the signature of a command."""
    return [
        Parameter(
            setting.name,
            Parameter.KEYWORD_ONLY,
            default=setting.default or None if setting.type == tuple[str, ...] else setting.default,
            annotation=option(setting.name),
        )
        for setting in SETTINGS
        if setting.flag
    ]


if TYPE_CHECKING:
    Database = str
    HouseKey = Path | None
    Marks = Path | None
else:
    Database, HouseKey, Marks = option("database"), option("house_key"), option("marks")
TableId = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's id, or a prefix of it that no other table has.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Why = Annotated[
    str,
    typer.Option("--why", metavar="TEXT", help="The reason, recorded in the operators' journal."),
]
Operator = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="NAME",
        envvar="DEALER_OPERATOR",
        help="Your name in the operators' journal; user@machine if not given.",
        show_default=False,
    ),
]
HouseUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Address of a server to read from instead of the database, like "
        "http://127.0.0.1:8080/; needs the whole id of a table.",
        show_default=False,
    ),
]


def whoami() -> str:
    """The user's and the machine's name, for the operators' journal."""
    try:
        user = getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{gethostname()}"


@asynccontextmanager
async def existing_log(database: str) -> AsyncIterator[Log]:
    """The log of this database, to be written; raises if there is no database yet."""
    from dealer.eventlog import Log
    from dealer.eventlog.backends import open_readonly

    await (await open_readonly(database)).close()
    async with await Log.open(database) as log:
        yield log


async def find_table(log: ReadOnlyLog, text: str) -> bytes:
    """The id of the one table whose id starts with `text`, hex digits.

    Raises UnknownTable if there is none or more than one, and TableArchived, which names the
    archive file, if its events are no longer in the database.
    """
    from dealer.service.tables import archive as archived
    from dealer.service.tables.table_ids import table_with_prefix

    try:
        found = await table_with_prefix(log, text)
    except BadRequest as error:
        raise typer.BadParameter(str(error)) from None
    kept = await archived.find(log, found)
    if kept is not None:
        raise TableArchived(
            f"Table {found.hex()} is archived: its events are in {kept.file} in the folder of "
            "`dealer archive`. Use `dealer history FILE` or `dealer verify FILE`."
        )
    return found
