"""Who did what to this house, when, and why: what operators changed, not what players did."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer

from dealer.cli.options import AsJson, Database
from dealer.cli.output import harmless, moment, say, say_json
from dealer.config import DATABASE


def journal(
    limit: Annotated[int, typer.Option(min=1, help="How many lines at the most.")] = 100,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """Print the operators' journal of this database, the newest line first.

    disable, enable, close, archive, rotate-key, retire-key, keep-key, rebuild and migrate write
    there what they do, in the same transaction where that can be; `restore` is a server that found
    its database older than what players had seen, and closed the open tables. The database refuses
    to change or delete a line.

    ```
    dealer journal
    dealer journal --json | jq 'select(.what == "archive")'
    ```
    """
    asyncio.run(_print(limit, database, as_json))


async def _print(limit: int, database: str, as_json: bool) -> None:
    from dealer.eventlog.look import look
    from dealer.service.office import read_journal

    async with await look(database) as log:
        for line in await read_journal(log, limit=limit):
            if as_json:
                say_json(line._asdict())
                continue
            details = json.dumps(line.details, ensure_ascii=False) if line.details else ""
            rest = "  ".join(filter(None, (line.target, line.why, details)))
            say(harmless(f"{moment(line.at)[:19]}  {line.who}  {line.what}  {rest}"))
