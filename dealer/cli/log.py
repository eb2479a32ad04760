"""The log of one table as it stands: one event a line, with nothing added and nothing explained."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dealer.cli.options import AsJson, Database, TableId, find_table
from dealer.cli.output import harmless, moment, say
from dealer.config import DATABASE


def log(
    table: TableId,
    after: Annotated[
        int, typer.Option(metavar="VERSION", min=0, help="Only events after this version.")
    ] = 0,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print a table's events: version, time (UTC), type, public part.

    What an event hides is sealed in the log and not shown; `dealer audit` tells it for rounds that
    are closed. With --json each line is the event's leaf, the very bytes that the house signed.

    ```
    dealer log 0199f3c2
    dealer log 0199f3c2 --after 120 --json | jq .type
    ```
    """
    asyncio.run(_print(table, after, database, as_json))


async def _print(table: str, after: int, database: str, as_json: bool) -> None:
    from dealer.eventlog.look import look
    from dealer.service.leaves import leaf_of

    async with await look(database) as log:
        table_id = await find_table(log, table)
        async for rows in log.stream(table_id, after=after):
            for row in rows:
                if as_json:
                    say(leaf_of(table_id, row))
                else:
                    told = harmless(row.public)
                    say(f"{row.version:>6}  {moment(row.at)}  {row.type:<16}  {told}")
