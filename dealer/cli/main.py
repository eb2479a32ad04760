"""The command `dealer`: its commands in groups, and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from dealer.cli.commands import audit, config, database, lab, play, serve, services, tables, verify
from dealer.cli.options import Commands
from dealer.cli.output import echo, echo_err, guard
from dealer.cli.process import few_collections
from dealer.errors import DealerError
from dealer.version import running_version

app = Commands(
    name="dealer",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for panel, commands in {
    "Run a server": (serve.serve, config.config),
    "Play": (play.demo, play.bots, play.practice, play.mcp),
    "Check a game": (audit.audit, audit.history, audit.state, tables.export, verify.verify),
    "Maintain the database": (
        database.migrate,
        database.rebuild,
        database.backup,
        database.restore,
        database.journal,
        database.rotate_key,
    ),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
for name, group, panel in (
    ("lab", lab.app, "Check a game"),
    ("tables", tables.app, "Operate the server"),
    ("key", services.keys, "Operate the server"),
    ("webhook", services.webhooks, "Operate the server"),
    ("packs", config.packs, "Operate the server"),
):
    app.add_typer(group, name=name, rich_help_panel=panel)


def _print_version(asked: bool) -> None:
    if asked:
        echo(f"dealer {running_version()}")
        raise typer.Exit


@app.callback()
def dealer(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A card dealer that players can check.

    Every swap of a shuffle, every draw and every change of a hand is an event in a SQL log. The
    house signs the log, and any player can recompute a closed round swap by swap.

    Commands that only read work while a server is running on the same file.
    """


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
