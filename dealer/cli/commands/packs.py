"""`dealer packs check`: checks files of packs and games before a server uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dealer.cli.options import Commands
from dealer.cli.output import echo
from dealer.errors import ConfigurationError
from dealer.packs.catalogue import read_file, read_folders

app = Commands(no_args_is_help=True, help="Check packs of cards and game files.")


@app.callback()
def packs() -> None:
    """Check packs of cards and game files."""


@app.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Files of packs or games.", show_default=False),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--packs",
            metavar="FOLDER",
            help="Your folder of packs, which a game may refer to.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check files of packs (.json, .csv) and games (.json), and print the codes of the cards.

    A wrong file is reported with the reason, and the exit code is 1.
    """
    wrong = False
    known = read_folders(folder, None).packs
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
        raise typer.Exit(1)


def _summary(kind: str, read: dict[str, Any]) -> str:
    if kind == "game":
        players = read["players"]
        return (
            f"the game {read['game']}, {players['min']} to {players['max']} players, "
            f"{read['cards']} cards."
        )
    deck = read["deck"]
    return f"the pack {read['pack']}, {len(deck)} cards, codes {deck[0]} to {deck[-1]}."
