"""How commands are declared: help as plain text, shared options, those of settings, lookups."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from getpass import getuser
from inspect import Parameter, cleandoc, iscoroutinefunction, signature
from math import inf
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from dealer.cli.process import run
from dealer.config import (
    LIMITS,
    PASSWORD_FILE_VARIABLE,
    SETTINGS,
    Setting,
    Settings,
    age_ms,
    read_limits,
    with_password,
)
from dealer.errors import BadRequest, ConfigurationError, TableArchived

if TYPE_CHECKING:
    from dealer.eventlog import Log, ReadOnlyLog

_Command = TypeVar("_Command", bound=Callable[..., Any])

_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment"}

LIMITS_HELP = "Limits, each also a variable like DEALER_LIMIT_RATE:\n\n\b\n" + "\n".join(
    f"{name}: {what}" for name, what in LIMITS.items()
)


class Commands(typer.Typer):
    """Commands whose help is plain text, and in which an option is given once unless it may repeat.

    Rich's panels would cut names at the width of the terminal, and take four times as long.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, rich_markup_mode=None, add_completion=False, **options)

    def command(self, *args: Any, **options: Any) -> Callable[[_Command], _Command]:
        """As in Typer; a coroutine function runs in an event loop of its own."""
        return _running(super().command(*args, cls=_OneCommand, **options))

    def callback(self, *args: Any, **options: Any) -> Callable[[_Command], _Command]:
        """As in Typer; a coroutine function runs in an event loop of its own."""
        return _running(super().callback(*args, **options))


