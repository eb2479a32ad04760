"""A table's story with every swap of every shuffle, and the verdict of the verifier under it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import AsJson, Database, HouseKey, HouseUrl, TableId
from dealer.cli.output import moment, progress, say, say_json
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.history.words import Told
    from dealer.proof.verify import Report, Swap

_HEADING = f"{'step':>10} {'i':>4} {'j':>4}  {'words of the tape':<18} cards"


def audit(
    table: TableId,
    only: Annotated[
        int | None,
        typer.Option("--round", metavar="N", min=1, help="Only this round.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The table's key as you know it.", show_default=False),
    ] = None,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    url: HouseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Tell what happened at a table, recompute every shuffle, and say whether all was fair.

    For each step of a shuffle: the two places, the words of the tape that the second one came
    from (all but the last were refused), and the two cards that changed. Then every draw and
    every change of a hand, and yes or no to each of the verifier's questions. Cards of a round
    that is not closed yet stay ??. The exit code is 1 if something does not hold.

    ```
    dealer audit 0199f3c2
    dealer audit 0199f3c2 --round 2
    dealer audit 0199f3c2a1b2c3d4e5f60718293a4b5c --url http://127.0.0.1:8080/
    ```
    """
    from dealer.cli import bundle
    from dealer.cli.verify import as_members, examine, say_verdicts

    if url is not None:
        lines = bundle.from_house(url, table)
    else:
        with progress("Reading the log") as step:
            lines = asyncio.run(bundle.from_log(database, table, house_key=house_key, step=step))
    report = examine([line.encode(errors="surrogateescape") for line in lines], key=key, saved=[])
    story = [told for told in _story(lines, report) if only in (None, told.round)]
    if only is not None and report.ok and not story:
        rounds = report.remarks.rounds
        raise typer.BadParameter(f"This table has {rounds} rounds and no round {only}.")
    if as_json:
        say_json(as_members(report) | {"story": [_members(told) for told in story]})
    else:
        _print(story)
        say_verdicts(report)
    if not report.ok:
        raise typer.Exit(1)


def _story(lines: list[str], report: Report) -> list[Told]:
    """Everything that was found true: of a bundle that is no log of the house's, nothing."""
    from dealer.history.words import tell

    if report.fault is not None:
        if report.fault.check in ("form", "heads", "saved"):
            return []
        lines = lines[: report.fault.line]
    leaves = (line for line in lines[1:] if not line.startswith('{"checkpoint":'))
    return list(tell(leaves, report.swaps))


def _print(story: list[Told]) -> None:
    swapping = False
    for told in story:
        swap = told.swap
        if swap is None:
            swapping = False
            say(f"{told.version:>6}  {moment(told.at)[11:]}  {told.sentence}")
            continue
        if not swapping:
            say(_HEADING)
            swapping = True
        words = " ".join(map(str, swap.words))
        a, b = swap.cards
        say(f"{swap.step:>10} {swap.i:>4} {swap.j:>4}  {words:<18} {a} {b}")


def _members(told: Told) -> dict[str, Any]:
    members: dict[str, Any] = {
        "version": told.version,
        "at": told.at,
        "type": told.type,
        "sentence": told.sentence,
    }
    if told.round:
        members["round"] = told.round
    if told.cards:
        members["cards"] = told.cards
    if told.swap is not None:
        members |= _swap(told.swap)
    return members


def _swap(swap: Swap) -> dict[str, Any]:
    return {"k": swap.k, "step": swap.step, "i": swap.i, "j": swap.j, "words": swap.words}
