"""The file of the house's master key: its path, its creation, and checks that it is the right one.

The master key is a file of 32 bytes that only its owner may read, next to the database and never in
it; nodes that share a PostgreSQL database each have a copy. The database stores a check value, so
that a wrong key is detected before anything is written with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
import tempfile
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from dealer.errors import ConfigurationError, DatabaseDamaged, HouseKeyError, amount
from dealer.eventlog.address import database_file, is_postgres
from dealer.eventlog.admin import RETIRED
from dealer.eventlog.encryption import MASTER_BYTES, HouseKeys
from dealer.eventlog.log import Log
from dealer.eventlog.read_only_log import ReadOnlyLog

log_ = logging.getLogger(__name__)

_CHECK = "key"
_LOSS = (
    "Without it open rounds cannot continue, their hidden cards cannot be read or proved, and "
    "no table can be signed with the key that its players know"
)


def key_file(url: str, given: Path | None = None) -> Path:
    """The path of the key for the database at `url`: `given`, or dealer.db.key for dealer.db.

    Raises ConfigurationError for a PostgreSQL database without `given`.
    """
    if given is not None:
        return given
    if is_postgres(url):
        raise ConfigurationError(
            "Name the house key's file with --house-key or DEALER_HOUSE_KEY_FILE: a PostgreSQL "
            "database has no default path. All nodes that share it need the same key."
        )
    file = database_file(url)
    return file.with_name(file.name + ".key")


def require_database(url: str, key: Path) -> None:
    """Raise HouseKeyError if the SQLite database at `url` is missing, but its key exists.

    A first start creates the database before the key, so no crash leaves a key alone.
    """
    if is_postgres(url) or not key.exists():
        return
    file = database_file(url)
    if not file.exists():
        raise HouseKeyError(
            f"The house key {key} exists, but its database {file} is missing. Restore the database "
            "from a backup, or name the right --database. To begin a new house, first move the key "
            "elsewhere, with all files whose names begin with its name; for a key that was never "
            "used, make an empty database with `dealer migrate`."
        )


async def load_house_keys(log: Log, file: Path, *, fresh: bytes) -> HouseKeys:
    """The keys of the house whose master key is in `file` and whose log is `log`.

    `fresh` is 32 random bytes, which become the key if neither file nor log has one. Earlier keys
    are loaded from files next to it; where one is missing, as in a backup from before the key was
    retired, its tables are unavailable until the keys are loaded again with it. Raises
    HouseKeyError if the key is missing, unreadable, accessible to other users, or of another house.
    """
    if len(fresh) != MASTER_BYTES:
        raise ValueError(f"a master key has {MASTER_BYTES} bytes")
    known = await key_checks(log)
    if not known:
        master = await asyncio.to_thread(_read_or_create, file, fresh)
        await log.put_metadata(_CHECK, HouseKeys(master).check)
        known = await key_checks(log)
    masters = await asyncio.to_thread(_masters, file)
    (_, check), *before = reversed(known.items())
    if check not in masters:
        raise HouseKeyError(
            f"The key in {file} is another house's, or newer than this database. {_LOSS}; restore "
            "the key file of this database from a backup."
        )
    current, earlier, missing = masters[check], [], set()
    for name, check in before:
        if check in masters:
            earlier.append(HouseKeys(masters[check]))
        elif await log.metadata(f"{name}{RETIRED}") is None:
            missing.add(check)
            fields = {"file": str(earlier_file(file, check))}
            log_.error("house key missing", extra={"fields": fields})
    return HouseKeys(current, earlier=earlier, more=partial(_added_keys, file, without=missing))


async def existing_house_keys(log: Log, file: Path) -> HouseKeys:
    """The keys of the house, see `load_house_keys`; HouseKeyError if it has none yet."""
    if not await key_checks(log):
        raise HouseKeyError("This house has no key yet; `dealer serve` makes the first.")
    return await load_house_keys(log, file, fresh=bytes(MASTER_BYTES))


async def key_checks(log: ReadOnlyLog) -> dict[str, bytes]:
    """The check values of all keys of the house, by their names, the newest last.

    Raises DatabaseDamaged if one is not a check value, or if the log has tables and there is none.
    """
    found = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    names = [_CHECK, *(f"{_CHECK}.{number}" for number in range(1, len(found)))]
    checks = {name: found[name] for name in names if name in found}
    for name, check in checks.items():
        if not isinstance(check, bytes) or len(check) != MASTER_BYTES:
            raise DatabaseDamaged(
                f"The row `{name}` of the SQL table `house` was altered; restore it from a backup "
                "of the database."
            )
    if not checks and await log.fetch("SELECT 1 FROM stream LIMIT 1"):
        raise DatabaseDamaged(
            f"The row `{_CHECK}` of the SQL table `house` is missing, but the log has tables; "
            "restore it from a backup of the database."
        )
    return checks


def read_keys(file: Path) -> list[HouseKeys]:
    """The keys in `file` and in the files of earlier keys; HouseKeyError if one is unreadable."""
    return [HouseKeys(master) for master in _masters(file).values()]


def _added_keys(file: Path, *, without: Collection[bytes]) -> list[HouseKeys]:
    """The keys there, but for those with these check values.

    A restore leaves the open tables of a missing key to the first start that has it.
    """
    return [key for key in read_keys(file) if key.check not in without]


def earlier_file(file: Path, check: bytes) -> Path:
    """The path of a key after a rotation has replaced it."""
    return file.with_name(f"{file.name}.{check.hex()[:8]}")


def next_file(file: Path) -> Path:
    """The path of a new key before a rotation activates it."""
    return file.with_name(f"{file.name}.new")


def key_files(file: Path) -> list[Path]:
    """The files of all keys of a house, next to each other; HouseKeyError if `file` is not there.

    Their names begin with that of `file`.
    """
    beside = re.compile(re.escape(file.name) + r"(\.new|\.[0-9a-f]{8})?")
    try:
        there = [
            neighbour for neighbour in file.parent.iterdir() if beside.fullmatch(neighbour.name)
        ]
    except OSError as error:
        _read(file)
        raise HouseKeyError(
            f"The folder {file.parent} cannot be listed for the house keys ({error.strerror}); "
            "let the server's user read it."
        ) from None
    if file not in there:
        _read(file)  # raises the error that describes the problem
    return sorted(there)


def _masters(file: Path) -> dict[bytes, bytes]:
    """All master keys in `file` and its neighbours, by their check values."""
    masters = [_read(each) for each in key_files(file)]
    return {HouseKeys(master).check: master for master in masters}


def _read_or_create(file: Path, fresh: bytes) -> bytes:
    return _read(file) if file.exists() else make(file, fresh)


def _read(file: Path) -> bytes:
    try:
        mode = file.stat().st_mode
        master = file.read_bytes()
    except FileNotFoundError:
        raise HouseKeyError(
            f"The house key {file} is missing, but the database has been used with one. {_LOSS}; "
            "restore the file from a backup. Closed rounds remain provable without it."
        ) from None
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be read ({error.strerror}); make it readable "
            "for the user that the server runs as."
        ) from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HouseKeyError(
            f"The house key {file} is open to other users, who could read every hidden card; "
            f"run `chmod 600 {file}`, then start again."
        )
    if len(master) != MASTER_BYTES:
        raise HouseKeyError(
            f"The file {file} is no house key: it has {amount(len(master), 'byte')} and not "
            f"{MASTER_BYTES}. {_LOSS}; restore the file from a backup."
        )
    return master


def make(file: Path, fresh: bytes) -> bytes:
    """Create a new key file atomically; two processes at once both return the same key."""
    try:
        # Mode 0600, under a name that no key file can have.
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
        # The directory entry must be durable before anything is encrypted with the key.
        sync_folder(file.parent)
    except OSError as error:
        raise HouseKeyError(
            f"The house key {file} cannot be created ({error.strerror}); make its folder writable "
            "for the user that the server runs as."
        ) from None
    return _read(file)


def sync_folder(folder: Path) -> None:
    """fsync a folder, on systems that support it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
