"""`dealer audit`: a table's events in sentences with every swap, and the verifier's report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dealer.cli.options import AsJson, Database, HouseKey, HouseUrl, TableId, find_table
from dealer.cli.output import echo, echo_err, format_time, say_json
from dealer.config import DATABASE
from dealer.errors import DatabaseDamaged, DealerError
from dealer.languages.language import DEFAULT

if TYPE_CHECKING:
    from dealer.history.sentences import Sentence
    from dealer.proof.verify import Report

_HEADING = f"{'step':>10} {'i':>4} {'j':>4}  {'words of the tape':<18} cards"


def audit(
    table: TableId,
    only: Annotated[
        int | None,
        typer.Option("--round", metavar="N", min=1, help="Only this round.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The table's key, if you know it.", show_default=False),
    ] = None,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    url: HouseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Print what happened at a table, recompute every shuffle, and report whether it was fair.

    It prints for each step of a shuffle the two places, the random 16-bit words that gave the
    second place (all but the last were rejected), and the two cards that were exchanged. It also
    prints every draw, every change of a hand, and the result of each check of the verifier. Cards
    of a round that is not closed yet are shown as ??. The table's rows in the database are checked,
    too, with the house key also the hidden parts of an open round. The exit code is 1 if a check
    fails.

    ```
    dealer audit 0199f3c2
    dealer audit 0199f3c2 --round 2
    dealer audit 0199f3c2a1b2c3d4e5f60718293a4b5c --url http://127.0.0.1:8080/
    ```
    """
    from dealer.cli.commands import bundle
    from dealer.cli.commands.verify import as_members, examine, say_verdicts

    damaged = None if url is not None else asyncio.run(_damage(database, table, house_key))
    try:
        lines = bundle.of_table(database, table, url=url, house_key=house_key)
    except DealerError as error:
        raise damaged or error from None
    report = examine(lines, key=key)
    sentences = [
        sentence for sentence in _sentences(lines, report) if only in (None, sentence.round)
    ]
    if only is not None and report.ok and not sentences:
        rounds = report.remarks.rounds
        raise typer.BadParameter(f"This table has {rounds} rounds and no round {only}.")
    if as_json:
        story = {"story": [_members(sentence) for sentence in sentences]}
        say_json(as_members(report) | story | ({"damaged": str(damaged)} if damaged else {}))
    else:
        _print(sentences)
        say_verdicts(report)
    if damaged is not None:
        raise damaged
    if not report.ok:
        raise typer.Exit(1)


async def _damage(database: str, table: str, house_key: Path | None) -> DatabaseDamaged | None:
    """What is wrong with the rows of the table in the log, which its bundle need not show."""
    from dealer.eventlog.backends import open_readonly
    from dealer.service.operations.log_check import keys_of, require_intact

    async with await open_readonly(database) as log:
        table_id = await find_table(log, table)
        try:
            whole = await require_intact(log, table_id, await keys_of(database, house_key))
        except DatabaseDamaged as error:
            return error
    if not whole:
        echo_err(
            "Without the house key (--house-key) the hidden parts of the open round were not "
            "checked."
        )
    return None


def _sentences(lines: list[bytes], report: Report) -> list[Sentence]:
    """Sentences for the events that were verified; none if the bundle is not a signed log."""
    from dealer.history.sentences import describe_all
    from dealer.packs.catalogue import shipped

    if report.fault is not None:
        if report.fault.check in ("form", "heads", "saved"):
            return []
        lines = lines[: report.fault.line]
    leaves = (line for line in lines[1:] if not line.startswith(b'{"checkpoint":'))
    return list(describe_all(leaves, report.swaps, shipped().pile_titles(DEFAULT)))


def _print(sentences: list[Sentence]) -> None:
    swapping = False
    for sentence in sentences:
        swap = sentence.swap
        if swap is None:
            swapping = False
            echo(f"{sentence.version:>6}  {format_time(sentence.at)[11:]}  {sentence.sentence}")
            continue
        if not swapping:
            echo(_HEADING)
            swapping = True
        words = " ".join(map(str, swap.words))
        a, b = swap.cards
        echo(f"{swap.step:>10} {swap.i:>4} {swap.j:>4}  {words:<18} {a} {b}")


def _members(sentence: Sentence) -> dict[str, Any]:
    members: dict[str, Any] = {
        "version": sentence.version,
        "at": sentence.at,
        "type": sentence.type,
        "sentence": sentence.sentence,
    }
    if sentence.round:
        members["round"] = sentence.round
    if sentence.cards:
        members["cards"] = sentence.cards
    if (swap := sentence.swap) is not None:
        members |= {"k": swap.shuffle_index, "step": swap.step}
        members |= {"i": swap.i, "j": swap.j, "words": swap.words}
    return members
