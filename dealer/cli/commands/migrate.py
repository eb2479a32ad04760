"""`dealer migrate`: brings the database schema up to date."""

from __future__ import annotations

import asyncio

from dealer.cli.options import AsJson, Database, Operator, usage_errors, whoami
from dealer.cli.output import echo, say_json
from dealer.config import DATABASE


def migrate(
    database: Database = DATABASE,
    operator: Operator = None,
    as_json: AsJson = False,
) -> None:
    """Migrate the database's schema to the newest version, or create it.

    `dealer serve` does this automatically for an SQLite file when it starts, and never for
    PostgreSQL, which other servers may be using. It does not change the content of events.

    ```
    dealer migrate --database sqlite:////var/lib/dealer/dealer.db
    dealer migrate --database postgresql://dealer@db/dealer
    ```
    """
    before, now = asyncio.run(_migrate(database, operator or whoami()))
    if as_json:
        say_json({"from": before, "to": now})
        return
    if before == now:
        echo(f"The schema is {now}, the newest; nothing was changed.")
    else:
        echo(f"The schema was {before or 'empty'} and is now {now}.")


async def _migrate(database: str, operator: str) -> tuple[str | None, str | None]:
    from dealer.eventlog import Log
    from dealer.eventlog.backends import check_address, migrate_database, revision
    from dealer.service.identity.admin import record_schema

    with usage_errors():
        check_address(database)
    found = await revision(database)
    await migrate_database(database)
    async with await Log.open(database) as log:
        # Of several processes that migrate at once, one did it: the one that recorded it.
        recorded = await record_schema(log, who=operator)
    now = await revision(database)
    if recorded is None:
        return now, now
    return recorded[0] or (found if found != now else None), now
