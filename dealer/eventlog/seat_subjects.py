"""SQL table `seat_subject`: which seat another server's user, or a ticket, was given.

It is not part of the log, so that no player can see that two seats belong to one user. A row is
written after the SeatTaken event that it names, and is a shortcut: without it the same seat is
found by the command id of that event (`dealer.service.seat_claims`). A row whose seat was left has
no effect. A table's rows go when it is archived.

Of a user a row has a keyed digest of the issuer and the user's id there, of a ticket that of the
ticket's id. The row of a ticket says which request was given the seat: all others are refused.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Column, Connection, LargeBinary

from dealer.eventlog.queries import TABLE_ID
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import Key, Number, define_table

DIGEST_BYTES = 32

_READ = (
    "SELECT p.seat, p.version, p.request FROM seat_subject p JOIN stream s ON s.id = p.stream"
    " WHERE s.{} = ? AND p.digest = ?"
)
_ADD = (
    "INSERT INTO seat_subject (stream, digest, seat, version, request)"
    " SELECT s.id, ?, ?, ?, ? FROM stream s WHERE s.{} = ?"
    " AND NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id)"
    " ON CONFLICT (stream, digest) DO {}"
)
_REPLACE = (
    "UPDATE SET seat = excluded.seat, version = excluded.version"
    " WHERE excluded.version > seat_subject.version"
)
_KEEP = "NOTHING"


class StoredSeat(NamedTuple):
    """A seat with the version of its SeatTaken event.

    `request` is the digest, 32 bytes, of the request that was given it; None in the row of a user.
    """

    seat: int
    version: int
    request: bytes | None


seat_subject = define_table(
    "seat_subject",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary(DIGEST_BYTES), primary_key=True),
    Column("seat", Number, nullable=False),
    Column("version", Number, nullable=False),
    Column("request", LargeBinary(DIGEST_BYTES)),
    sqlite_with_rowid=False,
)


async def find(log: ReadOnlyLog, table: bytes, digest: bytes) -> StoredSeat | None:
    """The row of a user or ticket at a table, by its id of 16 bytes; raises DatabaseError."""
    rows = await log.fetch(_READ.format(TABLE_ID[log.dialect]), (table, digest))
    return StoredSeat(*rows[0]) if rows else None


def record(
    connection: Connection, table: bytes, *, user: bytes, ticket: bytes, row: StoredSeat
) -> StoredSeat | None:
    """Record the seat of a user, and which request a ticket's seat was given to.

    `user` and `ticket` are digests of 32 bytes, empty where there is none. An older seat of the
    user is replaced; the row of a ticket is never changed. Returns that row as it is stored, None
    if the table has been archived; without a ticket returns `row`.
    """
    column = TABLE_ID[connection.dialect.name]
    execute = connection.exec_driver_sql
    if user:
        execute(_ADD.format(column, _REPLACE), (user, row.seat, row.version, None, table))
    if not ticket:
        return row
    execute(_ADD.format(column, _KEEP), (ticket, *row, table))
    found = execute(_READ.format(column), (table, ticket)).first()
    return None if found is None else StoredSeat(*found)
