"""SQL table `seat_subject`: which seat another server's user, or a ticket, was given.

It is not part of the log, so that no player can see that two seats belong to one user. A row is
written after the SeatTaken event that it names, and is a shortcut: without it the same seat is
found by the command id of that event (`service/identity/seat_claims.py`). A row whose seat was left
has no effect. A table's rows go when it is archived.

The row of a user has a keyed digest of the issuer and the user's id there, the row of a ticket a
digest of the ticket's id. `request` is a keyed digest of the row and, for a ticket, of the request
that was given the seat: all others are refused. A row that another program changed has no effect.

A third kind of row has a service's own id of its user (the `subject` of a ticket) under the digest
in the command id of the SeatTaken event. It is written before the event, so that every reader of
the event finds it: `Subjects` reads it for the feed and for `table.state`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from dealer.eventlog.protocols import Connection
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.rows import EventRecord
from dealer.eventlog.schema import TABLE_ID
from dealer.game.events import SEAT_MOVE
from dealer.game.state import SEAT_CHANGE

DIGEST_BYTES = 32

CLAIM = "claim"
"""The scope of the command ids under which claimed seats are taken; no caller can choose one."""

CACHED = 20_000
"""SeatTaken events whose subject is kept in memory, at most."""

_READ = (
    "SELECT p.seat, p.version, p.request FROM seat_subject p JOIN stream s ON s.id = p.stream"
    " WHERE s.{} = ? AND p.digest = ?"
)
_SUBJECT = (
    "SELECT p.key, p.subject FROM seat_subject p JOIN stream s ON s.id = p.stream"
    " WHERE s.{} = ? AND p.digest = ?"
)
_ADD = (
    "INSERT INTO seat_subject (stream, digest, seat, version, request, key, subject)"
    " SELECT s.id, ?, ?, ?, ?, ?, ? FROM stream s WHERE s.{} = ?"
    " AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id)"
    " ON CONFLICT (stream, digest) DO {}"
)
_REPLACE = (
    "UPDATE SET seat = excluded.seat, version = excluded.version, request = excluded.request"
    " WHERE excluded.version > seat_subject.version"
)
_KEEP = "NOTHING"


class StoredSeat(NamedTuple):
    """A seat with the version of its SeatTaken event; `request` is a keyed digest of 32 bytes."""

    seat: int
    version: int
    request: bytes | None


Rows = Mapping[bytes, StoredSeat]


class Subject(NamedTuple):
    """A service's own id of its user; `key` is the number of the service key that gave it."""

    key: int
    text: str


async def find(log: ReadOnlyLog, table: bytes, digest: bytes) -> StoredSeat | None:
    """The row of a user or ticket at a table, by its id of 16 bytes; raises DatabaseError."""
    rows = await log.fetch(_READ.format(TABLE_ID[log.dialect]), (table, digest))
    return StoredSeat(*rows[0]) if rows else None


def record(
    connection: Connection, table: bytes, *, users: Rows, tickets: Rows
) -> StoredSeat | None:
    """Record the seats of users and tickets, by digests of 32 bytes.

    An older seat of a user is replaced; the row of a ticket is never changed. Returns the last of
    these rows as it is stored, None if the table has been archived.
    """
    column = TABLE_ID[connection.dialect.name]
    found = None
    for rows, conflict in ((users, _REPLACE), (tickets, _KEEP)):
        for digest, row in rows.items():
            values = (digest, *row, None, None, table)
            connection.exec_driver_sql(_ADD.format(column, conflict), values)
            found = connection.exec_driver_sql(_READ.format(column), (table, digest)).first()
    return None if found is None else StoredSeat(*found)


def record_subject(connection: Connection, table: bytes, claim: bytes, subject: Subject) -> None:
    """Record whose seat the command `claim/<claim in hex>` takes; a row never changes."""
    statement = _ADD.format(TABLE_ID[connection.dialect.name], _KEEP)
    connection.exec_driver_sql(statement, (claim, 0, 0, None, *subject, table))


class Subjects:
    """Reads the subjects of seats from `log`; an event's never changes."""

    def __init__(self, log: ReadOnlyLog) -> None:
        self._log = log
        self._known: OrderedDict[tuple[bytes, int], Subject | None] = OrderedDict()

    def forget(self) -> None:
        """Forget all: the log was rewound, and other events may get these versions."""
        self._known.clear()

    async def of(self, table: bytes, version: int) -> Subject | None:
        """Whose seat the SeatTaken event of this version is; None if no ticket named a user.

        Raises DatabaseError.
        """
        place = table, version
        if place not in self._known:
            self._known[place] = await self._read(table, version)
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        return self._known[place]

    async def _read(self, table: bytes, version: int) -> Subject | None:
        rows = await self._log.read(table, after=max(0, version - 3), upto=version)
        command = rows[-1].command if rows else None
        scope, _, claim = (command or "").partition("/")
        if scope == CLAIM:
            statement = _SUBJECT.format(TABLE_ID[self._log.dialect])
            found = await self._log.fetch(statement, (table, bytes.fromhex(claim)))
            return Subject(*found[0]) if found else None
        # A player who moves takes the new seat two versions after the note that says so.
        moved_from = _moved_from(rows[0]) if len(rows) == 3 else None
        if moved_from is None:
            return None
        earlier = 0
        async for chunk in self._log.stream_types(table, ("SeatTaken",), upto=version - 3):
            for row in chunk:
                if row.members()["seat"] == moved_from:
                    earlier = row.version
        return await self.of(table, earlier) if earlier else None


def _moved_from(row: EventRecord) -> int | None:
    """The seat that a player leaves, if this is the note of a move."""
    note = row.members() if row.type == "NoteAdded" else {}
    match = SEAT_CHANGE.fullmatch(note["text"]) if note.get("kind") == SEAT_MOVE else None
    return None if match is None or int(match[1]) != note["seat"] else int(match[1])
