"""`dealer rebuild`: rebuilds the read models from the log, and reports rows that differed and
tables whose log is damaged.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from dealer.cli.options import AsJson, Database, HouseKey, Operator, existing_log, whoami
from dealer.cli.output import echo, echo_err, progress, safe_text, say_json
from dealer.config import DATABASE

if TYPE_CHECKING:
    from dealer.projector.rebuild import Rebuild

SHOWN = 10


class Checked(NamedTuple):
    """The rebuild; a sentence for each table whose log is damaged; tables not checked wholly."""

    rebuild: Rebuild
    damaged: list[str]
    partly: int


def rebuild(
    database: Database = DATABASE,
    house_key: HouseKey = None,
    operator: Operator = None,
    as_json: AsJson = False,
) -> None:
    """Replay the log into new read models, compare them with the old ones and replace those.

    The read models are the SQL tables for queries: tables, seats, rounds, shuffles, swaps, moves,
    deck, hands, piles. Servers may run meanwhile; readers never see a partial rebuild. Then every
    row of the log is compared with what the house signed; for the hidden parts of open rounds that
    needs the house key. The exit code is 1 if an old row does not follow from the log, if a row was
    missing, or if the log of a table is damaged.

    ```
    dealer rebuild
    dealer rebuild --json
    ```
    """
    checked = asyncio.run(_rebuild(database, house_key, operator or whoami()))
    done, damaged, partly = checked
    if as_json:
        say_json(_members(done) | {"damaged": damaged})
    else:
        _print(done, damaged)
    if partly:
        echo_err(
            f"Without the house key (--house-key) the hidden parts of {partly} open rounds were "
            "not checked."
        )
    if done.different or done.stopped or damaged:
        raise typer.Exit(1)


async def _rebuild(database: str, house_key: Path | None, operator: str) -> Checked:
    from dealer.projector.rebuild import Rebuild
    from dealer.service.identity.admin import AdminService
    from dealer.service.operations.log_check import find_damaged, keys_of

    async with existing_log(database) as log:
        with progress("Replaying the log") as step:
            work = Rebuild(progress=step)
            await log.run_when_idle(work.slice)
        with progress("Checking the log") as step:
            damaged, partly = await find_damaged(log, await keys_of(database, house_key), step=step)
        details = {
            "events": work.done,
            "different": work.different,
            "stopped": len(work.stopped),
            "damaged": len(damaged),
        }
        await AdminService(log, who=operator).note("rebuild", "read models", details=details)
    return Checked(work, damaged, partly)


def _print(done: Rebuild, damaged: list[str]) -> None:
    echo(f"{done.done} events were replayed; {done.different} rows differed from the log.")
    for difference in done.differences[:SHOWN]:
        was = "was present, but does not follow" if difference.in_old else "was missing"
        echo(f"{difference.model}: {safe_text(str(difference.row))} {was}")
    if done.different > SHOWN:
        echo(f"and {done.different - SHOWN} more")
    for sentence in damaged:
        echo(safe_text(sentence))
    for stopped in done.stopped.values():
        if any(stopped.table in sentence for sentence in damaged):
            continue
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
