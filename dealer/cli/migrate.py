"""Newer shelves for an older archive."""

from __future__ import annotations

import asyncio

from dealer.cli.options import AsJson, Database, Operator, asked_rightly, whoami
from dealer.cli.output import say, say_json
from dealer.config import DATABASE


def migrate(
    database: Database = DATABASE, operator: Operator = None, as_json: AsJson = False
) -> None:
    """Bring the database's schema to the newest this program knows; makes it if there is none.

    `dealer serve` does this by itself for an SQLite file when it starts, and never for a database
    on a server, which other houses may be using. Events are never changed by it.

    ```
    dealer migrate --database sqlite:////var/lib/dealer/dealer.db
    dealer migrate --database postgresql://dealer@db/dealer
    ```
    """
    before, now = asyncio.run(_migrate(database, operator or whoami()))
    if as_json:
        say_json({"from": before, "to": now})
    elif before == now:
        say(f"The schema is {now}, the newest; nothing was to be done.")
    else:
        say(f"The schema was {before or 'empty'} and is now {now}.")


async def _migrate(database: str, operator: str) -> tuple[str | None, str | None]:
    from dealer.eventlog import Log
    from dealer.eventlog.look import revision
    from dealer.eventlog.server import check_address
    from dealer.eventlog.upkeep import migrate_database
    from dealer.service.office import record_schema

    with asked_rightly():
        check_address(database)
    before = await revision(database)
    await migrate_database(database)
    async with await Log.open(database) as log:
        await record_schema(log, who=operator)
    return before, await revision(database)
