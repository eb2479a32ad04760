"""The page of the command line, from the declared commands, arguments and options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from dealer.cli.main import app
from dealer.config import SETTINGS
from dealer.docs.markdown import table

SETTINGS_MIN = 10
"""A command with as many flags of settings has them all; others have the database's."""


def commands() -> str:
    """Every command with its help, arguments and options."""
    group = typer.main.get_command(app)
    found = ["# Commands\n", _help(group)]
    return "\n".join([*found, *_described(group, "dealer")])


def _described(command: Any, path: str) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if path != "dealer":
        yield f"## {path}\n"
        yield _help(command)
        yield _parameters(command)
    for name in children:
        yield from _described(children[name], f"{path} {name}")


def _help(command: Any) -> str:
    return f"{inspect.cleandoc(command.help or '')}\n".replace("\n```\n", "\n```text\n", 1)


def _parameters(command: Any) -> str:
    """A table of arguments and options; those of a server are the settings, on their own page."""
    shown = [parameter for parameter in command.params if not _is_setting(parameter)]
    settings = len(command.params) - len(shown)
    if settings < SETTINGS_MIN:
        shown, settings = command.params, 0
    cells = [_parameter(parameter) for parameter in shown]
    text = table(("argument", "value", "meaning"), cells) if cells else ""
    return f"{text}\n" + "It also takes every [setting](settings.md) as a flag.\n" * bool(settings)


def _is_setting(parameter: Any) -> bool:
    return bool({setting.flag for setting in SETTINGS} & set(parameter.opts))


def _parameter(parameter: Any) -> list[str]:
    flags = [*parameter.opts, *parameter.secondary_opts]
    is_option = flags[0].startswith("-")
    name = ", ".join(flags) if is_option else parameter.metavar or parameter.name.upper()
    value = parameter.metavar or "" if is_option else ""
    default = parameter.default if isinstance(parameter.default, (int, float, str)) else None
    said = "" if default in (None, "", False) else f" Default: `{default}`."
    return [f"`{name}`", f"`{value}`" if value else "", f"{parameter.help or ''}{said}"]
