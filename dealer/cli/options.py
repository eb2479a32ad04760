"""How commands are declared: help as plain text, shared options, those of settings, lookups."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from functools import partial
from getpass import getuser
from inspect import cleandoc, iscoroutine
from math import inf
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.exceptions import Exit

from dealer.cli.process import run
from dealer.config.checks import PASSWORD_FILE_VARIABLE, age_ms, with_password
from dealer.config.settings import LIMITS, SETTINGS, Setting, Settings, read_limits
from dealer.errors import BadRequest, ConfigurationError, TableArchived

if TYPE_CHECKING:
    from dealer.eventlog import Log, ReadOnlyLog

_Function = TypeVar("_Function", bound=Callable[..., Any])

_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment"}

LIMITS_HELP = "Limits, each also a variable like DEALER_LIMIT_RATE:\n\n\b\n" + "\n".join(
    f"{name}: {what}" for name, what in LIMITS.items()
)


class Command(click.Command):
    """A command that may be a coroutine, and in which an option is given once unless it may repeat.

    The lines between ``` in its help stay as they are.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """As in click; a coroutine runs in an event loop of its own."""
        result = super().invoke(ctx)
        return run(result) if iscoroutine(result) else result

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in click; refuses an option of which all values but the last would be ignored."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            if given.count(option) > 1 and isinstance(option, click.Option) and not option.multiple:
                name = max(option.opts, key=len)
                raise click.BadParameter("it is given more than once.", ctx=ctx, param_hint=name)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        with formatter.indentation():
            for number, part in enumerate(re.split(r"```\n?", cleandoc(self.help or ""))):
                if number % 2:
                    part = "\n".join(f"{'':{formatter.current_indent + 2}}{line}"
                                     for line in part.splitlines())  # fmt: skip
                    formatter.write(f"\n{part}\n")
                elif part.strip():
                    formatter.write_text(part.strip())


