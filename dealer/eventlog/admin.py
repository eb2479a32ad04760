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

from dealer.errors import ConcurrentUpdate, DatabaseDamaged, UnknownTable
from dealer.eventlog.keys import RETIRED
from dealer.eventlog.protocols import Connection
from dealer.eventlog.schema import TABLE_ID, insert, lock_schema

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


def add_entry(connection: Connection, entry: JournalEntry) -> None:
    details = json.dumps(dict(entry.details), ensure_ascii=False, sort_keys=True)
    insert(connection, "journal", entry._asdict() | {"details": details})


def record_schema(connection: Connection, entry: JournalEntry) -> str | None:
    """Add an entry of the schema that it has in `to`; returns the `to` of the entry before, or "".

    None, and no write, if that was the same: of two processes that migrate, one adds it.
    """
    lock_schema(connection)
    newest = "SELECT details FROM journal WHERE what = ? ORDER BY at DESC LIMIT 1"
    found = connection.exec_driver_sql(newest, (entry.what,)).scalar()
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
    insert(connection, "disabled", row)
    add_entry(connection, entry)
    return True


def enable(connection: Connection, entry: JournalEntry) -> bool:
    """Undo `disable`; False if the target is not disabled."""
    if not _is_disabled(connection, entry.target):
        return False
    connection.exec_driver_sql("DELETE FROM disabled WHERE target = ?", (entry.target,))
    add_entry(connection, entry)
    return True


def _is_disabled(connection: Connection, target: str) -> bool:
    query = "SELECT target FROM disabled WHERE target = ?"
    return connection.exec_driver_sql(query, (target,)).first() is not None


def add_key(connection: Connection, name: str, check: bytes, entry: JournalEntry) -> None:
    """Store the check value of a new house key under `name`; ConcurrentUpdate if it is taken."""
    query = "SELECT value FROM house WHERE name = ?"
    found = connection.exec_driver_sql(query, (name,)).scalar()
    if found is not None and found != check:
        raise ConcurrentUpdate(
            "Another process rotated the key at the same time; check its result first."
        )
    if found is None:
        insert(connection, "house", {"name": name, "value": check})
        add_entry(connection, entry)


def record_backup(connection: Connection, entry: JournalEntry) -> None:
    """Store the time of a backup in `house`, in place of the earlier one."""
    connection.exec_driver_sql(_RECORD_BACKUP, (BACKUP, entry.at.to_bytes(8)))
    add_entry(connection, entry)


def keep_key(connection: Connection, name: str, entry: JournalEntry) -> None:
    """Mark the retired key of this name as needed again."""
    connection.exec_driver_sql("DELETE FROM house WHERE name = ?", (name + RETIRED,))
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
    execute = connection.exec_driver_sql
    execute("UPDATE stream SET projected = version WHERE id = ?", (number,))
    if execute("SELECT stream FROM archived WHERE stream = ?", (number,)).first():
        return
    query = "SELECT size, note FROM checkpoint WHERE stream = ? ORDER BY size"
    notes = [(size, note) for size, note in execute(query, (number,))]
    if notes_digest(notes) != archived.notes:
        raise ConcurrentUpdate(
            "The table was cosigned while its bundle was written; archive it again."
        )
    row = archived._asdict() | {"stream": number, "at": entry.at}
    del row["notes"]
    insert(connection, "archived", row)
    execute("DELETE FROM disabled WHERE target = ?", (table.hex(),))
    add_entry(connection, entry)


def replace_bundle(
    connection: Connection, table: bytes, length: int, sha256: bytes, entry: JournalEntry
) -> None:
    """Record the length and the SHA-256 of an archived table's new bundle, of the same log."""
    parameters = (length, sha256, _number(connection, table))
    statement = "UPDATE archived SET length = ?, sha256 = ? WHERE stream = ?"
    connection.exec_driver_sql(statement, parameters)
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
    execute = connection.exec_driver_sql
    low = execute("SELECT min(version) FROM event WHERE stream = ?", (number,)).scalar()
    if low is not None:
        execute("DELETE FROM event WHERE stream = ? AND version < ?", (number, low + events))
        return True
    for name in ("checkpoint", "opener", "table_savepoint", "seat_subject", *models):
        execute(f"DELETE FROM {name} WHERE stream = ?", (number,))
    _merge_in_feed(connection, number)
    return False


def _number(connection: Connection, table: bytes) -> Any:
    """The value of `stream` columns for a table: a number on SQLite, its id on PostgreSQL."""
    query = f"SELECT id FROM stream WHERE {TABLE_ID[connection.dialect.name]} = ?"
    found = connection.exec_driver_sql(query, (table,)).scalar()
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
