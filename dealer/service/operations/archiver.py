"""Archiver: moves closed tables from the database into files that prove them.

The order of the work ensures that no table is lost when the process dies. The bundle is made and
verified, written under a draft name, synced, renamed, read again and verified again. Then one
transaction adds the table to the archived ones, unless a cosignature arrived meanwhile. Only after
it the events are deleted, a few thousand at a time. The next run continues an interrupted one.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from dealer import errors
from dealer.eventlog import Log
from dealer.eventlog import admin as admin_tables
from dealer.eventlog.admin import Archived, notes_digest
from dealer.eventlog.high_water_mark import lock_file
from dealer.eventlog.keys import sync_folder
from dealer.game.rules import Rules
from dealer.projector.models import MODELS
from dealer.proof.bundle import read
from dealer.proof.checkpoint import open_note
from dealer.proof.verify import verify
from dealer.service.clock import utc_ms
from dealer.service.identity.admin import AdminService
from dealer.service.operations.forgetting import Forgotten, forget
from dealer.service.reading.bundle import bundle_lines, bundle_range, stored_notes
from dealer.service.tables.archive import ArchiveFolder, find, require_here

_CLOSED = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type = 'TableClosed' AND e.at <= ?
  AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id)
ORDER BY e.at
"""
_INTERRUPTED = """
SELECT s.table_id FROM archived a JOIN stream s ON s.id = a.stream
WHERE EXISTS (SELECT 1 FROM event e WHERE e.stream = a.stream)
   OR EXISTS (SELECT 1 FROM tables t WHERE t.stream = a.stream)
"""
_ATTEMPTS = 3

Progress = Callable[[int, int], None]
"""Called with events read and events in all."""


class ArchiveResult(NamedTuple):
    """What became of one table; `error` is None if it is in `file` now."""

    table: bytes
    file: Path
    error: errors.DatabaseDamaged | errors.ConcurrentUpdate | errors.Refused | None = None


