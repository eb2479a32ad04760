"""Check what a server would use: its settings, `dealer config`, and its cards, `dealer packs`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.exceptions import Exit

from dealer.cli import options
from dealer.cli.output import echo, safe_text, say_json
from dealer.config.checks import masked
from dealer.config.settings import LIMIT_VARIABLE, SETTINGS, Settings
from dealer.errors import ConfigurationError, amount
from dealer.packs.catalogue import read_file, read_folders

packs = options.Commands(help="Check packs of cards and game files.")


class SettingInForce(NamedTuple):
    """One setting in force; `source` is default, environment or flag."""

    flag: str
    variable: str
    value: str
    source: str


@options.command(
    help="""Print every setting that `dealer serve` would use with the same flags and environment.

    Each line has the flag, the environment variable, the value and its source. A password in the
    database address is hidden. With an SQLite file the last line is the version of the SQLite
    library. The exit code is 2 if `dealer serve` would refuse the settings.

    ```
    dealer config
    DEALER_PORT=80 dealer config --limit rate=20 --json
    ```
    """
)
@options.takes_settings
@options.takes("as_json")
@click.pass_context
def config(context: click.Context, /, as_json: bool, **given: Any) -> None:
    from dealer.eventlog.address import is_postgres
    from dealer.eventlog.sqlite.wal import library_version

    settings = options.build_settings(given)
    found = in_force(settings, given, context)
    widths = [max(len(row[place]) for row in found) for place in range(3)]
    for row in found:
        if as_json:
            say_json(row._asdict())
            continue
        cells = [safe_text(text).ljust(width) for text, width in zip(row, widths, strict=False)]
        echo("  ".join([*cells, row.source]).rstrip())
    if not is_postgres(settings.database):
        library = SettingInForce("", "SQLite", library_version(), "library")
        if as_json:
            say_json(library._asdict())
        else:
            echo(f"{library.variable} {library.value}")
    with options.usage_errors():
        options.validate_paths(settings)


def in_force(
    settings: Settings, given: dict[str, Any], context: click.Context
) -> list[SettingInForce]:
    """Every setting of the running command, limits last."""
    found = []
    for setting in SETTINGS:
        source = options.source_of(context, setting.name)
        if not setting.flag and os.environ.get(setting.variable):
            source = "environment"
        found.append(
            SettingInForce(
                setting.flag, setting.variable, _text(getattr(settings, setting.name)), source
            )
        )
    flags = {pair.partition("=")[0].replace("-", "_") for pair in given["limit"] or ()}
    for limit in fields(settings.limits):
        variable = f"{LIMIT_VARIABLE}{limit.name.upper()}"
        source = "environment" if os.environ.get(variable) else "default"
        source = "flag" if limit.name in flags else source
        value = _text(getattr(settings.limits, limit.name))
        found.append(SettingInForce(f"--limit {limit.name}=", variable, value, source))
    return found


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    if value is None:
        return ""
    return masked(value) if isinstance(value, str) and "://" in value else str(value)


@packs.command(
    help="""Check files of packs (.json, .csv) and games (.json), and print the codes of the cards.

    A wrong file is reported with the reason, and the exit code is 1. A game may have a pack of
    these files, of the folder, or of this version.
    """
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=options.PATH,
    metavar="FILE...",
    help="Files of packs or games.",
)
@options.takes("packs")
def check(files: tuple[Path, ...], packs: Path | None) -> None:
    wrong = False
    known = read_folders(packs, None).packs | _packs_among(files)
    for file in files:
        notes: list[str] = []
        try:
            kind, read = read_file(file, packs=known, notes=notes)
        except ConfigurationError as error:
            echo(f"{file}: {error}")
            wrong = True
            continue
        echo(" ".join((f"{file}: {_summary(kind, read)}", *notes)))
    if wrong:
        raise Exit(1)


def _packs_among(files: Sequence[Path]) -> dict[str, Any]:
    """The packs of these files, by name, without those that are wrong."""
    found = {}
    for file in files:
        with suppress(ConfigurationError):  # which `check` reports
            kind, read = read_file(file, packs={})
            if kind == "pack":
                found[read["pack"]] = read
    return found


def _summary(kind: str, read: dict[str, Any]) -> str:
    if kind == "game":
        players = read["players"]
        return (
            f"the game {read['game']}, {players['min']} to {amount(players['max'], 'player')}, "
            f"{amount(read['cards'], 'card')}."
        )
    deck = read["deck"]
    return f"the pack {read['pack']}, {amount(len(deck), 'card')}, codes {deck[0]} to {deck[-1]}."
