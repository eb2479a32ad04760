"""The command `dealer`: its commands in groups, and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from dealer.cli.commands import (
    archive,
    audit,
    backup,
    bots,
    close,
    config,
    demo,
    disable,
    export,
    history,
    journal,
    key,
    lab,
    log,
    manifest,
    mcp,
    migrate,
    packs,
    rebuild,
    rotate,
    serve,
    state,
    tables,
    verify,
    webhook,
)
from dealer.cli.garbage_collection import few_collections
from dealer.cli.options import Commands
from dealer.cli.output import echo, echo_err
from dealer.cli.server_options import LIMITS_HELP
from dealer.cli.streams import guard
from dealer.errors import DealerError
from dealer.version import running_version

app = Commands(
    name="dealer",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

RUN, PLAY, CHECK = "Run a server", "Play", "Check a game"
LOG, OPERATE = "Inspect and maintain the log", "Operate the server"

app.command(rich_help_panel=RUN, epilog=LIMITS_HELP)(serve.serve)
app.command(rich_help_panel=RUN)(demo.demo)
app.command(rich_help_panel=RUN)(config.config)
app.command(rich_help_panel=PLAY)(bots.bots)
app.command(rich_help_panel=PLAY)(mcp.mcp)
app.command(rich_help_panel=CHECK)(audit.audit)
app.command(rich_help_panel=CHECK)(history.history)
app.command(rich_help_panel=CHECK)(export.export)
app.command(rich_help_panel=CHECK)(verify.verify)
app.command(rich_help_panel=CHECK)(manifest.manifest)
app.add_typer(lab.app, name="lab", rich_help_panel=CHECK)
app.command(rich_help_panel=LOG)(tables.tables)
app.command(rich_help_panel=LOG)(log.log)
app.command(rich_help_panel=LOG)(state.state)
app.command(rich_help_panel=LOG)(rebuild.rebuild)
app.command(rich_help_panel=LOG)(migrate.migrate)
app.command(rich_help_panel=OPERATE)(disable.disable)
app.command(rich_help_panel=OPERATE)(disable.enable)
app.command(rich_help_panel=OPERATE)(journal.journal)
app.command(rich_help_panel=OPERATE)(close.close)
app.command(rich_help_panel=OPERATE)(archive.archive)
app.command(rich_help_panel=OPERATE)(backup.backup)
app.command(rich_help_panel=OPERATE)(backup.restore)
app.add_typer(packs.app, name="packs", rich_help_panel=OPERATE)
app.add_typer(key.app, name="key", rich_help_panel=OPERATE)
app.add_typer(webhook.app, name="webhook", rich_help_panel=OPERATE)
app.command("rotate-key", rich_help_panel=OPERATE)(rotate.rotate_key)


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

    ```
    dealer serve                 start the server and print its address
    dealer demo                  let four players play a whole game, and check it
    dealer bots N TABLE          let bots sit down at a table
    dealer mcp                   let an agent play, by the Model Context Protocol
    dealer tables                list the tables of the database
    dealer audit TABLE           print every swap and draw of a table, and check the log
    dealer state TABLE --at 57   print a table as it was at a version
    dealer history TABLE         print the game as text or for poker programs
    dealer export TABLE -o FILE  write the log of a table to a file for others to check
    dealer verify FILE           check a game without a server or a database
    dealer lab run               test shuffles statistically
    ```

    Commands that only read work while a server is running on the same file.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit: 0 success, 1 an error or a failed check, 2 a usage error.

    141 if the reader of the output has closed the pipe.
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
