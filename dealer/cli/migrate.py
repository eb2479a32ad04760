"""Newer shelves for an older archive."""

from __future__ import annotations

import asyncio

from dealer.cli.options import AsJson, Database, asked_rightly
from dealer.cli.output import say, say_json
from dealer.config import DATABASE


def migrate(database: Database = DATABASE, as_json: AsJson = False) -> None:
    """Bring the database's schema to the newest this program knows; makes it if there is none.

    `dealer serve` does this by itself when it starts. Events are never changed by it.

    ```
    dealer migrate --database sqlite:////var/lib/dealer/dealer.db
    ```
    """
    before, now = asyncio.run(_migrate(database))
    if as_json:
        say_json({"from": before, "to": now})
    elif before == now:
        say(f"The schema is {now}, the newest; nothing was to be done.")
    else:
        say(f"The schema was {before or 'empty'} and is now {now}.")


async def _migrate(database: str) -> tuple[str | None, str | None]:
    from dealer.eventlog import Log
    from dealer.eventlog.look import revision
    from dealer.eventlog.sqlite import database_file

    with asked_rightly():
        database_file(database)
    before = await revision(database)
    async with await Log.open(database):
        pass
    return before, await revision(database)
