"""The table of settings, from their declarations in `dealer.config`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from dealer.config import LIMIT_VARIABLE, LIMITS, SETTINGS, Settings
from dealer.docs.markdown import table
from dealer.docs.reference.tables import with_table

_HEADING = ("flag and variable", "value", "default", "meaning")


def with_settings(text: str) -> str:
    """The section of REFERENCE.md with the declared settings, and the kind of each value."""
    return with_table(text, table(_HEADING, [*_settings(), *_limits()]))


def _settings() -> Iterator[list[str]]:
    for setting in SETTINGS:
        value = setting.metavar or setting.type.__name__.upper()
        name = _names(setting.flag, setting.variable)
        yield [name, _code(value), _default(setting.default), setting.help]


def _limits() -> Iterator[list[str]]:
    limits = Settings().limits
    for limit in fields(limits):
        value = getattr(limits, limit.name)
        variable = f"{LIMIT_VARIABLE}{limit.name.upper()}"
        kind = "COUNT" if isinstance(value, int) else "NUMBER"
        name = _names(f"--limit {limit.name}=", variable)
        yield [name, _code(kind), _default(value), LIMITS[limit.name]]


def _names(flag: str, variable: str) -> str:
    """Both in one cell, each on a line."""
    return "<br>".join(_code(name) for name in (flag, variable) if name)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _default(value: object) -> str:
    return "" if value in (None, ()) else f"`{value}`"
