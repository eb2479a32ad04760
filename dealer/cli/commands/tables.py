"""`dealer tables`: lists the tables of a database with their state."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from dealer.cli.options import AsJson, Database
from dealer.cli.output import echo, format_time, safe_text, say_json
from dealer.config import DATABASE


def tables(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of tables, 1 or more.")] = 100,
    database: Database = DATABASE,
    as_json: AsJson = False,
) -> None:
    """List the tables of this database, newest first, including closed ones.

    A line also says whether a round is open and whether the table is disabled (`dealer disable`).

    ```
    dealer tables
    dealer tables --json | jq -r .table
    ```
    """
    found, archived, disabled = asyncio.run(_find(limit, database))
    for table in found:
        say_json(table) if as_json else echo(_line(table))
    if as_json:
        return
    if disabled:
        echo("The whole server is disabled; see `dealer journal`.")
    if archived:
        echo(f"{archived} more {'is' if archived == 1 else 'are'} archived; see `dealer journal`.")
    elif not found:
        echo("This database has no tables yet.")


async def _find(limit: int, database: str) -> tuple[list[dict[str, Any]], int, bool]:
    """The tables, how many more are archived, and whether the whole server is disabled."""
    import json

    from dealer.eventlog.backends import open_readonly
    from dealer.projector.queries import NEWER, newest_tables
    from dealer.service.commands.maintenance import WHOLE_SERVICE

    found = []
    async with await open_readonly(database) as log:
        ((archived,),) = await log.fetch("SELECT count(*) FROM archived")
        disabled = {target for (target,) in await log.fetch("SELECT target FROM disabled")}
        for row in await log.fetch(*newest_tables(log.dialect, limit)):
            stream, table_id, version, rounds, closed, seated, playing, *row = row
            lagging, projected, at, public = row
            if lagging:  # correct the read models by the events that they do not have yet
                newer = dict(map(tuple, await log.fetch(NEWER, (stream, projected))))
                rounds += newer.get("RoundOpened", 0)
                playing += newer.get("RoundOpened", 0) - newer.get("RoundClosed", 0)
                seated += newer.get("SeatTaken", 0)
                seated -= newer.get("SeatLeft", 0) + newer.get("SeatVacated", 0)
                closed = closed or "TableClosed" in newer
            rules = json.loads(public)["rules"]
            found.append(
                {
                    "table": table_id.hex(),
                    "name": rules.get("name"),
                    "opened_at": at,
                    "seated": seated,
                    "rounds": rounds,
                    "round_open": playing > 0,
                    "version": version,
                    "closed": bool(closed),
                    "disabled": not disabled.isdisjoint((table_id.hex(), WHOLE_SERVICE)),
                }
            )
    return found, archived, WHOLE_SERVICE in disabled


def _line(table: dict[str, Any]) -> str:
    state = "closed" if table["closed"] else "open"
    marks = (
        "round open" * table["round_open"],
        "disabled" * (table["disabled"] and not table["closed"]),
    )
    rounds = f"{table['rounds']:>3} round{' ' if table['rounds'] == 1 else 's'}"
    name = table["name"] if isinstance(table["name"], str) else ""
    return (
        f"{table['table']}  {format_time(table['opened_at'])[:16]}  {state:<6}"
        f"  {table['seated']:>2} seated  {rounds}  version {table['version']:<6}"
        f"  {', '.join(filter(None, marks)):<20}  {safe_text(name)}"
    ).rstrip()
