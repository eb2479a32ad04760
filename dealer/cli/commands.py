"""The list of everything that `dealer` can be asked to do, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from dealer.cli import (
    archive,
    audit,
    close,
    config,
    demo,
    disable,
    export,
    history,
    journal,
    lab,
    log,
    migrate,
    rebuild,
    rotate,
    serve,
    tables,
    verify,
)
from dealer.cli.version import version
from dealer.errors import DealerError

app = typer.Typer(
    name="dealer",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PLAY, CHECK, BOOKS = "Open a house and play", "Check a game", "Look after the log"
HOUSE = "Look after the house"

app.command(rich_help_panel=PLAY, epilog=serve.LIMITS_HELP)(serve.serve)
app.command(rich_help_panel=PLAY)(demo.demo)
app.command(rich_help_panel=PLAY)(config.config)
app.command(rich_help_panel=CHECK)(audit.audit)
app.command(rich_help_panel=CHECK)(history.history)
app.command(rich_help_panel=CHECK)(export.export)
app.command(rich_help_panel=CHECK)(verify.verify)
app.add_typer(lab.app, name="lab", rich_help_panel=CHECK)
app.command(rich_help_panel=BOOKS)(tables.tables)
app.command(rich_help_panel=BOOKS)(log.log)
app.command(rich_help_panel=BOOKS)(rebuild.rebuild)
app.command(rich_help_panel=BOOKS)(migrate.migrate)
app.command(rich_help_panel=HOUSE)(disable.disable)
app.command(rich_help_panel=HOUSE)(disable.enable)
app.command(rich_help_panel=HOUSE)(journal.journal)
app.command(rich_help_panel=HOUSE)(close.close)
app.command(rich_help_panel=HOUSE)(archive.archive)
app.command("rotate-key", rich_help_panel=HOUSE)(rotate.rotate_key)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"dealer {version()}")
        raise typer.Exit


@app.callback()
def dealer(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Which version."),
    ] = False,
) -> None:
    """A card dealer that players can check.

    Every swap of a shuffle, every draw and every change of a hand is an event in a SQL log; the
    house signs the log, and anybody can recompute a finished round swap by swap.

    ```
    dealer serve                 open a house here; it says at which address
    dealer demo                  four players play a whole game, and it is checked
    dealer tables                what has been played here
    dealer audit TABLE           every swap and draw of a table; was it fair?
    dealer history TABLE         what was played, to read or for poker programs
    dealer export TABLE -o FILE  the whole log for somebody else to check
    dealer verify FILE           check a game, without any house or database
    dealer lab run               shuffle very many times: is it fair?
    ```

    Commands that only read work beside a running house, on the same file.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 done, 1 it went wrong or does not hold, 2 wrongly asked."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a player's name shows something in its place.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(None if arguments is None else list(arguments), prog_name="dealer")
    except DealerError as error:
        with suppress(OSError):
            typer.echo(f"dealer: {error}", err=True)
        sys.exit(1)
    sys.exit(0)
