"""Tables that nobody will close any more: the operator ends them, and what was played is proved."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from dealer.cli.options import Database, HouseKey, Operator, Why, find_table, whoami
from dealer.cli.output import remark, say
from dealer.config import DATABASE

_OPEN = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type <> 'TableClosed' AND e.at <= ? ORDER BY e.at
"""


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
    done = asyncio.run(_close(database, house_key, table, since, why, operator or whoami()))
    say(f"{done} table{'' if done == 1 else 's'} closed.")


async def _close(
    database: str,
    house_key: Path | None,
    table: str | None,
    idle: int | None,
    why: str,
    who: str,
) -> int:
    from dealer.errors import DealerError, Refused, TableEnded
    from dealer.eventlog.look import look
    from dealer.game.commands import Actor, CloseTable
    from dealer.service.office import Office
    from dealer.service.opening import open_service

    await (await look(database)).close()
    done = 0
    async with open_service(database, house_key=house_key) as service:
        office = Office(service.log, who=who)
        if table is not None:
            wanted = [await find_table(service.log, table)]
        else:
            found = await service.log.fetch(_OPEN, (office.now() - (idle or 0),))
            wanted = [one for (one,) in found]
        for one in wanted:
            try:
                resident = await service.load(one.hex())
                await service.call(resident, CloseTable(Actor(host=True), forced=True))
            except TableEnded:
                if table is not None:
                    raise TableEnded(f"Table {one.hex()} is closed already.") from None
                continue
            except DealerError as error:
                if table is not None or not isinstance(error, Refused):
                    raise
                remark(f"{one.hex()} is left open: {error}")
                continue
            await office.note("close", one.hex(), why=why)
            done += 1
    return done
