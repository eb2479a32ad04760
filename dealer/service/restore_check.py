"""Restore check: closes all open tables of a database that was restored from an older backup.

Players have seen more events of the open rounds than such a database has, perhaps even their
secrets, and the server would sign a second history. The marks stored next to the key name the
newest committed events (`dealer.eventlog.high_water_mark`). If the log lacks one of them, every
open table is closed before the port opens.

Each such restore starts a new *generation* of the log: a row `generation.N` in `house` with 16
random bytes. A mark of an earlier generation was handled when the next one started; a mark of a
generation that the log does not have was written after the backup.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence

from dealer.errors import (
    DatabaseDamaged,
    HouseKeyError,
    TableArchived,
    TableIsClosed,
    UnknownTable,
)
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.high_water_mark import FIRST, MarkRecord, leaf_digest
from dealer.feed.positions import record_end
from dealer.service import archive as archived
from dealer.service.admin import AdminService
from dealer.service.close_tables import close_tables, open_tables
from dealer.service.service import Service

log_ = logging.getLogger(__name__)

_GENERATION = "generation."
_FIRST_LINE = "SELECT id FROM journal ORDER BY at, id LIMIT 1"
_LINE = "SELECT 1 FROM journal WHERE id = ?"
_NOT_THERE = (TableIsClosed, TableArchived, UnknownTable)


def require_unused(lines: Sequence[MarkRecord], *, database: str, key: str) -> None:
    """Raise HouseKeyError if an empty database is used with a key that has a mark."""
    if lines:
        raise HouseKeyError(
            f"The database {database} is empty, but the key {key} has been used with another: the "
            "mark next to it names events that players have seen. Restore that database from a "
            "backup; or, to start a new house, move the key and the mark elsewhere first."
        )


async def log_id(log: ReadOnlyLog) -> bytes:
    """The log's identity, 8 bytes: the id of its first journal line, equal in every copy."""
    (first,) = await log.fetch_row("journal", _FIRST_LINE)
    return bytes(first)


async def generations(log: ReadOnlyLog) -> list[bytes]:
    """The generations of the log, the newest last."""
    found = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    names = [f"{_GENERATION}{number}" for number in range(1, len(found) + 1)]
    if any(len(bytes(found[name])) != len(FIRST) for name in names if name in found):
        raise DatabaseDamaged(
            "A generation in the SQL table `house` was altered; restore it from a backup of the "
            "database."
        )
    return [FIRST, *(bytes(found[name]) for name in names if name in found)]


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


async def close_if_restored(service: Service, log: Log, lines: Sequence[MarkRecord]) -> bytes:
    """Close every open table if the log lacks an event of the marks' `lines`.

    Returns the generation of the log. After a crash the next start does it again. Raises
    DatabaseError, after which the port must not open.
    """
    if await find_lost(log, lines) is not None:
        # In this order: tables opened after another node has handled the loss stay open.
        tables = await open_tables(log)
        lost = await find_lost(log, lines)
        if lost is not None:
            await _close_all(service, log, tables, lost)
    return (await generations(log))[-1]


async def _close_all(service: Service, log: Log, tables: Sequence[bytes], lost: MarkRecord) -> None:
    details = {"table": lost.table.hex(), "version": lost.version}
    log_.error("database older than its mark", extra={"fields": details | {"open": len(tables)}})
    closed = 0
    async for table, error in close_tables(service, tables, end_shuffles=True):
        if error is None:
            closed += 1
        elif isinstance(error, DatabaseDamaged):
            # It cannot be played either: every load raises the same error.
            fields = {"table": table.hex(), "error": str(error)}
            log_.error("table left open", extra={"fields": fields})
        elif not isinstance(error, _NOT_THERE):
            raise error
    admin = AdminService(log, who="dealer serve")
    why = "the database is older than what players have seen"
    number = len(await generations(log))
    await record_end(log, number)
    await admin.note("restore", "house", why=why, details=details | {"closed": closed})
    await log.put_metadata(f"{_GENERATION}{number}", secrets.token_bytes(16))
