"""`dealer lab table`: statistical tests of the shuffles of played tables."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.commands.lab.options import (
    LEVEL,
    Heat,
    Level,
    draw,
    report_beside,
    require_packages,
)
from dealer.cli.options import AsJson, Database
from dealer.cli.output import echo_err, say_json
from dealer.config import DATABASE
from dealer.errors import UnknownTable

if TYPE_CHECKING:
    from dealer.lab.counts import Samples
    from dealer.lab.logged_tables import Kind

_CLOSED = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type = 'TableClosed' ORDER BY s.id
"""


def table(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE…",
            help="Tables, by the beginning of their ids, or bundle files.",
            show_default=False,
        ),
    ] = None,
    all_closed: Annotated[
        bool, typer.Option("--all", help="All closed tables of the database.")
    ] = False,
    level: Level = LEVEL,
    heat: Heat = None,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Test the shuffles of played tables statistically.

    Each bundle is verified first. Only shuffles that were recomputed from the secrets count, so
    only those of closed rounds. Shuffles with the same number of cards and steps are counted
    together. A test that needs more shuffles says how many. The exit code is 1 if a bundle does not
    verify, or if the shuffles are not fair.

    ```
    dealer lab table 0199f3c2 0199f4d7
    dealer lab table --all --heat played.svg
    dealer lab table game.jsonl
    ```
    """
    require_packages()
    from dealer.lab import logged_tables as played
    from dealer.lab import pictures, report
    from dealer.lab.verdicts import evaluate, significant

    say = report_beside(heat)
    names = [*(tables or ()), *(asyncio.run(_closed(database)) if all_closed else ())]
    if not names:
        missing = (
            "This database has no closed table." if all_closed else "Name a table, or use --all."
        )
        raise typer.BadParameter(missing)
    counted = played.counted([shuffle for name in names for shuffle in _shuffles(name, database)])
    fair = True
    for number, (kind, counts) in enumerate(counted.items()):
        found = evaluate(counts)
        fair &= not significant(found, level)
        heading = f"{kind.algorithm}, {kind.steps} of {kind.n - 1} steps, {kind.n} cards"
        if heat is not None and number == 0:
            draw(heat, pictures.heat(counts.shuffles, heading))
        if as_json:
            members = report.members(counts.shuffles, found, level)
            say_json({"tables": len(names)} | kind._asdict() | members, say=say)
            continue
        shuffles = counts.shuffles.shuffles
        say(f"{heading}: {shuffles:,} shuffle{'' if shuffles == 1 else 's'}.")
        for line in (*report.findings(found, level), ""):
            say(line)
    if not counted:
        echo_err("These tables have no shuffle in a closed round.")
    if not fair:
        raise typer.Exit(1)


def _shuffles(name: str, database: str) -> list[tuple[Kind, Samples]]:
    """The shuffles of one verified table; `name` is a bundle file or the beginning of an id."""
    from dealer.cli.commands.verify import examine
    from dealer.lab import logged_tables as played

    lines, notes = _lines(name, database)
    report = examine(lines, notes=notes)
    if report.fault is not None:
        raise UnknownTable(f"{name} does not verify, so it is not counted: {report.fault}")
    return list(played.shuffles_of(lines, report.swaps))


def _lines(name: str, database: str) -> tuple[list[bytes], list[str]]:
    """The lines of a bundle, and what was undone in its file."""
    from dealer.cli.commands import bundle
    from dealer.cli.commands.verify import read_bundle

    if Path(name).is_file():
        file = read_bundle(name)
        return file.lines(), file.notes
    return bundle.of_table(database, name), []


async def _closed(database: str) -> list[str]:
    from dealer.eventlog.readonly import open_readonly

    async with await open_readonly(database) as log:
        return [row[0].hex() for row in await log.fetch(_CLOSED)]