class Archiver:
    """Archives tables of `log` into `folder`; `database` is the log's address.

    `step` follows the reading of a table.
    """

    def __init__(
        self,
        log: Log,
        database: str,
        folder: Path,
        *,
        who: str,
        why: str,
        step: Progress = lambda done, total: None,
    ) -> None:
        self._log = log
        self._database = database
        self._folder = folder
        self._admin = AdminService(log, who=who)
        self._why = why
        self._step = step

    async def finish_interrupted(self) -> None:
        """Delete the remaining rows of tables whose archiving was interrupted."""
        for (table,) in await self._log.fetch(_INTERRUPTED):
            await self._delete_rows(table)

    async def closed_tables(self, *, age: int) -> list[bytes]:
        """The tables that were closed at least `age` milliseconds ago, the oldest first."""
        found = await self._log.fetch(_CLOSED, (utc_ms() - age,))
        return [table for (table,) in found]

    async def archive_all(self, tables: list[bytes]) -> AsyncIterator[ArchiveResult]:
        """Archive each table; a table that cannot be archived does not affect the others."""
        for table in tables:
            error: errors.DatabaseDamaged | errors.ConcurrentUpdate | errors.Refused | None = None
            try:
                await self.archive(table)
            except (errors.DatabaseDamaged, errors.ConcurrentUpdate, errors.Refused) as caught:
                error = caught
            yield ArchiveResult(table, self.file_of(table), error)

    async def forget(self, table: bytes, who: str) -> Forgotten:
        """Write the bundle without the openings that name a person, see `forgetting.forget`.

        A table that is not archived yet is archived first. Raises BadRequest if no player had this
        name or seat, TableArchived if the table is not closed or its file is not in the
        folder, DatabaseDamaged if the file does not verify.
        """
        record = await find(self._log, table)
        if record is None:
            head, _ = await self._require_closed(table)
            extent = await bundle_range(self._log, self._database, table, house_key=None)
            lines = [line.encode() async for line in bundle_lines(self._log, extent)]
        else:
            head, path = record.size, ArchiveFolder(self._folder).find(record)
            data = await asyncio.to_thread(path.read_bytes)
            lines = read(data)
        proven = require_valid(lines, table, head)
        if record is not None and proven != (record.house_key, record.root):
            raise errors.DatabaseDamaged(f"The file {path} is not of the log that was archived.")
        found = forget(lines, who)
        # An interrupted run may have written the file, but not its hash.
        unrecorded = record is not None and sha256(data).digest() != record.sha256
        if not (found.versions or unrecorded):
            raise errors.BadRequest(
                f"No player of the name or seat {who!r} is in the log of this table; names and "
                "seats are in `dealer history FILE`."
            )
        require_valid(found.lines, table, head)
        if record is None:
            await self.archive(table)
        data = b"".join(line + b"\n" for line in found.lines)
        file = self.file_of(table)
        await asyncio.to_thread(write_file, file, data, self._draft_of(file))
        await self._admin.replace_bundle(table, data, versions=found.versions, why=self._why)
        return found

    async def archive(self, table: bytes) -> None:
        """Archive one closed table.

        Raises TableArchived if it is archived already or not closed, DatabaseDamaged if its bundle
        does not verify, ConcurrentUpdate if cosignatures keep arriving.
        """
        await require_here(self._log, table)
        for attempt in range(1, _ATTEMPTS + 1):
            archived = await self._write_bundle(table)
            try:
                await self._admin.archive(table, archived, why=self._why)
                break
            except errors.ConcurrentUpdate:
                if attempt == _ATTEMPTS:
                    raise
        await self._delete_rows(table)

    def file_of(self, table: bytes) -> Path:
        """The file of a table's bundle."""
        return self._folder / f"{table.hex()}.jsonl"

    async def _write_bundle(self, table: bytes) -> Archived:
        """The bundle on disk, verified before and after it was written."""
        head, closed_at = await self._require_closed(table)
        notes = [note async for note in stored_notes(self._log, table)]
        extent = await bundle_range(self._log, self._database, table, house_key=None)
        lines = [line.encode() async for line in bundle_lines(self._log, extent, step=self._step)]
        key, root = require_valid(lines, table, head)
        data = b"".join(line + b"\n" for line in lines)
        file = self.file_of(table)
        await asyncio.to_thread(write_file, file, data, self._draft_of(file))
        written = await asyncio.to_thread(file.read_bytes)
        require_valid(read(written), table, head)
        return Archived(
            size=head,
            root=root,
            house_key=key,
            file=file.name,
            length=len(written),
            sha256=sha256(written).digest(),
            closed_at=closed_at,
            notes=notes_digest(notes),
        )

    async def _require_closed(self, table: bytes) -> tuple[int, int]:
        """The table's last version and its time; TableArchived if it is not closed."""
        head = await self._log.head(table) or 0
        last = await self._log.read(table, after=head - 1, limit=1)
        if not last or last[0].type != "TableClosed":
            raise errors.TableArchived("Only a closed table can be archived; its host closes it.")
        (opened,) = await self._log.read(table, limit=1)
        seconds = Rules.read(opened.members()["rules"]).broadcast or 0
        if utc_ms() < last[0].at + 1000 * seconds:
            raise errors.TableArchived("The broadcast of this table is not over; archive it later.")
        return head, last[0].at

    def _draft_of(self, file: Path) -> Path:
        return self._folder / f"{file.name}.{secrets.token_bytes(4).hex()}.part"

    async def _delete_rows(self, table: bytes) -> None:
        """Delete what the database still has of an archived table."""
        while await delete_slice(self._log, table):
            pass


async def delete_slice(log: Log, table: bytes) -> bool:
    """Delete a few thousand rows of an archived table; whether more are left."""
    models = [model.name for model in MODELS]
    return await log.run_in_transaction(admin_tables.delete_archived_rows, table, models)


@asynccontextmanager
async def exclusive(folder: Path) -> AsyncIterator[None]:
    """Lock the folder: of two processes the slower could replace a newer bundle by an older one.

    Raises ConfigurationError if another process holds the lock.
    """
    if os.name != "posix":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            if not lock_file(handle):
                raise errors.ConfigurationError(
                    f"Another `dealer tables archive` is running in {folder}; try again when it "
                    "has ended."
                )
        yield
    finally:
        os.close(handle)


def require_valid(lines: list[bytes], table: bytes, head: int) -> tuple[bytes, bytes]:
    """The table's key and root as these lines prove them; raises DatabaseDamaged if they do not."""
    report = verify(lines)
    if report.fault is not None:
        raise errors.DatabaseDamaged(
            f"The bundle of table {table.hex()} does not verify ({report.fault}); nothing was "
            f"deleted. See `dealer audit {table.hex()}`, and the bundles that its players kept."
        )
    key = bytes.fromhex(report.key)
    note = json.loads(lines[-1])["checkpoint"]
    size, root = open_note(note, key=key, table=table.hex())
    if size != head:
        raise errors.DatabaseDamaged(f"The bundle of table {table.hex()} is not complete.")
    return key, root


def write_file(file: Path, data: bytes, draft: Path) -> None:
    """Write the file under its name once all of it is on disk; removes drafts of earlier runs."""
    try:
        with draft.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, file)
        for leftover in file.parent.glob(f"{file.name}.*.part"):
            leftover.unlink(missing_ok=True)
        sync_folder(file.parent)
    except OSError as error:
        raise errors.ConfigurationError(f"{file} cannot be written: {error.strerror}.") from None
