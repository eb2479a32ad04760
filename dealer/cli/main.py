"""The command `dealer`: its commands in groups, and its exit codes."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click
from click.exceptions import Exit

from dealer.cli.options import Commands, flag
from dealer.cli.output import echo, echo_err, guard
from dealer.cli.process import few_collections
from dealer.errors import DealerError
from dealer.version import running_version

_COMMANDS = (
    ("Run a server", "serve", "serve"),
    ("Run a server", "config", "config"),
    ("Play", "play", "demo bots practice"),
    ("Check a game", "audit", "audit history state"),
    ("Check a game", "tables", "export"),
    ("Check a game", "verify", "verify"),
    ("Check a game", "lab", "lab"),
    ("Maintain the database", "database", "migrate rebuild backup restore journal rotate-key"),
    ("Operate the server", "tables", "tables"),
    ("Operate the server", "services", "key webhook"),
    ("Operate the server", "config", "packs"),
)
"""The heading in the help, the module of `dealer.cli.commands`, and the commands that it has."""


class _Imported(UserDict[str, Any]):
    """Commands by their names; the module of one is imported when it is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"dealer.cli.commands.{self.data[name]}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command


def _print_version(_: click.Context, __: click.Parameter, asked: bool) -> None:
    if asked:
        echo(f"dealer {running_version()}")
        raise Exit


@click.command(
    cls=Commands,
    panels=[(panel, names.split()) for panel, _, names in _COMMANDS],
    commands=_Imported({name: module for _, module, names in _COMMANDS for name in names.split()}),
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A card dealer that players can check.

    Every swap of a shuffle, every draw and every change of a hand is an event in a SQL log. The
    house signs the log, and any player can recompute a closed round swap by swap.

    Commands that only read work while a server is running on the same file.
    """,
)
@flag(
    "--version",
    "Print the version and exit.",
    callback=_print_version,
    is_eager=True,
    expose_value=False,
)
def app() -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 success, 1 an error or a failed check, 2 a usage error.

    `verify` and `audit` exit with 3 for a practice table, which is neither fair nor forged. 141 if
    the reader of the output has closed the pipe.
    """
    guard()
    try:
        try:
            with few_collections():
                app(None if arguments is None else list(arguments), prog_name="dealer")
        finally:
            sys.stdout.flush()
    except DealerError as error:
        echo_err(f"dealer: {error}")
        sys.exit(1)
    sys.exit(0)
