"""The read models made again from the log, and what was wrong with those that stood there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from dealer.cli.options import AsJson, Database, Operator, whoami
from dealer.cli.output import harmless, progress, say, say_json
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.projector.rebuild import Rebuild

SHOWN = 10


def rebuild(
    database: Database = DATABASE, operator: Operator = None, as_json: AsJson = False
) -> None:
    """Throw the read models away, replay the log into new ones, and compare.

    The read models are the SQL tables that one queries: tables, seats, rounds, shuffles, swaps,
    moves, deck, hands, piles. A house may be running meanwhile; readers never see half. The exit
    code is 1 if a row stood there that does not follow from the log, or one was missing.

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
    from dealer.eventlog import Log
    from dealer.eventlog.look import look
    from dealer.projector.rebuild import Rebuild
    from dealer.service.office import Office

    await (await look(database)).close()
    async with await Log.open(database) as log:
        with progress("Replaying the log") as step:
            work = Rebuild(progress=step)
            await log.schedule(work.slice)
        told = {"events": work.done, "different": work.different, "stopped": len(work.stopped)}
        await Office(log, who=operator).note("rebuild", "read models", details=told)
    return work


def _print(done: Rebuild) -> None:
    say(f"{done.done} events were replayed; {done.different} rows differed from the log.")
    for one in done.differences[:SHOWN]:
        was = "stood there and does not follow" if one.stood else "follows and was not there"
        say(f"{one.model}: {harmless(str(one.row))} {was}")
    if done.different > SHOWN:
        say(f"and {done.different - SHOWN} more")
    for stopped in done.stopped.values():
        say(f"table {stopped.table} stops at version {stopped.version}: {stopped.sentence}")


def _members(done: Rebuild) -> dict[str, Any]:
    return {
        "events": done.done,
        "different": done.different,
        "differences": [
            {"model": one.model, "row": one.row, "stood": one.stood} for one in done.differences
        ],
        "stopped": [stopped._asdict() for stopped in done.stopped.values()],
    }
