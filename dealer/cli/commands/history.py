"""`dealer history`: a game as plain text, or one round as a poker hand history (PHH)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import Database, HouseKey, HouseUrl
from dealer.cli.output import echo
from dealer.config import DATABASE
from dealer.languages.language import DEFAULT, language_of, languages

if TYPE_CHECKING:
    from dealer.history.replay import Game


class Format(StrEnum):
    text = "text"
    phh = "phh"


def history(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_FILE",
            help="The table's id, or a prefix of it that no other table has; or a bundle's file, "
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
    lang: Annotated[
        str, typer.Option(metavar="TAG", help="The language of the text, such as de.")
    ] = DEFAULT,
    database: Database = DATABASE,
    url: HouseUrl = None,
    house_key: HouseKey = None,
) -> None:
    """Print a game's history: the players, the shuffles, and where each card went.

    The game is verified first; if a check fails, no history is printed and the exit code is 1. PHH
    is available for rounds of the poker games that it covers, if the table's rules name the game,
    like {"game": "holdem"}; bets are left out, because the log does not have them.

    ```
    dealer history 0199f3c2
    dealer history game.jsonl --round 2
    dealer history 0199f3c2 --round 1 --format phh > round-1.phh
    ```
    """
    from dealer.history import text
    from dealer.history.poker import phh
    from dealer.packs.catalogue import shipped

    language = language_of(lang)
    if language is None:
        raise typer.BadParameter(f"The languages are {', '.join(languages())}.")
    game = _read(source, database, url, house_key)
    if form is Format.text:
        for line in text.write(
            game, round=only, language=language, games=shipped().pile_titles(language.tag)
        ):
            echo(line)
        return
    if only is None and game.rounds != 1:
        raise typer.BadParameter(
            f"A PHH file has one round and this table has {game.rounds}: choose one with --round."
        )
    typer.echo(phh.write(game, round=only or 1), nl=False)


def _read(source: str, database: str, url: str | None, house_key: Path | None) -> Game:
    from dealer.cli.commands import bundle
    from dealer.cli.commands.verify import examine, read_bundle
    from dealer.history.replay import Game

    notes: list[str] = []
    if source == "-" or (url is None and Path(source).is_file()):
        file = read_bundle(source)
        lines, notes = file.lines(), file.notes
    else:
        lines = bundle.of_table(database, source, url=url, house_key=house_key)
    return Game.read(lines, examine(lines, notes=notes))
