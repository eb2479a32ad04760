"""The operator's sign on a table, or on the door: nothing new for now, what is open goes on."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dealer.cli.options import Database, Operator, Why, find_table, whoami
from dealer.cli.output import say
from dealer.config import DATABASE
from dealer.errors import TableEnded

WholeHouse = Annotated[bool, typer.Option("--house", help="The whole house, not one table.")]
OneTable = Annotated[
    str | None,
    typer.Argument(
        metavar="[TABLE]",
        help="The table's id, or as much of its beginning as no other table has.",
        show_default=False,
    ),
]


def disable(
    why: Why,
    table: OneTable = None,
    house: WholeHouse = False,
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Let nothing new begin at a table, or in the whole house, until `dealer enable`.

    No seat is taken and no round opened; with --house no table is opened either. Rounds that are
    open go on to their close, and players leave and come back. Every process on this database
    follows within a second, and so does one that starts later. The lobby leaves the table out.

    ```
    dealer disable 0199f3c2 --why "players complain of seat 3"
    dealer disable --house --why "moving to another machine"
    ```
    """
    target, changed = asyncio.run(_change(table, house, database, operator, why, on=False))
    say(f"{target} is disabled." if changed else f"{target} was disabled before.")


def enable(
    why: Why = "",
    table: OneTable = None,
    house: WholeHouse = False,
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Take back `dealer disable`: new seats and rounds again.

    ```
    dealer enable 0199f3c2
    dealer enable --house --why "moved"
    ```
    """
    target, changed = asyncio.run(_change(table, house, database, operator, why, on=True))
    say(f"{target} is enabled." if changed else f"{target} was not disabled.")


async def _change(
    table: str | None, house: bool, database: str, operator: str | None, why: str, *, on: bool
) -> tuple[str, bool]:
    from dealer.eventlog import Log
    from dealer.eventlog.look import look
    from dealer.service.closures import HOUSE
    from dealer.service.office import Office

    if (table is None) == (not house):
        raise typer.BadParameter("Name a table, or say --house.")
    target, name = HOUSE, "The house"
    async with await look(database) as log:
        if table is not None:
            one = await find_table(log, table)
            target, name = one.hex(), f"Table {one.hex()}"
            last = await log.read(one, after=(await log.head(one) or 0) - 1, limit=1)
            if last and last[0].type == "TableClosed" and not on:
                raise TableEnded(f"{name} is closed; nothing can begin there any more.")
    async with await Log.open(database) as log:
        office = Office(log, who=operator or whoami())
        change = office.enable if on else office.disable
        return name, await change(target, why=why)
