"""`dealer state`: a table at one version, as one viewer saw it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import AsJson, Database, HouseKey
from dealer.cli.output import echo, echo_err, format_time, safe_text, say_json
from dealer.config import DATABASE
from dealer.errors import ConfigurationError
from dealer.game.cards import UNKNOWN
from dealer.game.stacks import DECK, seat_of

if TYPE_CHECKING:
    from dealer.analysis.past_table import PastTable, Viewer


def state(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE_OR_FILE",
            help="The table's id, or a prefix of it that no other table has; or a bundle's file, "
            "- for standard input.",
            show_default=False,
        ),
    ],
    at: Annotated[
        int | None,
        typer.Option(
            metavar="VERSION", help="The version; the newest if not given.", show_default=False
        ),
    ] = None,
    seat: Annotated[
        int | None,
        typer.Option(
            metavar="SEAT", min=1, help="As the player of this seat saw it.", show_default=False
        ),
    ] = None,
    every_card: Annotated[
        bool, typer.Option("--all", help="With every card, as only the house knows it.")
    ] = False,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    as_json: AsJson = False,
) -> None:
    """Print a table as it was at a version: seats, deck, hands and piles, bottom first.

    Without --seat or --all it is what everyone saw. A card that the viewer did not know is `??`; of
    a stack without a known card only the number of cards is printed. The hidden cards of a round
    that is still open need the house key: without it a remark says so. A bundle is verified first;
    if a check fails, nothing is printed and the exit code is 1. Nothing is written.

    ```
    dealer state 0199f3c2 --at 57
    dealer state 0199f3c2 --at 57 --seat 2
    dealer state game.jsonl --at 57 --seat 2
    dealer state 0199f3c2 --json | jq .stacks.deck
    ```
    """
    if seat is not None and every_card:
        raise typer.BadParameter("Give --seat or --all, not both.")
    viewer: Viewer = "house" if every_card else seat
    from_file = source == "-" or Path(source).is_file()
    if from_file:
        found = _of_bundle(source, at, viewer)
    else:
        found = asyncio.run(_of_log(source, at, viewer, database, house_key))
    if as_json:
        say_json(
            {"table": found.table, "viewer": found.viewer}
            | found.members
            | {"stacks": found.stacks, "complete": found.complete}
        )
    else:
        for line in lines(found):
            echo(line)
    if not found.complete:
        why = "" if from_file else " without the house key (--house-key)"
        echo_err(f"Round {found.round} is still open:{why} its hidden cards are not known.")


def _of_bundle(source: str, at: int | None, viewer: Viewer) -> PastTable:
    from dealer.analysis.open_bundle import OpenBundle
    from dealer.cli.commands.verify import examine, read_bundle
    from dealer.history.replay import Game

    file = read_bundle(source)
    lines = file.lines()
    return OpenBundle(Game.read(lines, examine(lines, notes=file.notes))).state(at, viewer=viewer)


async def _of_log(
    table: str, at: int | None, viewer: Viewer, database: str, house_key: Path | None
) -> PastTable:
    from dealer.analysis.async_log import AsyncLog
    from dealer.cli.options import find_table
    from dealer.eventlog.backends import open_readonly

    async with await open_readonly(database) as log:
        id_ = await find_table(log, table)
    key = None if viewer is None else _key(database, house_key)
    async with await AsyncLog.open(database, key) as opened:
        return await opened.state(id_.hex(), at, viewer=viewer)


def _key(database: str, given: Path | None) -> Path | None:
    """The key that was named, or the one beside the database if it is there."""
    from dealer.eventlog.key_file import key_file

    if given is not None:
        return given
    try:
        file = key_file(database)
    except ConfigurationError:
        return None
    return file if file.exists() else None


def lines(found: PastTable) -> Iterator[str]:
    """The text for people."""
    yield f"Table {found.table}, version {found.version}, {format_time(found.at)} UTC"
    yield _whose(found)
    for seat, name in found.seats.items():
        host = ", host" if seat == found.host_seat else ""
        yield f"  seat {seat}: {safe_text(name)}{host}"
    if found.closed:
        yield "The table is closed."
    elif found.round is None:
        opened = {0: "no round was", 1: "1 round was"}.get(
            found.rounds, f"{found.rounds} rounds were"
        )
        yield f"No round is open; {opened} opened."
    else:
        yield from _round(found)


def _whose(found: PastTable) -> str:
    if isinstance(found.viewer, int):
        name = safe_text(found.seats[found.viewer])
        return f"As {name} (seat {found.viewer}) saw it:"
    return "With every card:" if found.viewer == "house" else "As everyone saw it:"


def _round(found: PastTable) -> Iterator[str]:
    running = found.members["round"].get("shuffle")
    shuffle = "" if running is None else f"; shuffle {running['k']} of {running['stack']} runs"
    yield f"Round {found.round}{shuffle}"
    labels = {name: _label(found, name) for name in sorted(found.stacks, key=_order)}
    width = max(map(len, labels.values()))
    for name, label in labels.items():
        cards = found.stacks[name]
        known = "" if set(cards) == {UNKNOWN} else "  " + " ".join(cards)
        yield f"  {label:<{width}}  {len(cards):>3}{known}"


def _label(found: PastTable, stack: str) -> str:
    seat = seat_of(stack)
    if seat is None:
        return stack.replace(":", " ")
    if seat not in found.seats:
        return f"hand of the free seat {seat}"
    return f"hand of {safe_text(found.seats[seat])} (seat {seat})"


def _order(stack: str) -> tuple[bool, str]:
    """The deck first, then hands, then piles."""
    return stack != DECK, stack