def _running(register: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    def add(command: _Command) -> _Command:
        @wraps(command)
        def run_it(**given: Any) -> None:
            run(command(**given))

        register(run_it if iscoroutinefunction(command) else command)
        return command

    return add


class _Plain:
    help: str | None
    params: list[Any]
    make_parser: Callable[..., Any]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As in Typer; refuses an option of which all values but the last would be ignored."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            if given.count(option) > 1 and not option.multiple:
                name = max(option.opts, key=len)
                raise typer.BadParameter("it is given more than once.", ctx=ctx, param_hint=name)
        parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return parsed

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """As in Typer, which would write a required argument in braces."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [re.sub("[{}]", "", piece) for piece in pieces]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """As in Typer; the lines of an example stay as they are."""
        formatter.write_paragraph()
        with formatter.indentation():
            for number, part in enumerate(re.split(r"```\n?", cleandoc(self.help or ""))):
                if number % 2:
                    part = "\n".join(f"{'':{formatter.current_indent + 2}}{line}"
                                     for line in part.splitlines())  # fmt: skip
                    formatter.write(f"\n{part}\n")
                elif part.strip():
                    formatter.write_text(part.strip())


class _OneCommand(_Plain, TyperCommand):
    pass


class _Group(_Plain, TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """As in Typer; with a heading for each panel, and whole sentences."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            sentence = " ".join(cleandoc(command.help or "").split("\n\n")[0].split())
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            panels.setdefault(panel, []).append((name, sentence))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def given(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option with a value, whose default is not shown."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """An argument, whose default is not shown."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **more)


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


def age(text: str, of: str) -> int:
    """Milliseconds of an age like 90d, 36h or 0m, which the option `of` gives."""
    with usage_errors():
        return age_ms(of, "" if text == "0" else text)  # in settings 0 is never, not at once


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ConfigurationError or BadRequest into a usage error, which exits with 2."""
    try:
        yield
    except (BadRequest, ConfigurationError) as error:
        raise typer.BadParameter(str(error)) from None


def _with_password(url: str) -> str:
    with usage_errors():
        return with_password(url, os.environ)


_SETTINGS = {setting.name: setting for setting in SETTINGS}
_PARSERS = {int: parse_int, int | None: parse_int, float: parse_seconds}
_OPTION_TYPES = {tuple[str, ...]: list[str] | None}


def option(name: str, *, hidden: bool = False) -> Any:
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
        hidden=hidden,
    )
    return Annotated[_OPTION_TYPES.get(setting.type, setting.type), declared]


_SHOWN = 80
"""Characters of a wrong argument that its refusal repeats."""


def is_table(text: str) -> bool:
    """Whether a text may be the id of a table, or the first digits of one."""
    return re.fullmatch(r"[0-9a-f-]{1,36}", text.lower()) is not None


def address_help(address: str) -> str:
    """What to do with a table's address on a server if an id or a file is wanted."""
    found = re.fullmatch(r"(https?://.+?)/tables/([0-9a-f]{32})\b.*", address)
    server, table = found.groups() if found else ("ADDRESS", "TABLE")
    return f"`dealer audit {table} --url {server}` checks a table of a server"


def _table(text: str | None) -> str | None:
    """Refuses what cannot be the id of a table, before a database is opened."""
    if text is None or is_table(text):
        return text
    if "://" in text:
        instead = address_help(text)
    # Not Path.exists, which raises if no file can have such a name.
    elif os.path.exists(text):
        instead = "`dealer verify FILE` checks a bundle"
    else:
        instead = "its first digits suffice, and `dealer tables` lists them"
    said = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    raise typer.BadParameter(f"A table's id is 32 hex digits, not {said!r}; {instead}.")


if TYPE_CHECKING:
    Database = str
    HouseKey = Path | None
    Marks = Path | None
    ArchiveFolder = Path | None
    Packs = Path | None
    Games = Path | None
else:
    Database, HouseKey, Marks = option("database"), option("house_key"), option("marks")
    ArchiveFolder, Packs, Games = option("archive"), option("packs"), option("games")

_TABLE = argument(
    "TABLE", "The table's id, or a prefix of it that no other table has.", callback=_table
)
TableId = Annotated[str, _TABLE]
OneTable = Annotated[str | None, _TABLE]
TableOrFile = Annotated[
    str,
    argument(
        "TABLE_OR_FILE",
        "The table's id, or a prefix of it that no other table has; or a bundle's file, "
        "- for standard input.",
    ),
]
OnlyRound = Annotated[int | None, given("N", "Only this round.", "--round", min=1)]
LIMIT_OF_LINES = typer.Option(metavar="N", min=1, help="Maximum number of lines.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Why = Annotated[
    str,
    typer.Option("--why", metavar="TEXT", help="The reason, recorded in the operators' journal."),
]
Operator = Annotated[
    str | None,
    given(
        "NAME",
        "Your name in the operators' journal; user@machine if not given.",
        "--operator",
        envvar="DEALER_OPERATOR",
    ),
]
HouseUrl = Annotated[
    str | None,
    given(
        "URL",
        "Address of a server to read from instead of the database, like "
        "http://127.0.0.1:8080/; needs the whole id of a table.",
        "--url",
    ),
]
Limit = Annotated[
    list[str] | None,
    given(
        "NAME=VALUE", "A limit, like rate=20; --help-all lists them. May be given several times."
    ),
]


def _print_all(context: typer.Context, asked: bool) -> None:
    if asked:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        context.command.epilog = LIMITS_HELP
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_print_all, is_eager=True, help="Show all settings and exit."
    ),
]


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting, --limit and --help-all to those of the command.

    Their values reach the command as keyword arguments, for `build_settings`. The help shows the
    settings that are `common`.
    """
    parameters = [
        Parameter(
            setting.name,
            Parameter.KEYWORD_ONLY,
            default=setting.default or None if setting.type == tuple[str, ...] else setting.default,
            annotation=option(setting.name, hidden=not setting.common),
        )
        for setting in SETTINGS
        if setting.flag
    ]
    for name, default, annotation in (("limit", None, Limit), ("help_all", False, HelpAll)):
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    parameters += [
        parameter
        for parameter in signature(command, eval_str=True).parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]

    @wraps(command)
    def with_settings(*, help_all: bool, **given: Any) -> None:
        command(**given)

    signature_ = signature(command).replace(parameters=parameters)
    with_settings.__signature__ = signature_  # type: ignore[attr-defined]
    with_settings.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    return with_settings


def build_settings(given: dict[str, Any]) -> Settings:
    """The settings from the values of the options by name; a wrong one exits with 2."""
    file = os.environ.get(PASSWORD_FILE_VARIABLE)
    with usage_errors():
        return Settings(
            **{
                setting.name: _value(setting, given[setting.name])
                for setting in SETTINGS
                if setting.flag
            },
            password_file=Path(file) if file else None,
            limits=read_limits(given["limit"] or (), os.environ),
        )


def _value(setting: Setting, given: Any) -> Any:
    if setting.default == ():
        return tuple(given or ())
    choices = {choice.lower(): choice for choice in setting.choices}
    return choices.get(given.lower(), given) if choices else given


def validate_paths(settings: Settings) -> None:
    """Raise ConfigurationError if the database, key or folders that are named cannot be used."""
    from dealer.eventlog import key_file
    from dealer.eventlog.backends import check_address

    check_address(settings.database)
    key_file(settings.database, settings.house_key)
    for folder in (settings.archive, settings.marks):
        if folder is not None and not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}. Create it first.")


def source_of(context: typer.Context, name: str) -> str:
    """Where the value of a setting is from: flag, environment or default."""
    origin = context.get_parameter_source(name)
    return "default" if origin is None else _SOURCES.get(origin.name, "default")


def whoami() -> str:
    """The user's and the machine's name, for the operators' journal."""
    try:
        user = getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{gethostname()}"


@asynccontextmanager
async def read_log(database: str) -> AsyncIterator[ReadOnlyLog]:
    """The log of this database, to be read, also while a server runs."""
    from dealer.eventlog.backends import open_readonly

    async with await open_readonly(database) as log:
        yield log


@asynccontextmanager
async def existing_log(database: str) -> AsyncIterator[Log]:
    """The log of this database, to be written; raises if there is no database yet."""
    from dealer.eventlog import Log

    async with await Log.open_existing(database) as log:
        yield log


async def table_id(log: ReadOnlyLog, text: str) -> bytes:
    """The id of the table, also an archived one, by its prefix; raises what `find_table` raises."""
    from dealer.service.tables.table_ids import table_with_prefix

    with usage_errors():
        return await table_with_prefix(log, text)


async def find_table(log: ReadOnlyLog, text: str) -> bytes:
    """The id of the one table whose id starts with `text`, hex digits.

    Raises UnknownTable if there is none or more than one, and TableArchived, which names the
    archive file, if its events are no longer in the database.
    """
    from dealer.service.tables import archive as archived

    found = await table_id(log, text)
    kept = await archived.find(log, found)
    if kept is not None:
        raise TableArchived(
            f"Table {found.hex()} is archived: its events are in {kept.file} in the folder of "
            "`dealer tables archive`. `dealer history FILE`, `dealer state FILE`, `dealer verify "
            "FILE` and `dealer lab table FILE` read it."
        )
    return found
