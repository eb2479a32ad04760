"""SQL tables of administration: the journal, what is disabled, and archived game tables.

Every function runs in the caller's transaction (`Log.run_in_transaction`), so that an action and
its journal entry are both written or neither. Triggers forbid UPDATE and DELETE on `journal` and
`archived`, as on `event`; only `length` and `sha256` of an archived table's bundle may change. The
events of a table can be deleted only once it is in `archived`, and only a closed table can be added
there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    LargeBinary,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)

from dealer.errors import ConcurrentUpdate, DatabaseDamaged, UnknownTable
from dealer.eventlog.keys import RETIRED
from dealer.eventlog.savepoints import table_savepoint
from dealer.eventlog.schema import (
    TABLE_ID,
    Key,
    Number,
    checkpoint,
    define_table,
    event,
    house,
    lock_schema,
    metadata,
    opener,
    stream,
)
from dealer.eventlog.seat_subjects import seat_subject

_MERGE = (
    "UPDATE feed SET first = 1 WHERE of_stream = ?"
    " AND seq = (SELECT max(f.seq) FROM feed f WHERE f.of_stream = ?)",
    "DELETE FROM feed WHERE of_stream = ?"
    " AND seq < (SELECT max(f.seq) FROM feed f WHERE f.of_stream = ?)",
)

# An archive may delete events that no search has found yet, on SQLite. The scan finds their table.
_SCAN = """
UPDATE feed_state SET scan = 0 WHERE EXISTS (
    SELECT 1 FROM stream s WHERE s.id = ? AND s.version > coalesce(
        (SELECT max(f.last) FROM feed f WHERE f.of_stream = s.id), 0))
"""

BACKUP = "backup"
"""Name in `house` of the time of the newest backup: milliseconds since 1970, 8 bytes."""


_RECORD_BACKUP = (
    "INSERT INTO house (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class JournalEntry(NamedTuple):
    """A row of `journal`: at millisecond `at`, `who` did `what` to `target`, and `why`.

    `target` is a table's id in hex, `house`, or another object of the action; `details` are stored
    as JSON. `id` is 8 random bytes.
    """

    at: int
    id: bytes
    who: str
    what: str
    target: str
    why: str = ""
    details: Mapping[str, Any] = MappingProxyType({})


class Archived(NamedTuple):
    """A row of `archived`: a table of `size` events under `root`, signed with `house_key`.

    `file` is the name of its bundle, which has `length` bytes and this `sha256`; `notes` is the
    `notes_digest` of the checkpoints in it.
    """

    size: int
    root: bytes
    house_key: bytes
    file: str
    length: int
    sha256: bytes
    closed_at: int
    notes: bytes


_journal = define_table(
    "journal",
    Column("at", Number, primary_key=True, autoincrement=False),
    Column("id", LargeBinary(8), primary_key=True),
    Column("who", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("details", Text, nullable=False),
)
_disabled = define_table(
    "disabled",
    Column("target", Text, primary_key=True),
    Column("at", Number, nullable=False),
    Column("why", Text, nullable=False),
)
# A game table is a short number on SQLite, and its id on PostgreSQL.
_archived = define_table(
    "archived",
    Column("stream", Key, primary_key=True, autoincrement=False),
    Column("size", Number, nullable=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("house_key", LargeBinary(32), nullable=False),
    Column("file", Text, nullable=False),
    Column("length", Number, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("closed_at", Number, nullable=False),
    Column("at", Number, nullable=False),
)


def add_entry(connection: Connection, entry: JournalEntry) -> None:
    details = json.dumps(dict(entry.details), ensure_ascii=False, sort_keys=True)
    connection.execute(insert(_journal).values(**entry._asdict() | {"details": details}))


def record_schema(connection: Connection, entry: JournalEntry) -> str | None:
    """Add an entry of the schema that it has in `to`; returns the `to` of the entry before, or "".

    None, and no write, if that was the same: of two processes that migrate, one adds it.
    """
    lock_schema(connection)
    newest = select(_journal.c.details).where(_journal.c.what == entry.what)
    found = connection.execute(newest.order_by(_journal.c.at.desc()).limit(1)).scalar()
    before = "" if found is None else str(details_in(found).get("to", ""))
    if before == entry.details["to"]:
        return None
    add_entry(connection, entry._replace(details={"from": before, **entry.details}))
    return before


def details_in(text: str) -> dict[str, Any]:
    """The details of an entry; raises DatabaseDamaged."""
    try:
        details = json.loads(text)
    except (RecursionError, TypeError, ValueError):
        details = None
    if not isinstance(details, dict):
        raise DatabaseDamaged(
            "An entry of the operators' journal was altered; restore the database from a backup."
        )
    return details


def disable(connection: Connection, entry: JournalEntry) -> bool:
    """Disable the entry's target; False, and no write, if it is disabled already."""
    if _is_disabled(connection, entry.target):
        return False
    row = {"target": entry.target, "at": entry.at, "why": entry.why}
    connection.execute(insert(_disabled).values(**row))
    add_entry(connection, entry)
    return True


