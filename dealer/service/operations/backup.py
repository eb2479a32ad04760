"""Backups: a folder with everything that a house needs, and a list of its hashes.

    dealer.db or dealer.dump    the SQLite database, or what pg_dump wrote of a PostgreSQL one
    key/key, key/key.…          the house's keys
    archive/, packs/, games/    bundles of archived tables, packs and games of the operator
    SHA256SUMS                  the hashes of all of these, as `sha256sum --check` reads them

The database is copied first, and what it needs afterwards, so tables that are archived meanwhile
are in the copy and in the archive. The list is written last: a folder without it is no backup. A
copy says of itself that it is one (`restore_check.py`), so that however it is restored, its open
tables are closed unless the marks show that nothing is lost.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from dealer.errors import ConfigurationError, DatabaseDamaged, HouseKeyError, SchemaOutdated, amount
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.address import database_file, is_postgres, sqlite_address
from dealer.eventlog.backends import copy_file, open_readonly, revision
from dealer.eventlog.high_water_mark import fence
from dealer.eventlog.keys import (
    KEY_END,
    HouseKeys,
    existing_house_keys,
    key_checks,
    key_file,
    key_files,
    sync_folder,
)
from dealer.service.identity.admin import AdminService
from dealer.service.operations.restore_check import Home, homes, record_home

DUMP, FILE, SUMS = "dealer.dump", "dealer.db", "SHA256SUMS"

_BLOCK = 2**20
_LINE = re.compile(r"([0-9a-f]{64})  ([^\0]+)")
_NAME = re.compile(
    rf"{FILE}|{DUMP}|key/key{KEY_END}|archive/[0-9a-f]{{32}}\.jsonl|(packs|games)/(?!\.\.?$)[^/]+"
)
"""What `back_up` writes; a mark among the keys would say which events were not lost."""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
  AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_ENDING_SECONDS = 2.0
"""Seconds in which the sessions of a server that was stopped end."""


class Folders(NamedTuple):
    """The operator's folders besides the database and the key; None if there is none."""

    archive: Path | None = None
    packs: Path | None = None
    games: Path | None = None


class Backup(NamedTuple):
    """`files` is their number, `size` their bytes; `missing` bundles were not found."""

    files: int
    size: int
    missing: int


async def back_up(
    database: str, to: Path, *, house_key: Path | None, folders: Folders, who: str
) -> Backup:
    """Write a backup of the house whose log is at `database` to the folder `to`; servers may run.

    The folder is new or empty; for PostgreSQL it has the dump already. If the backup fails, what it
    wrote is removed. Raises DatabaseError, HouseKeyError or ConfigurationError.
    """
    file = key_file(database, house_key)
    try:
        made = await asyncio.to_thread(_require_empty, to, is_postgres(database))
        sums: dict[str, str] = {}
        try:
            async with await Log.open_existing(database) as log:
                await fence(log, file)
                await existing_house_keys(log, file)
                if is_postgres(database):
                    os.chmod(to / DUMP, 0o600)
                    sums[DUMP] = await asyncio.to_thread(_digest, to / DUMP)
                    needed = await _bundles(log)
                else:
                    await asyncio.to_thread(copy_file, database, to / FILE)
                    async with await Log.open(sqlite_address(to / FILE)) as copy:
                        await record_home(copy, Home("backup", await _newest_folder(copy)))
                        needed = await _bundles(copy)
                    sums[FILE] = await asyncio.to_thread(_digest, to / FILE)
                missing = await asyncio.to_thread(_copy_files, to, file, folders, needed, sums)
                await asyncio.to_thread(_write_sums, to, sums)
                await AdminService(log, who=who).record_backup(str(to))
        except BaseException:
            await asyncio.to_thread(_remove, to, made=made)
            raise
    except OSError as error:
        raise _failed(error) from None
    size = sum((to / name).stat().st_size for name in sums)
    return Backup(len(sums), size, missing)


async def restore(
    database: str,
    source: Path,
    *,
    house_key: Path | None,
    folders: Folders,
    complete: bool,
    who: str,
) -> int:
    """Restore the backup in the folder `source`, whose hashes are checked first; its files.

    A PostgreSQL database has been restored from the dump before, and no server is connected to it.
    An SQLite file is put in place last. Files that are there already are kept if they are equal.
    With `complete` nothing was committed after the backup, so that open tables may continue.
    Raises ConfigurationError, DatabaseError or HouseKeyError, mostly before anything is written.
    """
    file = key_file(database, house_key)
    try:
        sums = await asyncio.to_thread(_checked, source)
        plan = await asyncio.to_thread(_places, source, sums, file, folders)
        if is_postgres(database):
            await _require_restored(database, source, sums)
            await _restore_log(database, source, sums, plan, complete=complete, who=who)
            return len(sums)
        target = database_file(database).resolve()  # not a link to it
        _require_absent(target, source, sums)
        draft = target.with_name(f"{target.name}.part")
        _remove_draft(draft)  # of a restore that was killed
        try:
            await asyncio.to_thread(_copy, source / FILE, draft)
            address = sqlite_address(draft)
            await _restore_log(address, source, sums, plan, complete=complete, who=who)
            os.replace(draft, target)
            sync_folder(target.parent)
        finally:
            _remove_draft(draft)
    except OSError as error:
        raise _failed(error) from None
    return len(sums)


