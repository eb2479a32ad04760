"""The statistics over what was really played: every shuffle of the tables that one names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.lab_ready import LEVEL, Heat, Level, draw, laboratory
from dealer.cli.options import AsJson, Database
from dealer.cli.output import progress, remark, say, say_json
from dealer.config import DATABASE
from dealer.errors import SetupError, UnknownTable

if TYPE_CHECKING:
    from dealer.lab.played import Kind
    from dealer.lab.tally import Samples

_CLOSED = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type = 'TableClosed' ORDER BY s.id
"""


def table(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE…",
            help="Tables, by the beginning of their ids; or files that hold their bundles.",
            show_default=False,
        ),
    ] = None,
    all_closed: Annotated[
        bool, typer.Option("--all", help="Every closed table of the database.")
    ] = False,
    level: Level = LEVEL,
    heat: Heat = None,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Put the shuffles of real tables to the test, as the log has them.

    Each bundle is verified first: a shuffle counts if it was recomputed from the secrets, so only
    rounds that are closed do. Decks of one size that were shuffled by as many steps are counted
    together. What so few shuffles cannot tell is said, and how many could. The exit code is 1 if
    something does not hold, or if the shuffles are not fair.

    ```
    dealer lab table 0199f3c2 0199f4d7
    dealer lab table --all --heat played.svg
    dealer lab table game.jsonl
    ```
    """
    laboratory()
    from dealer.lab import pictures, played, report
    from dealer.lab.findings import caught, judge

    names = [*(tables or ()), *(asyncio.run(_closed(database)) if all_closed else ())]
    if not names:
        missing = (
            "No table of this database is closed." if all_closed else "Name a table, or --all."
        )
        raise typer.BadParameter(missing)
    counted = played.counted([one for name in names for one in _shuffles(name, database)])
    fair = True
    for number, (kind, counts) in enumerate(counted.items()):
        found = judge(counts)
        fair &= not caught(found, level)
        heading = f"{kind.algorithm}, {kind.steps} of {kind.n - 1} steps, {kind.n} cards"
        if heat is not None and number == 0:
            draw(heat, pictures.heat(counts.shuffles, heading))
        if as_json:
            members = report.members(counts.shuffles, found, level)
            say_json({"tables": len(names)} | kind._asdict() | members)
            continue
        shuffles = counts.shuffles.shuffles
        say(f"{heading}: {shuffles:,} shuffle{'' if shuffles == 1 else 's'}.")
        for line in (*report.findings(found, level), ""):
            say(line)
    if not counted:
        remark("No shuffle of a closed round is there.")
    if not fair:
        raise typer.Exit(1)


def _shuffles(name: str, database: str) -> list[tuple[Kind, Samples]]:
    """The shuffles of one table, a verified one; `name` is a file or the beginning of an id."""
    from dealer.cli.verify import examine
    from dealer.lab import played

    lines = _lines(name, database)
    report = examine(lines, saved=[])
    if report.fault is not None:
        raise UnknownTable(f"{name} is not counted, for it does not hold: {report.fault}")
    return list(played.shuffles_of(lines, report.swaps))


def _lines(name: str, database: str) -> list[bytes]:
    from dealer.cli import bundle
    from dealer.proof.bundle import read

    file = Path(name)
    if file.is_file():
        try:
            return read(file.read_bytes())
        except OSError as error:
            raise SetupError(f"{file} cannot be read: {error.strerror}.") from None
    with progress("Reading the log") as step:
        lines = asyncio.run(bundle.from_log(database, name, house_key=None, step=step))
    return [line.encode(errors="surrogateescape") for line in lines]


async def _closed(database: str) -> list[str]:
    from dealer.eventlog.look import look

    async with await look(database) as log:
        return [row[0].hex() for row in await log.fetch(_CLOSED)]
