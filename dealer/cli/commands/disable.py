"""`dealer disable` and `dealer enable`: maintenance mode of one table or of the whole server."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dealer.cli.options import Database, Operator, Why, find_table, whoami
from dealer.cli.output import echo
from dealer.config import DATABASE
from dealer.errors import TableIsClosed

WholeServer = Annotated[bool, typer.Option("--house", help="All tables of this database.")]
OneTable = Annotated[
    str | None,
    typer.Argument(
        metavar="[TABLE]",
        help="The table's id, or a prefix of it that no other table has.",
        show_default=False,
    ),
]


def disable(
    why: Why,
    table: OneTable = None,
    house: WholeServer = False,
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """Stop new seats and rounds at a table, or at all tables, until `dealer enable`.

    No seat can be taken and no round opened; with --house no table can be opened either. Open
    rounds continue until they are closed, and players can leave and come back. Every server on this
    database applies it within a second, also one that starts later. The lobby does not list the
    table.

    ```
    dealer disable 0199f3c2 --why "players complain of seat 3"
    dealer disable --house --why "moving to another machine"
    ```
    """
    target, changed = asyncio.run(_change(table, house, database, operator, why, on=False))
    echo(f"{target} is disabled." if changed else f"{target} was already disabled.")


def enable(
    why: Why = "",
    table: OneTable = None,
    house: WholeServer = False,
    database: Database = DATABASE,
    operator: Operator = None,
) -> None:
    """End `dealer disable`: allow new seats and rounds again.

    ```
    dealer enable 0199f3c2
    dealer enable --house --why "moved"
    ```
    """
    target, changed = asyncio.run(_change(table, house, database, operator, why, on=True))
    echo(f"{target} is enabled." if changed else f"{target} was not disabled.")


async def _change(
    table: str | None, house: bool, database: str, operator: str | None, why: str, *, on: bool
) -> tuple[str, bool]:
    from dealer.eventlog import Log
    from dealer.eventlog.backends import open_readonly
    from dealer.service.commands.maintenance import WHOLE_SERVICE
    from dealer.service.identity.admin import AdminService

    if (table is None) == (not house):
        raise typer.BadParameter("Give a table, or --house.")
    target, name = WHOLE_SERVICE, "The server"
    async with await open_readonly(database) as log:
        if table is not None:
            one = await find_table(log, table)
            target, name = one.hex(), f"Table {one.hex()}"
            last = await log.read(one, after=(await log.head(one) or 0) - 1, limit=1)
            if last and last[0].type == "TableClosed" and not on:
                raise TableIsClosed(f"{name} is closed; no seat or round can be opened at it.")
    async with await Log.open(database) as log:
        admin = AdminService(log, who=operator or whoami())
        change = admin.enable if on else admin.disable
        return name, await change(target, why=why)
