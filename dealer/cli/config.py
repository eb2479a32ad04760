"""What a house would be told if it opened now, and by whom: a flag, the environment, or nobody."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, NamedTuple, get_type_hints

import typer

from dealer.cli.options import AsJson, asked_rightly
from dealer.cli.output import harmless, say, say_json
from dealer.cli.serve import check_places, serve, settled
from dealer.config import LIMIT_VARIABLE, SETTINGS, Settings, masked

_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment"}
_BY_NAME = inspect.Parameter.KEYWORD_ONLY


class Told(NamedTuple):
    """One setting in force; `source` is default, environment or flag."""

    flag: str
    variable: str
    value: str
    source: str


def _like_serve(command: Callable[..., None]) -> Callable[..., None]:
    """Takes the options of `dealer serve`, whatever they are, and --json."""
    taken = inspect.signature(serve, eval_str=True)
    kinds = get_type_hints(serve, include_extras=True)
    json_too = inspect.Parameter("as_json", _BY_NAME, default=False, annotation=AsJson)
    context = inspect.Parameter("context", _BY_NAME, annotation=typer.Context)

    @wraps(command)
    def like_serve(**told: Any) -> None:
        command(**told)

    like_serve.__signature__ = taken.replace(  # type: ignore[attr-defined]
        parameters=[*taken.parameters.values(), json_too, context]
    )
    like_serve.__annotations__ = {
        **kinds,
        "as_json": AsJson,
        "context": typer.Context,
    }
    return like_serve


@_like_serve
def config(*, context: typer.Context, as_json: bool, **told: Any) -> None:
    """Print every setting that `dealer serve` would have with the same flags and environment.

    Each line: flag, variable of the environment, value, and where that came from. A password in the
    database's address is not shown. On an SQLite file the last line is the version of the SQLite
    library. The exit code is 2 if `dealer serve` would not take them.

    ```
    dealer config
    DEALER_PORT=80 dealer config --limit rate=20 --json
    ```
    """
    from dealer.eventlog.server import is_postgres
    from dealer.eventlog.wal import library_version

    settings = settled(told)
    found = in_force(settings, told, context)
    widths = [max(len(one[place]) for one in found) for place in range(3)]
    for one in found:
        if as_json:
            say_json(one._asdict())
            continue
        cells = [harmless(text).ljust(width) for text, width in zip(one, widths, strict=False)]
        say("  ".join([*cells, one.source]).rstrip())
    if not is_postgres(settings.database):
        library = Told("", "SQLite", library_version(), "library")
        if as_json:
            say_json(library._asdict())
        else:
            say(f"{library.variable} {library.value}")
    with asked_rightly():
        check_places(settings)


def in_force(settings: Settings, told: dict[str, Any], context: typer.Context) -> list[Told]:
    """Every setting of the running command, the limits last."""
    found = []
    for one in SETTINGS:
        given = context.get_parameter_source(one.name)
        source = "default" if given is None else _SOURCES.get(given.name, "default")
        if not one.flag and os.environ.get(one.variable):
            source = "environment"
        found.append(Told(one.flag, one.variable, _text(getattr(settings, one.name)), source))
    flags = {pair.partition("=")[0].replace("-", "_") for pair in told["limit"] or ()}
    for limit in fields(settings.limits):
        variable = f"{LIMIT_VARIABLE}{limit.name.upper()}"
        source = "environment" if os.environ.get(variable) else "default"
        source = "flag" if limit.name in flags else source
        value = _text(getattr(settings.limits, limit.name))
        found.append(Told(f"--limit {limit.name}=", variable, value, source))
    return found


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if value is None:
        return ""
    return masked(value) if isinstance(value, str) and "://" in value else str(value)