def enable(connection: Connection, entry: JournalEntry) -> bool:
    """Undo `disable`; False if the target is not disabled."""
    if not _is_disabled(connection, entry.target):
        return False
    connection.execute(delete(_disabled).where(_disabled.c.target == entry.target))
    add_entry(connection, entry)
    return True


def _is_disabled(connection: Connection, target: str) -> bool:
    query = select(_disabled.c.target).where(_disabled.c.target == target)
    return connection.execute(query).first() is not None


def add_key(connection: Connection, name: str, check: bytes, entry: JournalEntry) -> None:
    """Store the check value of a new house key under `name`; ConcurrentUpdate if it is taken."""
    found = connection.execute(select(house.c.value).where(house.c.name == name)).scalar()
    if found is not None and found != check:
        raise ConcurrentUpdate(
            "Another process rotated the key at the same time; check its result first."
        )
    if found is None:
        connection.execute(insert(house).values(name=name, value=check))
        add_entry(connection, entry)


def record_backup(connection: Connection, entry: JournalEntry) -> None:
    """Store the time of a backup in `house`, in place of the earlier one."""
    connection.exec_driver_sql(_RECORD_BACKUP, (BACKUP, entry.at.to_bytes(8)))
    add_entry(connection, entry)


def keep_key(connection: Connection, name: str, entry: JournalEntry) -> None:
    """Mark the retired key of this name as needed again."""
    connection.execute(delete(house).where(house.c.name == name + RETIRED))
    add_entry(connection, entry)


def notes_digest(notes: Sequence[tuple[int, str]]) -> bytes:
    """SHA-256 over (size, note) of all checkpoints of a table, in the order of their sizes."""
    return sha256(json.dumps([list(note) for note in notes]).encode()).digest()


def archive(connection: Connection, table: bytes, archived: Archived, entry: JournalEntry) -> None:
    """Add a table, by its id of 16 bytes, to those whose events may be deleted.

    Raises ConcurrentUpdate if a checkpoint or a cosignature is stored that is not in the bundle,
    UnknownTable if there is no such table, and the driver's error if it is not closed.
    """
    # Locks the table's row until COMMIT, so that a cosignature cannot be added in between; and no
    # projector looks for events that are deleted next.
    number = _number(connection, table)
    of_table = update(stream).where(stream.c.id == number)
    connection.execute(of_table.values(projected=stream.c.version))
    if connection.execute(select(_archived.c.stream).where(_archived.c.stream == number)).first():
        return
    query = select(checkpoint.c.size, checkpoint.c.note).where(checkpoint.c.stream == number)
    notes = [(size, note) for size, note in connection.execute(query.order_by(checkpoint.c.size))]
    if notes_digest(notes) != archived.notes:
        raise ConcurrentUpdate(
            "The table was cosigned while its bundle was written; archive it again."
        )
    row = archived._asdict() | {"stream": number, "at": entry.at}
    del row["notes"]
    connection.execute(insert(_archived).values(**row))
    connection.execute(delete(_disabled).where(_disabled.c.target == table.hex()))
    add_entry(connection, entry)


def replace_bundle(
    connection: Connection, table: bytes, length: int, sha256: bytes, entry: JournalEntry
) -> None:
    """Record the length and the SHA-256 of an archived table's new bundle, of the same log."""
    of_table = update(_archived).where(_archived.c.stream == _number(connection, table))
    connection.execute(of_table.values(length=length, sha256=sha256))
    add_entry(connection, entry)


def delete_archived_rows(
    connection: Connection, table: bytes, models: Sequence[str], *, events: int = 2000
) -> bool:
    """Delete some of an archived table's rows; True if rows are left.

    `models` are the names of the read models. The table's `stream` row is kept, so that its id
    cannot be used again.
    """
    if connection.dialect.name == "sqlite":  # a name must not be left in a free page
        connection.exec_driver_sql("PRAGMA secure_delete = ON")
    number = _number(connection, table)
    low = connection.execute(
        select(func.min(event.c.version)).where(event.c.stream == number)
    ).scalar()
    if low is not None:
        upto = low + events
        connection.execute(delete(event).where(event.c.stream == number, event.c.version < upto))
        return True
    read_models = (metadata.tables[name] for name in models)
    for table_of in (checkpoint, opener, table_savepoint, seat_subject, *read_models):
        connection.execute(delete(table_of).where(table_of.c.stream == number))
    _merge_in_feed(connection, number)
    return False


def _number(connection: Connection, table: bytes) -> Any:
    """The value of `stream` columns for a table: a number on SQLite, its id on PostgreSQL."""
    id = stream.c[TABLE_ID[connection.dialect.name]]
    found = connection.execute(select(stream.c.id).where(id == table)).scalar()
    if found is None:
        raise UnknownTable("There is no such table in this log.")
    return found


def _merge_in_feed(connection: Connection, stream: Any) -> None:
    """Merge the rows of an archived table, by its value of `stream` columns, into the newest.

    Where the feed has not got all of its events, all tables are scanned for what it has not got.
    """
    for statement in _MERGE:
        connection.exec_driver_sql(statement, (stream, stream))
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_SCAN, (stream,))
