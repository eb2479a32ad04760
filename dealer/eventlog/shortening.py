"""Shortens the events that earlier releases stored: `dealer migrate --shorten`.

Servers may run meanwhile. First the database's form becomes `mixed`, from which on every node
writes the short form; then the rows are read in the order of their key and the canonical ones
rewritten, a few hundred in each transaction; when a whole pass has found none, the form becomes
`short`. If the process ends early, the next one finds what is left. The triggers of `event` compare
each new row with the old one, so that a fault in this module cannot change an event.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

from sqlalchemy import Connection

from dealer.eventlog import event_form
from dealer.eventlog.event_form import Form
from dealer.eventlog.log import Log
from dealer.eventlog.postgres.bulk_write import stored_short
from dealer.eventlog.queries import COLUMNS
from dealer.eventlog.rows import Row
from dealer.eventlog.short_form import decode, encode

ROWS = 256
"""Rows that are read in one transaction."""

SETTLE_SECONDS = 90.0
"""A node of a shared database may try to write a batch in the old form for so long."""

_PAUSE = 0.02
_SELECT = {
    "sqlite": (
        f"SELECT id, 0, {COLUMNS} FROM event WHERE id > ? AND 0 = ? AND id <= ? ORDER BY id LIMIT ?"
    ),
    "postgresql": (
        f"SELECT stream, version, {COLUMNS} FROM event WHERE (stream, version) > (?, ?)"
        " AND stream <= ? ORDER BY stream, version LIMIT ?"
    ),
}
_LAST = {
    "sqlite": "SELECT max(id) FROM event",
    "postgresql": "SELECT stream FROM event ORDER BY stream DESC LIMIT 1",
}
_UPDATE = "UPDATE event SET type = ?, public = ?, hidden = ?, command = ?, digest = ? WHERE {}"
_WHERE = {"sqlite": "id = ? AND 0 = ?", "postgresql": "stream = ? AND version = ?"}
_FIRST = {"sqlite": (0, 0), "postgresql": (b"", 0)}
_CHANGED = [Row._fields.index(name) for name in ("type", "public", "hidden", "command", "digest")]

Key = tuple[Any, Any]


class Pass:
    """One pass over the events that are there when it begins.

    `shortened` counts the rewritten ones. Events that are appended meanwhile are short, and do not
    keep it from ending.
    """

    def __init__(self, dialect: str) -> None:
        self.shortened = 0
        self._after: Key = _FIRST[dialect]
        self._last: Any = None
        self._select_last = _LAST[dialect]
        self._select = _SELECT[dialect]
        self._update = _UPDATE.format(_WHERE[dialect])
        self._encode = encode if dialect == "sqlite" else stored_short

    def slice(self, connection: Connection) -> Key | None:
        """Shorten the next rows, inside the caller's transaction; the last key, or None at the end.

        Pass the key to `done` once the transaction was committed.
        """
        execute = connection.exec_driver_sql
        if self._last is None:
            self._last = execute(self._select_last).scalar()
            if self._last is None:
                return None
        found = execute(self._select, (*self._after, self._last, ROWS)).fetchall()
        changes = []
        for first, second, *columns in found:
            short = self._shortened(columns)
            if short is not None:
                changes.append((*(short[place] for place in _CHANGED), first, second))
        if changes:
            execute(self._update, changes)
        self.shortened += len(changes)
        return (found[-1][0], found[-1][1]) if found else None

    def done(self, key: Key) -> None:
        """Continue after this key."""
        self._after = key

    def _shortened(self, columns: list[Any]) -> Any:
        """The columns in the short form; None if the row stays as it is."""
        row = Row._make(columns)
        if row.public[:1] != "{":
            return None
        short = self._encode(Row._make(decode(columns)))
        return None if tuple(short) == tuple(columns) else short


async def shorten(log: Log, *, settle_seconds: float = SETTLE_SECONDS) -> int:
    """Shorten all events of the log and return how many were rewritten.

    On PostgreSQL no node of a release before schema 0007 may run any more. May be cancelled at any
    time and called again.
    """
    form = await log.run_in_transaction(_order)
    if form is Form.SHORT:
        return 0
    settled = asyncio.get_running_loop().time()
    if form is Form.CANONICAL:
        settled += settle_seconds
    total = 0
    while True:
        begun = asyncio.get_running_loop().time()
        found = await _pass(log)
        total += found
        if not found and begun >= settled:
            break
        await asyncio.sleep(max(0.0, settled - asyncio.get_running_loop().time()))
    await log.run_in_transaction(lambda connection: event_form.write(connection, Form.SHORT))
    return total


def _order(connection: Connection) -> Form:
    """Make every node write the short form; the form before."""
    form = event_form.read(connection)
    if form is Form.CANONICAL:
        event_form.write(connection, Form.MIXED)
    return form


async def _pass(log: Log) -> int:
    one = Pass(log.dialect)
    while True:
        begun = perf_counter()
        key = await log.run_in_transaction(one.slice)
        if key is None:
            return one.shortened
        one.done(key)
        # On SQLite a slice has the write lock; the pause is for the server's appends.
        await asyncio.sleep(max(_PAUSE, 3 * (perf_counter() - begun)))