class Commands(click.Group, Command):
    """A group of commands, which its help lists in their order.

    `panels` are headings and the names of the commands below them.
    """

    command_class = Command

    def __init__(
        self, *args: Any, panels: Iterable[tuple[str, Iterable[str]]] = (), **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._panels: dict[str, list[str]] = {}
        for heading, names in panels:
            self._panels.setdefault(heading, []).extend(names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As in click; with a heading for each of `panels`, and whole sentences."""
        for panel, names in (self._panels or {"Commands": list(self.commands)}).items():
            with formatter.section(panel):
                formatter.write_dl([(name, self._sentence(name)) for name in names])

    def _sentence(self, name: str) -> str:
        return " ".join(cleandoc(self.commands[name].help or "").split("\n\n")[0].split())


def command(help: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declares a command that `dealer.cli.main` lists; those of a group are the group's."""
    return click.command(cls=Command, help=help)


PATH = click.Path(path_type=Path)


def given(
    flag: str, metavar: str, help: str, *names: str, **more: Any
) -> Callable[[_Function], _Function]:
    """An option with a value."""
    shown = {"show_default": "default" in more, "show_envvar": True}
    return click.option(flag, *names, metavar=metavar, help=help, **shown | more)


def flag(name: str, help: str, *names: str, **more: Any) -> Callable[[_Function], _Function]:
    """An option without a value."""
    return click.option(name, *names, is_flag=True, help=help, **more)


def parse_int(text: str | int) -> int:
    """A whole number, as an option gives it."""
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"Give a whole number, not {text!r}.") from None


def parse_seconds(text: str | float) -> float:
    """Seconds, 0 or more, as an option gives them."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise click.BadParameter(f"Give a number of seconds, 0 or more, not {text!r}.")
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
        raise click.BadParameter(str(error)) from None


def _with_password(_: click.Context, __: click.Parameter, url: str) -> str:
    with usage_errors():
        return with_password(url, os.environ)


_TYPES = {int: parse_int, int | None: parse_int, float: parse_seconds, Path | None: PATH}


def _setting(setting: Setting, *, hidden: bool = False) -> Callable[[_Function], _Function]:
    """The option of a setting."""
    return click.option(
        setting.flag,
        setting.name,
        envvar=setting.variable,
        show_envvar=True,
        help=setting.help,
        metavar=setting.metavar,
        type=_TYPES.get(setting.type),
        multiple=setting.default == (),
        callback=_with_password if setting.name == "database" else None,
        default=setting.default,
        show_default=setting.default not in (None, (), False),
        hidden=hidden,
    )


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


def _table(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
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
    raise click.BadParameter(f"A table's id is 32 hex digits, not {said!r}; {instead}.")


def _show_all(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        whole = copy(context.command)
        whole.params = [copy(parameter) for parameter in whole.params]
        for parameter in whole.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        whole.epilog = LIMITS_HELP
        click.echo(whole.get_help(context))
        raise Exit


_A_TABLE = "The table's id, or a prefix of it that no other table has"
_WHY = partial(given, "--why", "TEXT", "The reason, recorded in the operators' journal.")
_SHARED: Mapping[str, Callable[..., Any]] = {
    "table": click.argument("table", callback=_table, help=f"{_A_TABLE}."),
    "optional_table": click.argument("table", required=False, callback=_table, help=f"{_A_TABLE}."),
    "table_or_file": click.argument(
        "source",
        metavar="TABLE_OR_FILE",
        help=f"{_A_TABLE}; or a bundle's file, - for standard input.",
    ),
    "only": given("--round", "N", "Only this round.", "only", type=click.IntRange(1)),
    "lines": given("--limit", "N", "Maximum number of lines.", type=click.IntRange(1), default=100),
    "as_json": flag("--json", "Print JSON for scripts.", "as_json"),
    "why": _WHY(default="", show_default=False),
    "required_why": _WHY(required=True),
    "operator": given(
        "--operator",
        "NAME",
        "Your name in the operators' journal; user@machine if not given.",
        envvar="DEALER_OPERATOR",
    ),
    "url": given(
        "--url",
        "URL",
        "Address of a server to read from instead of the database, like "
        "http://127.0.0.1:8080/; needs the whole id of a table.",
    ),
    "limit": given(
        "--limit",
        "NAME=VALUE",
        "A limit, like rate=20; --help-all lists them. May be given several times.",
        multiple=True,
    ),
    "help_all": flag(
        "--help-all",
        "Show all settings and exit.",
        callback=_show_all,
        is_eager=True,
        expose_value=False,
    ),
} | {setting.name: _setting(setting) for setting in SETTINGS if setting.flag}


_UNREAD_KEY = given(
    "--house-key", "FILE", "Not needed: taken as by other commands.", type=PATH, expose_value=False
)


def takes(*names: str) -> Callable[[_Function], _Function]:
    """Add options and arguments that several commands have, in this order.

    A name is that of a setting, or one of those above, which may be an argument's: `table`,
    `optional_table` and `table_or_file`. What maintains a database also takes a house key that it
    does not need, so that one set of options is right for all of these commands.
    """
    unread = [_UNREAD_KEY] if "operator" in names and "house_key" not in names else []
    return _declared([_SHARED[name] for name in names] + unread)


def takes_settings(command: _Function) -> _Function:
    """Add an option for each setting, --limit and --help-all to those of the command.

    Their values reach the command as keyword arguments, for `build_settings`. The help shows the
    settings that are `common`.
    """
    settings = [_setting(one, hidden=not one.common) for one in SETTINGS if one.flag]
    return _declared([*settings, _SHARED["limit"], _SHARED["help_all"]])(command)


def _declared(options: Sequence[Callable[..., Any]]) -> Callable[[_Function], _Function]:
    def declare(command: _Function) -> _Function:
        for option in reversed(options):
            command = option(command)
        return command

    return declare


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
        if folder is not None:
            require_folder(folder)


def require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ConfigurationError(f"There is no folder {folder}. Create it first.")


def source_of(context: click.Context, name: str) -> str:
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
