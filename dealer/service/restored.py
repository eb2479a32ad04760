"""A database that was restored from an older backup does not deal on in the rounds it holds.

Players have seen more of them than the database knows, perhaps even their secrets, and the server
would sign another history than the one it has signed. The marks beside the key say what was
committed last (`dealer.eventlog.mark`). If the log lacks one of those events, every open table is
closed before the port opens.

Each such restore begins a new *generation* of the log: a row `generation.N` in `house` with 16
random bytes. A mark of an earlier generation was dealt with when the next one began; a mark of a
generation that the log does not know was written after the backup.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dealer.errors import (
    DatabaseDamaged,
    HouseKeyError,
    TableArchived,
    TableEnded,
    UnknownTable,
)
from dealer.eventlog import Log, Reading
from dealer.eventlog.mark import FIRST, Line, leaf_digest
from dealer.service import archived
from dealer.service.closing import close_tables, open_tables
from dealer.service.office import Office

if TYPE_CHECKING:
    from dealer.service.core import Service

log_ = logging.getLogger(__name__)

_GENERATION = "generation."
_FIRST_LINE = "SELECT id FROM journal ORDER BY at, id LIMIT 1"
_LINE = "SELECT 1 FROM journal WHERE id = ?"
_NOT_THERE = (TableEnded, TableArchived, UnknownTable)


def require_unused(lines: Sequence[Line], *, database: str, key: str) -> None:
    """Raise HouseKeyError if an empty database is to be used with a key that has a mark."""
    if lines:
        raise HouseKeyError(
            f"The database {database} is empty, but the key {key} has been used with another: its "
            "mark beside it names events that players have seen. Restore that database from a "
            "backup; or, to begin a new house, move the key and the mark elsewhere first."
        )


async def log_id(log: Reading) -> bytes:
    """8 bytes by which this log is known: the id of its first journal line, in every copy of it."""
    ((first,),) = await log.fetch(_FIRST_LINE)
    return bytes(first)


async def generations(log: Reading) -> list[bytes]:
    """The generations of the log, the newest last."""
    found = dict(map(tuple, await log.fetch("SELECT name, value FROM house")))
    names = [f"{_GENERATION}{number}" for number in range(1, len(found) + 1)]
    return [FIRST, *(bytes(found[name]) for name in names if name in found)]


async def next_generation(log: Reading, number: int) -> bytes | None:
    """The generation that follows the first `number` ones; None if there is none yet."""
    return await log.house(f"{_GENERATION}{number}")


async def find_lost(log: Reading, lines: Sequence[Line]) -> Line | None:
    """The first of the marks' lines whose event this log should hold, and does not."""
    known = await generations(log)
    for line in lines:
        if not await log.fetch(_LINE, (line.log,)):
            continue  # of another log, with the same key
        if line.generation in known[:-1]:
            continue  # its loss was dealt with
        if line.generation not in known or not await _has(log, line):
            return line
    return None


async def _has(log: Reading, line: Line) -> bool:
    rows = await log.read(line.table, after=line.version - 1, upto=line.version, limit=1)
    if rows:
        return leaf_digest(line.table, rows[0]) == line.leaf
    kept = await archived.find(log, line.table)
    return kept is not None and kept.size >= line.version


async def close_if_restored(service: Service, log: Log, lines: Sequence[Line]) -> bytes:
    """Close every open table if the log lacks what the marks' `lines` name; its generation.

    Broken off at any point it is done again at the next start. Raises DatabaseError, after which
    the port must not open.
    """
    if await find_lost(log, lines) is not None:
        # In this order: a table that was opened after another node had dealt with it stays open.
        tables = await open_tables(log)
        lost = await find_lost(log, lines)
        if lost is not None:
            await _close_all(service, log, tables, lost)
    return (await generations(log))[-1]


async def _close_all(service: Service, log: Log, tables: Sequence[bytes], lost: Line) -> None:
    details = {"table": lost.table.hex(), "version": lost.version}
    log_.error("database older than its mark", extra={"told": details | {"open": len(tables)}})
    closed = 0
    async for table, error in close_tables(service, tables, end_shuffles=True):
        if error is None:
            closed += 1
        elif isinstance(error, DatabaseDamaged):
            # It cannot be played either: whoever loads it meets the same error.
            told = {"table": table.hex(), "error": str(error)}
            log_.error("table left open", extra={"told": told})
        elif not isinstance(error, _NOT_THERE):
            raise error
    office = Office(log, who="dealer serve")
    why = "the database is older than what players have seen"
    number = len(await generations(log))
    await office.note("restore", "house", why=why, details=details | {"closed": closed})
    await log.put_house(f"{_GENERATION}{number}", secrets.token_bytes(16))