async def _restore_log(
    database: str,
    source: Path,
    sums: Mapping[str, str],
    plan: Mapping[Path, Path],
    *,
    complete: bool,
    who: str,
) -> None:
    """Put the files of the plan in their places, and say in the log that it was restored."""
    async with await Log.open(database) as log:
        known = list((await key_checks(log)).values())
        keys = [HouseKeys(each.read_bytes()).check for each in key_files(source / "key" / "key")]
        if not known or known[-1] not in keys:
            raise HouseKeyError(
                f"The keys in {source} are not those of this database; restore the database and "
                "the keys of one backup."
            )
        archived = {f"archive/{name}": sha.hex() for name, sha in (await _bundles(log)).items()}
        foreign = [n for n in sums if n.startswith("archive/") and sums[n] != archived.get(n)]
        if foreign:
            raise ConfigurationError(
                f"The file {source / foreign[0]} is no bundle of this database: name another "
                "backup."
            )
        for each, to in plan.items():
            await asyncio.to_thread(_copy, each, to)
        word = await log.reader.identity() if complete else "restored"
        await record_home(log, Home(word, await _newest_folder(log)))
        details = {"folder": str(source), "complete": complete}
        await AdminService(log, who=who).note("restore-backup", "house", details=details)


async def _newest_folder(log: ReadOnlyLog) -> str:
    known = await homes(log)
    return known[-1].folder if known else "none"


async def _bundles(log: ReadOnlyLog) -> dict[str, bytes]:
    """The files of archived tables, and their hashes."""
    rows = await log.fetch("SELECT file, sha256 FROM archived")
    return {os.path.basename(file): bytes(digest) for file, digest in rows}


def _require_empty(to: Path, postgres: bool) -> bool:
    """Make the folder, or raise ConfigurationError if it has something else than a dump.

    Returns whether it was made.
    """
    made = not to.exists()
    to.mkdir(mode=0o700, exist_ok=True)
    there = {each.name for each in to.iterdir()}
    if there - ({DUMP} if postgres else set()):
        raise ConfigurationError(
            f"The folder {to} is not empty: it may have another backup. Name a new folder."
        )
    to.chmod(0o700)  # one that was there may be open to others
    if not postgres:
        return made
    with suppress(FileNotFoundError), (to / DUMP).open("rb") as dump:
        if dump.read(5) == b"PGDMP":
            return False
    if made:
        to.rmdir()
    raise ConfigurationError(
        f"The database has to be dumped first: `mkdir -m 700 {to}`, `pg_dump --format=custom "
        f"--file {to / DUMP}` and the database's address, and then this command again. In this "
        "order nothing that is archived meanwhile is lost."
    )


def _copy_files(
    to: Path, key: Path, folders: Folders, needed: Mapping[str, bytes], sums: dict[str, str]
) -> int:
    """Copy everything but the database into the backup; how many bundles are missing."""
    for each in key_files(key):
        _add(each, to, f"key/key{each.name.removeprefix(key.name)}", sums)
    for kind in ("packs", "games"):
        folder = getattr(folders, kind)
        for each in sorted(folder.iterdir()) if folder is not None else ():
            if each.is_file():
                _add(each, to, f"{kind}/{each.name}", sums)
    missing = 0
    for name, digest in sorted(needed.items()):
        bundle = folders.archive / name if folders.archive is not None else None
        if bundle is None or not bundle.exists():
            missing += 1
            continue
        _add(bundle, to, f"archive/{name}", sums)
        if sums[f"archive/{name}"] != digest.hex():
            raise DatabaseDamaged(
                f"The file {bundle} is not the bundle that was archived; restore it from a backup."
            )
    return missing


def _add(source: Path, to: Path, name: str, sums: dict[str, str]) -> None:
    (to / name).parent.mkdir(mode=0o700, exist_ok=True)
    sums[name] = _copy(source, to / name)


