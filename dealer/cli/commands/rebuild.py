"""`dealer rebuild`: rebuilds the read models from the log and reports rows that differed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from dealer.cli.options import AsJson, Database, Operator, existing_log, whoami
from dealer.cli.output import echo, escape_control, progress, say_json
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.projector.rebuild import Rebuild

SHOWN = 10


def rebuild(
    database: Database = DATABASE, operator: Operator = None, as_json: AsJson = False
) -> None:
    """Replay the log into new read models, compare them with the old ones and replace those.

    The read models are the SQL tables for queries: tables, seats, rounds, shuffles, swaps, moves,
    deck, hands, piles. Servers may run meanwhile; readers never see a partial rebuild. The exit
    code is 1 if an old row does not follow from the log, or if a row was missing.

    ```
    dealer rebuild
    dealer rebuild --json
    ```
    """
    done = asyncio.run(_rebuild(database, operator or whoami()))
    if as_json:
        say_json(_members(done))
    else:
        _print(done)
    if done.different or done.stopped:
        raise typer.Exit(1)


async def _rebuild(database: str, operator: str) -> Rebuild:
    from dealer.projector.rebuild import Rebuild
    from dealer.service.admin import AdminService

    async with existing_log(database) as log:
        with progress("Replaying the log") as step:
            work = Rebuild(progress=step)
            await log.run_when_idle(work.slice)
        details = {"events": work.done, "different": work.different, "stopped": len(work.stopped)}
        await AdminService(log, who=operator).note("rebuild", "read models", details=details)
    return work


def _print(done: Rebuild) -> None:
    echo(f"{done.done} events were replayed; {done.different} rows differed from the log.")
    for difference in done.differences[:SHOWN]:
        was = "was present, but does not follow" if difference.in_old else "was missing"
        echo(f"{difference.model}: {escape_control(str(difference.row))} {was}")
    if done.different > SHOWN:
        echo(f"and {done.different - SHOWN} more")
    for stopped in done.stopped.values():
        echo(f"table {stopped.table} stops at version {stopped.version}: {stopped.sentence}")


def _members(done: Rebuild) -> dict[str, Any]:
    return {
        "events": done.done,
        "different": done.different,
        "differences": [
            {"model": difference.model, "row": difference.row, "stood": difference.in_old}
            for difference in done.differences
        ],
        "stopped": [stopped._asdict() for stopped in done.stopped.values()],
    }
