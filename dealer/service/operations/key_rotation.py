"""Key rotation: makes a new house key for new tables, and retires keys without tables.

Tables keep the key that they were opened under. The order of the work lets an interrupted rotation
be finished by the next call: the new key is on disk before the log has its check value, and the old
one has its second name before the new one takes the first.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from dealer.errors import DatabaseDamaged, HouseKeyError
from dealer.eventlog import Log, key_file
from dealer.eventlog.high_water_mark import fence
from dealer.eventlog.keys import (
    MASTER_BYTES,
    HouseKeys,
    earlier_file,
    existing_house_keys,
    key_checks,
    make,
    next_file,
    sync_folder,
)
from dealer.service.commands.maintenance import POLL_SECONDS
from dealer.service.identity.admin import AdminService
from dealer.service.operations.log_check import find_damaged

NOTICE_SECONDS = 3 * POLL_SECONDS
"""Seconds in which every running server reads that a key was retired."""

_OPENED = """
SELECT e.public FROM stream s JOIN event e ON e.stream = s.id AND e.version = 1
"""


async def rotate(
    database: str, why: str, who: str, *, house_key: Path | None = None
) -> tuple[bool, Path]:
    """Rotate the key; (whether an interrupted rotation was finished instead, the old key's file).

    Raises DatabaseError or HouseKeyError.
    """
    file = key_file(database, house_key)
    if file.is_symlink():
        raise HouseKeyError(
            f"The house key {file} is a link to {file.resolve()}. A rotation replaces the key, and "
            "keeps the earlier one beside it under its name: put the key itself there, with the "
            "mode 600, or name its own file with --house-key, here and for every server."
        )
    async with await Log.open_existing(database) as log:
        await fence(log, file)
        admin = AdminService(log, who=who)
        new = next_file(file)
        current = await existing_house_keys(log, file)
        in_place = HouseKeys(await asyncio.to_thread(file.read_bytes))
        finished = new.exists() and in_place.check != current.check
        if not finished:
            master = await asyncio.to_thread(make, new, secrets.token_bytes(MASTER_BYTES))
        old = earlier_file(file, in_place.check)
        if not old.exists():
            os.link(file, old)
            sync_folder(file.parent)
        if not finished:
            name = f"key.{len(await key_checks(log))}"
            await admin.add_key(name, HouseKeys(master).check, why=why)
        os.replace(new, file)
        sync_folder(file.parent)
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

    Second, the files of keys that stay because a table was opened under them meanwhile: the keys
    are first marked as retired, and their tables searched again after `wait(NOTICE_SECONDS)`.
    Raises DatabaseError, as DatabaseDamaged if the log of a table is damaged, or HouseKeyError.
    """
    file = key_file(database, house_key)
    deleted, stayed = [], []
    async with await Log.open_existing(database) as log:
        await fence(log, file)
        admin = AdminService(log, who=who)
        current = await existing_house_keys(log, file)
        if current.earlier:
            keys = {key.public_key: key for key in (current, *current.earlier)}
            damaged, _ = await find_damaged(log, keys)
            if damaged:
                raise DatabaseDamaged(
                    f"{damaged[0]} No key was retired: which of them its table needs is not known."
                )
        used = await _used_keys(log)
        public = {key.check: key.public_key.hex() for key in current.earlier}
        retired = {
            name: check
            for name, check in (await key_checks(log)).items()
            if earlier_file(file, check).exists() and public.get(check, "") not in {"", *used}
        }
        for name in retired:
            await admin.retire_key(name, why=why)
        if retired:
            await wait(NOTICE_SECONDS)
            used = await _used_keys(log)
        for name, check in retired.items():
            earlier = earlier_file(file, check)
            if public[check] in used:
                await admin.keep_key(name, why="a table was opened under it")
                stayed.append(str(earlier))
            else:
                await asyncio.to_thread(earlier.unlink)
                deleted.append(str(earlier))
    return deleted, stayed


async def _used_keys(log: Log) -> set[str]:
    """The public keys, in hex, of all tables whose events are in the log."""
    return {json.loads(public)["key"] for (public,) in await log.fetch(_OPENED)}
