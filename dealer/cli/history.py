"""What was played, to read at leisure: a table in plain text, or a hand for poker programs."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import Database, HouseKey, HouseUrl
from dealer.cli.output import progress, say
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.history.story import Game


class Format(StrEnum):
    text = "text"
    phh = "phh"


def history(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_FILE",
            help="The table's id, or as much of its beginning as no other table has; or a bundle, "
            "- for standard input.",
            show_default=False,
        ),
    ],
    only: Annotated[
        int | None,
        typer.Option("--round", metavar="N", min=1, help="Only this round.", show_default=False),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="Plain text, or the poker hand history (PHH) of one closed round."
        ),
    ] = Format.text,
    database: Database = DATABASE,
    url: HouseUrl = None,
    house_key: HouseKey = None,
) -> None:
    """Write down what was played: who sat, how it was shuffled, where each card went.

    Everything is verified first; of a game that does not hold there is no history, and the exit
    code is 1. PHH is there for rounds of the poker games that it knows, if the table's rules name
    the game, like {"game": "holdem"}; what this dealer cannot know, the bets, is left out.

    ```
    dealer history 0199f3c2
    dealer history game.jsonl --round 2
    dealer history 0199f3c2 --round 1 --format phh > round-1.phh
    ```
    """
    from dealer.history import phh, text

    game = _read(source, database, url, house_key)
    if form is Format.text:
        for line in text.write(game, round=only):
            say(line)
        return
    if only is None and game.rounds != 1:
        raise typer.BadParameter(
            f"PHH has one round a file, and this table {game.rounds}: name one with --round."
        )
    typer.echo(phh.write(game, round=only or 1), nl=False)


def _read(source: str, database: str, url: str | None, house_key: Path | None) -> Game:
    from dealer.cli import bundle
    from dealer.cli.verify import examine, read_bundle
    from dealer.history.story import Game

    if source == "-" or (url is None and Path(source).is_file()):
        lines = read_bundle(source)
    else:
        if url is not None:
            given = bundle.from_house(url, source)
        else:
            with progress("Reading the log") as step:
                given = asyncio.run(
                    bundle.from_log(database, source, house_key=house_key, step=step)
                )
        lines = [line.encode(errors="surrogateescape") for line in given]
    return Game.read(lines, examine(lines, saved=[]))
