"""Options of `dealer serve`, derived from the declared settings, and the `Settings` they give."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dealer.cli.options import setting_parameters, usage_errors
from dealer.config import LIMITS, PASSWORD_FILE_VARIABLE, SETTINGS, Setting, Settings, read_limits
from dealer.errors import ConfigurationError

LIMITS_HELP = "Limits, each also a variable like DEALER_LIMIT_RATE:\n\n" + "\n".join(
    f"- `{name}`: {what}" for name, what in LIMITS.items()
)

Limit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="One of the limits below, like rate=20. May be given several times.",
        show_default=False,
    ),
]


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting, and --limit, to those of the command.

    Their values reach the command as keyword arguments, for `build_settings`.
    """
    own = [
        parameter
        for parameter in signature(command, eval_str=True).parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]
    limit = Parameter("limit", Parameter.KEYWORD_ONLY, default=None, annotation=Limit)
    parameters = [*setting_parameters(), limit, *own]

    @wraps(command)
    def with_settings(**given: Any) -> None:
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
