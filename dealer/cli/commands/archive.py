"""`dealer archive`: writes the bundles of closed tables to files, and deletes their events."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.options import Database, Operator, existing_log, find_table, usage_errors, whoami
from dealer.cli.output import echo, echo_err, program, progress
from dealer.config import DATABASE
from dealer.errors import ConfigurationError, DatabaseDamaged

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}


def archive(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FOLDER", envvar="DEALER_ARCHIVE", help="Folder for bundles."),
    ],
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="One closed table.", show_default=False),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="All tables that were closed at least this long ago: 90d, 36h or 30m.",
            show_default=False,
        ),
    ] = None,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, for the journal.")
    ] = "",
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Write the bundles of closed tables to files, and delete their events from the database.

    Each bundle is verified, written, synced to disk, read and verified again; only then are the
    table's events deleted. The next call finishes an interrupted one. Back up the folder: it has
    the only copy of these tables. `dealer serve --archive FOLDER` serves the bundles.

    ```
    dealer archive --older-than 90d --to /var/lib/dealer/archive
    dealer archive 0199f3c2 --to archive
    ```
    """
    if (table is None) == (older_than is None):
        raise typer.BadParameter("Name a table, or give an age with --older-than.")
    oldest = None if older_than is None else age(older_than)
    with usage_errors():
        if not to.is_dir():
            raise ConfigurationError(f"There is no folder {to}. Create it first.")
    done, bad = asyncio.run(archive_tables(database, to, table, oldest, why, operator or whoami()))
    echo(f"{done} table{'' if done == 1 else 's'} archived to {to}.")
    if bad:
        raise DatabaseDamaged(
            f"Not archived or deleted: {', '.join(bad)}. Check each table with "
            "`dealer audit TABLE`, and compare it with the bundles that its players saved."
        )


def age(text: str) -> int:
    """Milliseconds."""
    match = re.fullmatch(r"([0-9]{1,6})([dhm])", text)
    if match is None:
        raise typer.BadParameter(f"Give an age like 90d, 36h or 30m, not {text!r}.")
    return int(match[1]) * _UNITS[match[2]]


async def archive_tables(
    database: str, folder: Path, table: str | None, age: int | None, why: str, who: str
) -> tuple[int, list[str]]:
    """Archive one table, or all closed for `age` milliseconds.

    Returns how many were archived, and the ids of those that could not be.
    """
    from dealer.service.operations.archiver import Archiver, exclusive

    with progress("Reading the log") as step:
        async with exclusive(folder), existing_log(database) as log:
            archiver = Archiver(log, database, folder, who=who, why=why, step=step)
            await archiver.finish_interrupted()
            if table is not None:
                tables = [await find_table(log, table)]
            else:
                tables = await archiver.closed_tables(age=age or 0)
            bad = []
            async for result in archiver.archive_all(tables):
                if result.error is None:
                    name = result.table.hex()
                    echo_err(f"{name} is in {result.file}; {program()} verify checks it.")
                elif table is not None:
                    raise result.error
                else:
                    echo_err(str(result.error))
                    bad.append(result.table.hex())
            return len(tables) - len(bad), bad
