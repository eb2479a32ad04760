"""`dealer log`: the stored events of one table, one per line."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dealer.cli.options import AsJson, Database, TableId, find_table
from dealer.cli.output import echo, format_time, safe_text
from dealer.config import DATABASE
from dealer.feed.lines import one_line


def log(
    table: TableId,
    after: Annotated[
        int, typer.Option(metavar="VERSION", min=0, help="Only events after this version.")
    ] = 0,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print a table's events: version, time (UTC), type, public part.

    The hidden part of an event is encrypted in the log and not shown; `dealer audit` shows it for
    closed rounds. With --json each line is the event's leaf. The bytes that are signed are its
    canonical form: only the characters U+0085, U+2028 and U+2029 are escaped besides.

    ```
    dealer log 0199f3c2
    dealer log 0199f3c2 --after 120 --json | jq .type
    ```
    """
    asyncio.run(_print(table, after, database, as_json))


async def _print(table: str, after: int, database: str, as_json: bool) -> None:
    from dealer.eventlog.backends import open_readonly
    from dealer.eventlog.rows import leaf_of

    async with await open_readonly(database) as log:
        table_id = await find_table(log, table)
        async for rows in log.stream(table_id, after=after):
            for row in rows:
                if as_json:
                    echo(one_line(leaf_of(table_id, row)))
                else:
                    public = safe_text(row.public)
                    echo(f"{row.version:>6}  {format_time(row.at)}  {row.type:<16}  {public}")
