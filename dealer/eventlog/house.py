"""The key to the house: where it hangs, how it is made on the first day, how a wrong one is told.

The master key is a file of 32 bytes that only its owner may read, beside the database and never in
it; houses that share a server's database each have a copy. The database keeps a check value, so
that another house's key is recognised before anything is written under it.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from dealer.errors import HouseKeyError, SetupError
from dealer.eventlog.log import Log
from dealer.eventlog.office import RETIRED
from dealer.eventlog.reading import Reading
from dealer.eventlog.sealing import MASTER_BYTES, HouseKeys
from dealer.eventlog.server import is_postgres
from dealer.eventlog.sqlite import database_file

_CHECK = "key"
_LOSS = (
    "Without it the rounds in play cannot go on, their hidden cards cannot be read or proved, and "
    "no table can be signed under the key that its players know"
)


def key_file(url: str, given: Path | None = None) -> Path:
    """Where the key of the database at `url` hangs: at `given`; dealer.db has dealer.db.key.

    Raises SetupError for a server's database without `given`: nothing there is beside it.
    """
    if given is not None:
        return given
    if is_postgres(url):
        raise SetupError(
            "Say where the house's key is, with --house-key or DEALER_HOUSE_KEY_FILE: a database "
            "on a server has none beside it. All the houses that share it need the same key."
        )
    file = database_file(url)
    return file.with_name(file.name + ".key")


def require_database(url: str, key: Path) -> None:
    """Raise HouseKeyError if there is a key for the SQLite database at `url`, and no database.

    A first start makes the database before the key, so no crash leaves a key alone behind.
    """
    if is_postgres(url) or not key.exists():
        return
    file = database_file(url)
    if not file.exists():
        raise HouseKeyError(
            f"The house key {key} is there, but its database {file} is missing. Put the database "
            "back: from a backup, or by the right --database. To begin a new house, move the key "
            "elsewhere first, and what begins with its name; for a key that was never used, make "
            "an empty database with `dealer migrate`."
        )


async def open_house(log: Log, file: Path, *, fresh: bytes) -> HouseKeys:
    """The keys of the house whose master key is in `file` and whose log is `log`.

    `fresh` is 32 random bytes, which become the key if neither file nor log has one. Keys that the
    house had before hang beside it. Raises HouseKeyError if the key is missing, unreadable, open to
    others, or another house's.
    """
    if len(fresh) != MASTER_BYTES:
        raise ValueError(f"a master key has {MASTER_BYTES} bytes")
    known = await checks(log)
    if not known:
        master = await asyncio.to_thread(_read_or_make, file, fresh)
        await log.put_house(_CHECK, HouseKeys(master).check)
        known = await checks(log)
    masters = await asyncio.to_thread(_masters, file)
    (name, check), *before = reversed(known.items())
    if check not in masters:
        HouseKeys(_read(file))
        raise HouseKeyError(
            f"The key in {file} is another house's. {_LOSS}; put back the file that belongs to "
            "this database, from a backup of the same house."
        )
    earlier = []
    for name, check in before:
        if check in masters:
            earlier.append(HouseKeys(masters[check]))
        elif await log.house(f"{name}{RETIRED}") is None:
            raise HouseKeyError(
                f"The house key of earlier tables, {earlier_file(file, check)}, is missing. "
                f"{_LOSS}; put the file back from a backup."
            )
    current = masters[known[next(reversed(known))]]
    return HouseKeys(current, earlier=earlier, more=partial(read_keys, file))


async def checks(log: Reading) -> dict[str, bytes]:
    """The check values of all keys that the house has had, by their names, the newest last."""
    found = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    names = [_CHECK, *(f"{_CHECK}.{number}" for number in range(1, len(found)))]
    return {name: found[name] for name in names if name in found}


def read_keys(file: Path) -> list[HouseKeys]:
    """Every key that hangs at or beside `file`; raises HouseKeyError if one cannot be read."""
    return [HouseKeys(master) for master in _masters(file).values()]


def earlier_file(file: Path, check: bytes) -> Path:
    """Where a key hangs once another has taken its place."""
    return file.with_name(f"{file.name}.{check.hex()[:8]}")


def next_file(file: Path) -> Path:
    """Where a key hangs before it takes its place."""
    return file.with_name(f"{file.name}.new")


def _masters(file: Path) -> dict[bytes, bytes]:
    """All master keys at and beside `file`, by their check values."""
    beside = re.compile(re.escape(file.name) + r"(\.new|\.[0-9a-f]{8})?")
    try:
        there = [one for one in file.parent.iterdir() if beside.fullmatch(one.name)]
    except OSError:
        there = []
    if file not in there:
        _read(file)  # says what is wrong with it
    masters = [_read(one) for one in sorted(there)]
    return {HouseKeys(master).check: master for master in masters}


def _read_or_make(file: Path, fresh: bytes) -> bytes:
    return _read(file) if file.exists() else make(file, fresh)


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


def make(file: Path, fresh: bytes) -> bytes:
    """Hangs up a new key, whole or not at all; of two processes at once one wins, both have it."""
    try:
        # Mode 0600, and under no name that an earlier key could have.
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
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
        sync_folder(file.parent)
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be made ({error.strerror}); make its folder writable "
            "for the user that the service runs as."
        ) from None
    return _read(file)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, where a system can do that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
