"""`dealer journal`: the record of maintenance commands on this database."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer

from dealer.cli.options import AsJson, Database
from dealer.cli.output import echo, format_time, safe_text, say_json
from dealer.config import DATABASE


def journal(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of lines, 1 or more.")] = 100,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print the operators' journal of this database, the newest line first.

    Lines are named disable, enable, close, archive, backup, restore-backup, rotate-key, rebuild,
    migrate, add-webhook, remove-webhook, enable-webhook, replay-webhook, add-service-key
    and revoke-service-key after the change, and are written in its transaction where possible.
    `rotate-key --retire` adds retire-key for each key that it destroys, and keep-key for each that
    it keeps after all, because a table was opened under it. A server adds `restore` if its database
    was older than what players had seen, or may be, and it closed the open tables;
    `disable-webhook` for a webhook that fails; and a line for each player that a service removes,
    each host that it chooses and each table that it closes, as the operator `key:NAME`. The
    database does not allow lines to be changed or deleted.

    ```
    dealer journal
    dealer journal --json | jq 'select(.what == "archive")'
    ```
    """
    asyncio.run(_print(limit, database, as_json))


async def _print(limit: int, database: str, as_json: bool) -> None:
    from dealer.eventlog.backends import open_readonly
    from dealer.service.identity.admin import read_audit_entries

    async with await open_readonly(database) as log:
        for line in await read_audit_entries(log, limit=limit):
            if as_json:
                say_json(line._asdict())
                continue
            details = json.dumps(line.details, ensure_ascii=False) if line.details else ""
            rest = "  ".join(filter(None, (line.target, line.why, details)))
            echo(safe_text(f"{format_time(line.at)[:19]}  {line.who}  {line.what}  {rest}"))
