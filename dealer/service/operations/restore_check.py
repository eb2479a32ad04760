"""Restore check: closes all open tables of a database that was restored from an older backup.

Players may have seen more events of the open rounds than such a database has, perhaps even their
secrets, and the server would sign a second history. The marks stored next to the key name the
newest committed events (`dealer.eventlog.high_water_mark`). If the log lacks one of them, every
open table is closed before the port opens.

A node that has seen none of the lost events has no mark of them. So the rows `home.N` in `house`
say which database this log is in (`Reader.identity`), and which folders have marks of it. A log
that is in another database than its newest row says is a copy. Whether it is complete is known only
from the marks of all those folders: a node that lacks some closes every open table, too.

Each such restore starts a new *generation* of the log: a row `generation.N` in `house` with 16
random bytes. A mark of an earlier generation was handled when the next one started; a mark of a
generation that the log does not have was written after the backup.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any, NamedTuple

from dealer import errors
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.high_water_mark import FIRST, HighWaterMark, MarkRecord, leaf_digest
from dealer.feed.positions import record_end
from dealer.service.identity.admin import AdminService
from dealer.service.operations.close_tables import close_tables, open_tables
from dealer.service.service import Service
from dealer.service.tables import archive as archived

REPORT_SECONDS = 1.0
"""Seconds from one log line about the closing of tables to the next."""

MARK_SECONDS = 1.0
"""Seconds between syncs of the mark, and reads of the log's generation."""

log_ = logging.getLogger(__name__)

_GENERATION = "generation."
_HOME = "home."
_LEFT = "left."
_NO_FOLDER = "none"
_FIRST_LINE = "SELECT id FROM journal ORDER BY at, id LIMIT 1"
_LINE = "SELECT 1 FROM journal WHERE id = ?"
_NOT_THERE = (errors.TableIsClosed, errors.TableArchived, errors.UnknownTable)


def require_unused(lines: Sequence[MarkRecord], *, database: str, key: str) -> None:
    """Raise HouseKeyError if an empty database is used with a key that has a mark."""
    if lines:
        raise errors.HouseKeyError(
            f"The database {database} is empty, but the key {key} has been used with another: the "
            "mark next to it names events that players have seen. Restore that database from a "
            "backup; or, to start a new house, move the key and the mark elsewhere first."
        )


async def log_id(log: ReadOnlyLog) -> bytes:
    """The log's identity, 8 bytes: the id of its first journal line, equal in every copy."""
    (first,) = await log.fetch_row("journal", _FIRST_LINE)
    return bytes(first)


@dataclass
class CloseProgress:
    """How far the closing of a restored database's tables is; as text the end of a sentence."""

    closed: int = 0
    tables: int = 0

    def __str__(self) -> str:
        if not self.tables:
            return ""
        return f": {self.closed} of {self.tables} tables of the restored database are closed"


class Home(NamedTuple):
    """A database that this log was in, and the id of a folder with marks of it."""

    database: str
    folder: str


async def generations(log: ReadOnlyLog) -> list[bytes]:
    """The generations of the log, the newest last."""
    found = await _numbered(log, _GENERATION)
    if any(len(each) != len(FIRST) for each in found):
        raise _altered(_GENERATION)
    return [FIRST, *found]


async def homes(log: ReadOnlyLog) -> list[Home]:
    """Where the log was, the newest last."""
    found = [value.decode(errors="replace").split() for value in await _numbered(log, _HOME)]
    if any(len(each) != len(Home._fields) for each in found):
        raise _altered(_HOME)
    return [Home(*each) for each in found]


async def record_home(log: Log, home: Home) -> None:
    """Record that the log is in this database and that this folder has marks of it."""
    known = await homes(log)
    while not known or known[-1].database != home.database or home not in known:
        # If another node takes the same number, its row is read.
        await log.put_metadata(f"{_HOME}{len(known) + 1}", " ".join(home).encode())
        known = await homes(log)


async def _numbered(log: ReadOnlyLog, name: str) -> list[bytes]:
    """The values `name`1, `name`2 … of the house; DatabaseDamaged if one is missing."""
    rows = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    found = {key: bytes(value) for key, value in rows.items() if key.startswith(name)}
    names = [f"{name}{number}" for number in range(1, len(found) + 1)]
    if set(names) != found.keys():
        raise _altered(name)
    return [found[each] for each in names]


async def _left(log: ReadOnlyLog) -> list[bytes]:
    """The tables that a restore should have closed, and whose key was missing."""
    found = await log.fetch("SELECT name FROM house")
    return [bytes.fromhex(name[len(_LEFT) :]) for (name,) in found if name.startswith(_LEFT)]


def _altered(name: str) -> errors.DatabaseDamaged:
    return errors.DatabaseDamaged(
        f"A row `{name}…` of the SQL table `house` was altered; restore it from a backup of the "
        "database."
    )


