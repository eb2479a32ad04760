"""The key to the house: where it hangs, how it is made on the first day, how a wrong one is told.

The master key is a file of 32 bytes that only its owner may read, beside the database and never in
it. The database keeps a check value, so that another house's key is recognised before anything is
written under it.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from dealer.errors import HouseKeyError
from dealer.eventlog.log import Log
from dealer.eventlog.sealing import MASTER_BYTES, HouseKeys
from dealer.eventlog.sqlite import database_file

_CHECK = "key"
_LOSS = (
    "Without it the rounds in play cannot go on, their hidden cards cannot be read or proved, and "
    "no table can be signed under the key that its players know"
)


def key_file(url: str) -> Path:
    """Where the key of the database at `url` hangs: dealer.db has dealer.db.key."""
    file = database_file(url)
    return file.with_name(file.name + ".key")


async def open_house(log: Log, file: Path, *, fresh: bytes) -> HouseKeys:
    """The keys of the house whose master key is in `file` and whose log is `log`.

    `fresh` is 32 random bytes, which become the key if neither file nor log has one. Raises
    HouseKeyError if the key is missing, unreadable, open to others, or another house's.
    """
    if len(fresh) != MASTER_BYTES:
        raise ValueError(f"a master key has {MASTER_BYTES} bytes")
    known = await log.house(_CHECK)
    master = await asyncio.to_thread(_read_or_make, file, fresh, first_day=known is None)
    keys = HouseKeys(master)
    kept = await log.put_house(_CHECK, keys.check)
    if not hmac.compare_digest(kept, keys.check):
        raise HouseKeyError(
            f"The key in {file} is another house's. {_LOSS}; put back the file that belongs to "
            "this database, from a backup of the same house."
        )
    return keys


def _read_or_make(file: Path, fresh: bytes, *, first_day: bool) -> bytes:
    return _make(file, fresh) if first_day and not file.exists() else _read(file)


def _read(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
        master = file.read_bytes()
    except FileNotFoundError:
        raise HouseKeyError(
            f"The house key {file} is missing, but the database has been used with one. {_LOSS}; "
            "put the file back from a backup. Closed rounds stay provable without it."
        ) from None
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be read ({error.strerror}); give it to the user that "
            "the service runs as."
        ) from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HouseKeyError(
            f"The house key {file} is open to other users, who could read every hidden card; "
            f"run `chmod 600 {file}`, then start again."
        )
    if len(master) != MASTER_BYTES:
        raise HouseKeyError(
            f"The file {file} is no house key: it has {len(master)} bytes and not "
            f"{MASTER_BYTES}. {_LOSS}; put the file back from a backup."
        )
    return master


def _make(file: Path, fresh: bytes) -> bytes:
    """Hangs up a new key, whole or not at all; of two processes at once one wins, both have it."""
    try:
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")  # mode 0600
        try:
            os.write(handle, fresh)
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            with suppress(FileExistsError):
                os.link(draft, file)
        finally:
            os.unlink(draft)
        # The name must be on disk before anything is sealed under the key.
        if os.name == "posix":
            folder = os.open(file.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be made ({error.strerror}); make its folder writable "
            "for the user that the service runs as."
        ) from None
    return _read(file)
