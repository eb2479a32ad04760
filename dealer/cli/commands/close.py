"""`dealer close`: an operator closes tables, and thereby reveals the secrets of open rounds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.options import Database, HouseKey, Marks, Operator, Why, find_table, whoami
from dealer.cli.output import echo, echo_err
from dealer.config import DATABASE


def close(
    why: Why,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="One table.", show_default=False)
    ] = None,
    idle: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="All open tables without an event for this long: 90d, 36h or 0m.",
            show_default=False,
        ),
    ] = None,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    marks: Marks = None,
    operator: Operator = None,
) -> None:
    """Close tables permanently, with their open rounds, whose secrets become public.

    Use it for tables whose hosts are gone, before `dealer archive`; and with --idle 0m after an
    older backup was restored, because players who saw later events cannot trust its open tables.

    ```
    dealer close 0199f3c2 --why "the host is gone"
    dealer close --idle 90d --why retention
    ```
    """
    from dealer.cli.commands.archive import age

    if (table is None) == (idle is None):
        raise typer.BadParameter("Give a table, or an age with --idle.")
    since = None if idle is None else age(idle)
    count = asyncio.run(_close(database, house_key, marks, table, since, why, operator or whoami()))
    echo(f"{count} table{'' if count == 1 else 's'} closed.")


async def _close(
    database: str,
    house_key: Path | None,
    marks: Path | None,
    table: str | None,
    idle: int | None,
    why: str,
    who: str,
) -> int:
    from dealer.errors import Refused, TableIsClosed
    from dealer.eventlog.backends import open_readonly
    from dealer.service.build import open_service
    from dealer.service.clock import utc_ms
    from dealer.service.identity.admin import AdminService
    from dealer.service.operations.close_tables import close_tables, open_tables

    await (await open_readonly(database)).close()
    done = 0
    async with open_service(database, house_key=house_key, marks=marks) as service:
        admin = AdminService(service.log, who=who)
        if table is not None:
            wanted = [await find_table(service.log, table)]
        else:
            # At 0m also tables whose events have a time in the future, from a clock that was wrong.
            before = utc_ms() - idle if idle else None
            wanted = await open_tables(service.log, before=before)
        async for table_id, error in close_tables(service, wanted):
            if error is None:
                await admin.note("close", table_id.hex(), why=why)
                done += 1
            elif isinstance(error, TableIsClosed):
                if table is not None:
                    raise TableIsClosed(f"Table {table_id.hex()} is closed already.") from None
            elif table is not None or not isinstance(error, Refused):
                raise error
            else:
                echo_err(f"{table_id.hex()} is left open: {error}")
    return done
