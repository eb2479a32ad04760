"""A new key to the house: new tables are signed under it, those that are there keep theirs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dealer.cli.options import Database, HouseKey, Operator, whoami
from dealer.cli.output import remark, say
from dealer.config import DATABASE
from dealer.errors import HouseKeyError

if TYPE_CHECKING:
    from dealer.eventlog import Log

_OPENED = """
SELECT e.public FROM stream s JOIN event e ON e.stream = s.id AND e.version = 1
"""

Reached = Callable[[str], None]
"""Called with the name of each point at which the work may break off."""


def rotate_key(
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, for the journal.")
    ] = "",
    retire: Annotated[
        bool,
        typer.Option("--retire", help="Destroy earlier keys that no table here needs any more."),
    ] = False,
    database: Database = DATABASE,
    house_key: HouseKey = None,
    operator: Operator = None,
) -> None:
    """Make a new house key, which signs and seals what begins from now on.

    Tables that are there go on under the key that their players know; it hangs beside the new one,
    with eight hex digits added to its name. A house that is open opens no new tables until it is
    restarted, and then uses the new key. Back up the keys at once. When all tables of an earlier
    key are archived and every house was restarted, --retire deletes that key. What was broken off
    is finished by the next call.

    ```
    dealer rotate-key --why "yearly"
    dealer rotate-key --retire
    ```
    """
    who = operator or whoami()
    if retire:
        gone, kept = asyncio.run(retire_keys(database, why, who, house_key=house_key))
        for name in gone:
            say(f"{name} is deleted; destroy its backups, too.")
        if kept:
            raise HouseKeyError(
                f"A table was opened under {', '.join(kept)} meanwhile, so it stays: a house was "
                "not restarted after the rotation. Restart it, and archive that table first."
            )
        if not gone:
            say("Every earlier key that is here still has tables.")
        return
    if not why:
        raise typer.BadParameter("Say why with --why, for the operators' journal.")
    finished, old = asyncio.run(rotate(database, why, who, house_key=house_key))
    say("The rotation that was broken off is finished." if finished else "The house has a new key.")
    say(f"The earlier one is {old}; back up both.")


async def rotate(
    database: str,
    why: str,
    who: str,
    *,
    house_key: Path | None = None,
    reached: Reached = lambda point: None,
) -> tuple[bool, Path]:
    """Rotate; whether a rotation that was broken off was finished instead, and the old key's file.

    The new key is on disk before the log knows of it, and the old one has its second name before
    the new one takes the first.
    """
    from dealer.eventlog import Log, key_file
    from dealer.eventlog.house import (
        checks,
        earlier_file,
        make,
        next_file,
        open_house,
        sync_folder,
    )
    from dealer.eventlog.look import look
    from dealer.eventlog.sealing import HouseKeys
    from dealer.service.office import Office

    file = key_file(database, house_key)
    await (await look(database)).close()
    async with await Log.open(database) as log:
        office = Office(log, who=who)
        known = await checks(log)
        if not known:
            raise HouseKeyError("This house has no key yet; `dealer serve` makes the first.")
        new = next_file(file)
        current = await open_house(log, file, fresh=office.random(32))
        hanging = HouseKeys(await asyncio.to_thread(file.read_bytes))
        finished = new.exists() and hanging.check != current.check
        if not finished:
            master = await asyncio.to_thread(make, new, office.random(32))
            reached("made")
        old = earlier_file(file, hanging.check)
        if not old.exists():
            os.link(file, old)
            sync_folder(file.parent)
        reached("kept")
        if not finished:
            await office.add_key(f"key.{len(known)}", HouseKeys(master).check, why=why)
            reached("known")
        os.replace(new, file)
        sync_folder(file.parent)
        reached("hung")
        return finished, old


async def retire_keys(
    database: str,
    why: str,
    who: str,
    *,
    house_key: Path | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[list[str], list[str]]:
    """Delete the earlier keys whose tables are all archived; the names of their files.

    And of those that were to go and stay, because a table began under them meanwhile: they are
    marked first, and looked at again when every open house has had the time to see the mark.
    """
    from dealer.eventlog import Log, key_file
    from dealer.eventlog.house import checks, earlier_file, open_house
    from dealer.eventlog.look import look
    from dealer.service.closures import EVERY
    from dealer.service.office import Office

    file = key_file(database, house_key)
    await (await look(database)).close()
    gone, kept = [], []
    async with await Log.open(database) as log:
        office = Office(log, who=who)
        current = await open_house(log, file, fresh=office.random(32))
        needed = await _needed(log)
        public = {one.check: one.public_key.hex() for one in current.earlier}
        going = {
            name: check
            for name, check in (await checks(log)).items()
            if earlier_file(file, check).exists() and public.get(check, "") not in {"", *needed}
        }
        for name in going:
            await office.retire_key(name, why=why)
        if going:
            remark(f"Waiting {3 * EVERY:.1f} s, so that open houses take note.")
            await wait(3 * EVERY)
            needed = await _needed(log)
        for name, check in going.items():
            hung = earlier_file(file, check)
            if public[check] in needed:
                await office.keep_key(name, why="a table was opened under it")
                kept.append(str(hung))
            else:
                await asyncio.to_thread(hung.unlink)
                gone.append(str(hung))
    return gone, kept


async def _needed(log: Log) -> set[str]:
    """The keys of all tables whose events are here, as hex."""
    return {json.loads(public)["key"] for (public,) in await log.fetch(_OPENED)}