async def next_generation(log: ReadOnlyLog, number: int) -> bytes | None:
    """The generation after the first `number` ones; None if there is none."""
    return await log.metadata(f"{_GENERATION}{number}")


async def find_lost(log: ReadOnlyLog, lines: Sequence[MarkRecord]) -> MarkRecord | None:
    """The first line of the marks whose event should be in this log and is not."""
    known = await generations(log)
    for line in lines:
        if not await log.fetch(_LINE, (line.log,)):
            continue  # of another log, with the same key
        if line.generation in known[:-1]:
            continue  # its loss was handled
        if line.generation not in known or not await _has(log, line):
            return line
    return None


async def _has(log: ReadOnlyLog, line: MarkRecord) -> bool:
    rows = await log.read(line.table, after=line.version - 1, upto=line.version, limit=1)
    if rows:
        return leaf_digest(line.table, rows[0]) == line.leaf
    kept = await archived.find(log, line.table)
    return kept is not None and kept.size >= line.version


async def close_if_restored(
    service: Service,
    log: Log,
    lines: Sequence[MarkRecord],
    progress: CloseProgress,
    *,
    folder: str | None,
) -> bytes:
    """Close every open table if the log lacks an event of the marks' `lines`, or may lack one.

    `folder` is the id of the folder of marks; None if this node has none. Returns the generation
    of the log. After a crash the next start does it again. Raises DatabaseError, after which the
    port must not open.
    """
    home = Home(await log.reader.identity(), folder or _NO_FOLDER)
    async for _ in close_tables(service, await _left(log), end_shuffles=True):
        pass  # its key may still be missing
    if await _loss(log, lines, home) is not None:
        # In this order: tables opened after another node has handled the loss stay open.
        tables = await open_tables(log)
        loss = await _loss(log, lines, home)
        if loss is not None:
            progress.tables = len(tables)
            await _close_all(service, log, tables, loss, progress)
    await record_home(log, home)
    return (await generations(log))[-1]


async def _loss(
    log: ReadOnlyLog, lines: Sequence[MarkRecord], home: Home
) -> Mapping[str, Any] | None:
    """What shows that the log may lack events that players have seen; None if it lacks none."""
    lost = await find_lost(log, lines)
    if lost is not None:
        return {"table": lost.table.hex(), "version": lost.version}
    known = await homes(log)
    if not known or known[-1].database == home.database:
        return None
    folders = {each.folder for each in known}
    if folders == {home.folder} and home.folder != _NO_FOLDER:
        return None  # this node has every mark, and the log has their events
    return {"copied": known[-1].database, "folders": len(folders)}


async def _close_all(
    service: Service,
    log: Log,
    tables: Sequence[bytes],
    loss: Mapping[str, Any],
    progress: CloseProgress,
) -> None:
    fields = {**loss, "open": len(tables)}
    if "copied" in loss:
        log_.error("database is a copy", extra={"fields": fields})
        why = "the database is a copy, and marks of other nodes may name events that it lacks"
    else:
        log_.error("database older than its mark", extra={"fields": fields})
        why = "the database is older than what players have seen"
    reported_at = monotonic()
    # The read models follow once the port is open: the closings would wait for their slices.
    async with service.projection.lock:
        async for table, error in close_tables(service, tables, end_shuffles=True):
            if monotonic() - reported_at >= REPORT_SECONDS:
                reported_at = monotonic()
                log_.info("closing tables", extra={"fields": asdict(progress)})
            if error is None:
                progress.closed += 1
            elif isinstance(error, errors.DatabaseDamaged):
                # It cannot be played either: every load raises the same error.
                fields = {"table": table.hex(), "error": str(error)}
                log_.error("table left open", extra={"fields": fields})
            elif isinstance(error, errors.HouseKeyError):
                # It cannot be closed or played without its key; a start that has it closes it.
                await log.put_metadata(f"{_LEFT}{table.hex()}", b"")
            elif not isinstance(error, _NOT_THERE):
                raise error
    admin = AdminService(log, who="dealer serve")
    number = len(await generations(log))
    await record_end(log, number)
    await admin.note("restore", "house", why=why, details={**loss, "closed": progress.closed})
    await log.put_metadata(f"{_GENERATION}{number}", secrets.token_bytes(16))


async def keep_mark(mark: HighWaterMark, log: Log) -> None:
    """Sync the mark, and restart it when another node has handled a restored log.

    When the log is in another database, as after a failover, and has the newest events of this
    process, that is recorded, so that the next start does not take it for a copy.
    """
    known = await generations(log)
    database = await log.reader.fence(())
    while True:
        await asyncio.sleep(MARK_SECONDS)
        await asyncio.to_thread(mark.sync)
        with suppress(errors.DealerError):
            generation = await next_generation(log, len(known))
            if generation is not None:
                known.append(generation)
                mark.begin(mark.log, generation)
            found = await log.reader.fence(())
            if found != database:
                mark.uses(found)
                if await find_lost(log, mark.records()) is None:
                    await record_home(log, Home(found, mark.folder))
                    database = found