def _copy(source: Path, to: Path) -> str:
    """Copy a file, durably, for its owner only; the hash of what was copied.

    A file that is there already has to be equal.
    """
    digest = sha256()
    with suppress(FileNotFoundError):
        if _digest(to) == _digest(source):
            return _digest(to)
        raise ConfigurationError(
            f"There is another {to} already. Move it elsewhere, and then restore again."
        )
    with source.open("rb") as reading:
        handle = os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with open(handle, "wb") as writing:
                while block := reading.read(_BLOCK):
                    digest.update(block)
                    writing.write(block)
                writing.flush()
                os.fsync(handle)
        except BaseException:
            to.unlink()
            raise
    sync_folder(to.parent)
    return digest.hexdigest()


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _write_sums(to: Path, sums: Mapping[str, str]) -> None:
    draft = to / f"{SUMS}.part"
    draft.touch(mode=0o600, exist_ok=False)
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, to / SUMS)
    sync_folder(to)


def _remove(to: Path, *, made: bool) -> None:
    """Remove what an interrupted backup wrote, but for the dump that was there."""
    for name in ("key", "packs", "games", "archive"):
        shutil.rmtree(to / name, ignore_errors=True)
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", SUMS, f"{SUMS}.part"):
        (to / name).unlink(missing_ok=True)
    if made:
        with suppress(OSError):
            to.rmdir()


def _checked(source: Path) -> dict[str, str]:
    """The hashes of a backup's files by name; ConfigurationError if one of them is wrong."""
    try:
        text = (source / SUMS).read_bytes().decode()
    except FileNotFoundError:
        raise ConfigurationError(
            f"The folder {source} is no complete backup: it has no list {SUMS}, which "
            "`dealer backup` writes last. Name another backup."
        ) from None
    sums = {}
    for line in text.removesuffix("\n").split("\n"):
        found = _LINE.fullmatch(line)
        if found is None or not _NAME.fullmatch(found[2]):
            raise ConfigurationError(f"The list {source / SUMS} is damaged; name another backup.")
        sums[found[2]] = found[1]
    for name, digest in sums.items():
        try:
            same = _digest(source / name) == digest
        except FileNotFoundError:
            same = False
        if not same:
            raise ConfigurationError(
                f"The file {source / name} is missing, or is not the one that was backed up; name "
                "another backup."
            )
    return sums


def _places(source: Path, sums: Mapping[str, str], key: Path, folders: Folders) -> dict[Path, Path]:
    """Where each file but the database's goes; ConfigurationError if that is not known or free."""
    plan = {}
    for name in sums:
        kind, _, file = name.rpartition("/")
        if kind == "key":
            plan[source / name] = key.with_name(key.name + file.removeprefix("key"))
        elif kind:
            folder = getattr(folders, kind)
            if folder is None or not folder.is_dir():
                raise ConfigurationError(
                    f"The backup has files for the folder of --{kind}. Create one, and name it "
                    f"with --{kind} or DEALER_{kind.upper()}."
                )
            plan[source / name] = folder / file
    for each, to in plan.items():
        if to.exists() and _digest(to) != sums[each.relative_to(source).as_posix()]:
            raise ConfigurationError(
                f"There is another {to} already. Move it elsewhere, and then restore again."
            )
    return plan


def _require_absent(target: Path, source: Path, sums: Mapping[str, str]) -> None:
    if FILE not in sums:
        raise _other_kind(source, "PostgreSQL", "the address of the new database")
    for end in ("", "-wal", "-shm"):
        there = Path(f"{target}{end}")
        if there.exists():
            raise ConfigurationError(
                f"There is a file {there}. Stop every server, move it elsewhere with all files of "
                "that database, but leave the marks, and then restore again."
            )


def _remove_draft(draft: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{draft}{end}").unlink(missing_ok=True)


async def _require_restored(database: str, source: Path, sums: Mapping[str, str]) -> None:
    """Raise if the dump is not in the database yet, or a server may still use the database."""
    if DUMP not in sums:
        raise _other_kind(source, "SQLite", "an SQLite file")
    if await revision(database) is None:
        raise SchemaOutdated(
            f"The database is empty. First run `pg_restore --exit-on-error --dbname` with its "
            f"address and {source / DUMP}, and then this command again."
        )
    async with await open_readonly(database) as log:
        for _ in range(20):
            ((others,),) = await log.fetch(_OTHERS)
            if not others:
                return
            await asyncio.sleep(_ENDING_SECONDS / 20)
    raise ConfigurationError(
        f"{amount(others, 'other program still uses', 'other programs still use')} the "
        "database: stop every "
        "server, and then restore again."
    )


def _other_kind(source: Path, product: str, other: str) -> ConfigurationError:
    return ConfigurationError(
        f"The backup in {source} is one of a {product} database; name {other} with --database."
    )


def _failed(error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The file {error.filename} cannot be read or written ({error.strerror}); check its folder "
        "and the free space, and then try again."
    )
