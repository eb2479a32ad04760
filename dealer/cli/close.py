"""Tables that nobody will close any more: the operator ends them, and what was played is proved."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.options import Database, HouseKey, Marks, Operator, Why, find_table, whoami
from dealer.cli.output import remark, say
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
            help="All open tables at which nothing happened for so long: 90d, 36h or 0m.",
            show_default=False,
        ),
    ] = None,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    marks: Marks = None,
    operator: Operator = None,
) -> None:
    """Close tables for good, with the round that is open at them; its secret becomes public.

    For tables whose hosts are gone, before `dealer archive`; and with --idle 0m after an older
    backup was put back, for no player who saw more than it holds can trust its open tables.

    ```
    dealer close 0199f3c2 --why "the host is gone"
    dealer close --idle 90d --why retention
    ```
    """
    from dealer.cli.archive import age

    if (table is None) == (idle is None):
        raise typer.BadParameter("Name a table, or say how long idle with --idle.")
    since = None if idle is None else age(idle)
    done = asyncio.run(_close(database, house_key, marks, table, since, why, operator or whoami()))
    say(f"{done} table{'' if done == 1 else 's'} closed.")


async def _close(
    database: str,
    house_key: Path | None,
    marks: Path | None,
    table: str | None,
    idle: int | None,
    why: str,
    who: str,
) -> int:
    from dealer.errors import Refused, TableEnded
    from dealer.eventlog.look import look
    from dealer.service.closing import close_tables, open_tables
    from dealer.service.office import Office
    from dealer.service.opening import open_service

    await (await look(database)).close()
    done = 0
    async with open_service(database, house_key=house_key, marks=marks) as service:
        office = Office(service.log, who=who)
        if table is not None:
            wanted = [await find_table(service.log, table)]
        else:
            # At 0m also what a clock that was wrong then dated in the future.
            before = office.now() - idle if idle else None
            wanted = await open_tables(service.log, before=before)
        async for one, error in close_tables(service, wanted):
            if error is None:
                await office.note("close", one.hex(), why=why)
                done += 1
            elif isinstance(error, TableEnded):
                if table is not None:
                    raise TableEnded(f"Table {one.hex()} is closed already.") from None
            elif table is not None or not isinstance(error, Refused):
                raise error
            else:
                remark(f"{one.hex()} is left open: {error}")
    return done
