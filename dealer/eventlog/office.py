"""The operators' shelf: who did what to the house, what is disabled, which tables went to archive.

Everything here runs in a transaction that the caller has begun (`Log.carry_out`), so that a deed
and its line in the journal are both there or neither. The journal and the list of archived tables
refuse UPDATE and DELETE by trigger, as the events do; an event can be deleted only once its table
stands in that list, and only a closed table can come in there.
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
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)

from dealer.errors import RaceLost, UnknownTable
from dealer.eventlog.openers import opener
from dealer.eventlog.schema import Number, checkpoint, event, house, metadata, postgres, stream

RETIRED = ".retired"
"""What is added to a key's name in `house` once nothing needs that key any more."""


class Deed(NamedTuple):
    """A line of the journal: at millisecond `at`, `who` did `what` to `target`, and `why`.

    `target` is a table's id in hex, `house`, or what else the deed was done to; `details` go in as
    JSON. `id` is 8 random bytes.
    """

    at: int
    id: bytes
    who: str
    what: str
    target: str
    why: str = ""
    details: Mapping[str, Any] = MappingProxyType({})


class Archived(NamedTuple):
    """What is left of an archived table: `size` events under `root`, signed with `house_key`.

    `file` is the name of its bundle, which has `length` bytes and this `sha256`; `notes` is what
    `notes_digest` said of the checkpoints in it.
    """

    size: int
    root: bytes
    house_key: bytes
    file: str
    length: int
    sha256: bytes
    closed_at: int
    notes: bytes


def declare(known: MetaData) -> None:
    """Add this shelf's tables to a schema."""
    Table(
        "journal",
        known,
        Column("at", Number, primary_key=True, autoincrement=False),
        Column("id", LargeBinary(8), primary_key=True),
        Column("who", Text, nullable=False),
        Column("what", Text, nullable=False),
        Column("target", Text, nullable=False),
        Column("why", Text, nullable=False),
        Column("details", Text, nullable=False),
    )
    Table(
        "disabled",
        known,
        Column("target", Text, primary_key=True),
        Column("at", Number, nullable=False),
        Column("why", Text, nullable=False),
    )
    # What stands for a table is a short number on SQLite, and its id on PostgreSQL.
    key = LargeBinary(16).with_variant(Integer(), "sqlite")
    Table(
        "archived",
        known,
        Column("stream", key, primary_key=True, autoincrement=False),
        Column("size", Number, nullable=False),
        Column("root", LargeBinary(32), nullable=False),
        Column("house_key", LargeBinary(32), nullable=False),
        Column("file", Text, nullable=False),
        Column("length", Number, nullable=False),
        Column("sha256", LargeBinary(32), nullable=False),
        Column("closed_at", Number, nullable=False),
        Column("at", Number, nullable=False),
    )


declare(metadata)
declare(postgres)
_journal, _disabled, _archived = (
    metadata.tables[name] for name in ("journal", "disabled", "archived")
)


def enter(connection: Connection, deed: Deed) -> None:
    """Write a line of the journal."""
    connection.execute(
        insert(_journal).values(
            **deed._replace(details={})._asdict()
            | {"details": json.dumps(dict(deed.details), ensure_ascii=False, sort_keys=True)}
        )
    )


def disable(connection: Connection, deed: Deed) -> bool:
    """Disable the deed's target; False if it was disabled before, and then nothing is written."""
    if _is_disabled(connection, deed.target):
        return False
    row = {"target": deed.target, "at": deed.at, "why": deed.why}
    connection.execute(insert(_disabled).values(**row))
    enter(connection, deed)
    return True


def enable(connection: Connection, deed: Deed) -> bool:
    """Take back `disable`; False if the target was not disabled."""
    if not _is_disabled(connection, deed.target):
        return False
    connection.execute(delete(_disabled).where(_disabled.c.target == deed.target))
    enter(connection, deed)
    return True


def _is_disabled(connection: Connection, target: str) -> bool:
    asked = select(_disabled.c.target).where(_disabled.c.target == target)
    return connection.execute(asked).first() is not None


def add_key(connection: Connection, name: str, check: bytes, deed: Deed) -> None:
    """Make known the check value of a new house key under `name`; RaceLost if that is taken."""
    found = connection.execute(select(house.c.value).where(house.c.name == name)).scalar()
    if found is not None and found != check:
        raise RaceLost("Another rotation of the key was quicker; look at its result first.")
    if found is None:
        connection.execute(insert(house).values(name=name, value=check))
        enter(connection, deed)


def keep_key(connection: Connection, name: str, deed: Deed) -> None:
    """The key of this name is needed all the same."""
    connection.execute(delete(house).where(house.c.name == name + RETIRED))
    enter(connection, deed)


def notes_digest(notes: Sequence[tuple[int, str]]) -> bytes:
    """32 bytes that stand for (size, note) of all the checkpoints of a table, by size."""
    return sha256(json.dumps([list(note) for note in notes]).encode()).digest()


def archive(connection: Connection, table: bytes, archived: Archived, deed: Deed) -> None:
    """Take a table, by its id of 16 bytes, into the list of those whose events may go.

    Raises RaceLost if a checkpoint or a cosignature came in that the bundle does not hold, and what
    the driver raises if the table is not closed; UnknownTable if there is none.
    """
    # Holds the table's row to the end: what appends to this table, a cosignature, waits.
    of_table = update(stream).where(stream.c.table_id == table)
    connection.execute(of_table.values(version=stream.c.version))
    number = _number(connection, table)
    if connection.execute(select(_archived.c.stream).where(_archived.c.stream == number)).first():
        return
    asked = select(checkpoint.c.size, checkpoint.c.note).where(checkpoint.c.stream == number)
    notes = [(size, note) for size, note in connection.execute(asked.order_by(checkpoint.c.size))]
    if notes_digest(notes) != archived.notes:
        raise RaceLost("The table was cosigned while its bundle was written; archive it again.")
    row = archived._asdict() | {"stream": number, "at": deed.at}
    del row["notes"]
    connection.execute(insert(_archived).values(**row))
    connection.execute(delete(_disabled).where(_disabled.c.target == table.hex()))
    enter(connection, deed)


def let_go(
    connection: Connection, table: bytes, models: Sequence[str], *, events: int = 2000
) -> bool:
    """Delete some of an archived table's rows, `models` being read models; whether any are left.

    The table's `stream` row stays, so that nobody opens another under its id.
    """
    number = _number(connection, table)
    low = connection.execute(
        select(func.min(event.c.version)).where(event.c.stream == number)
    ).scalar()
    if low is not None:
        upto = low + events
        connection.execute(delete(event).where(event.c.stream == number, event.c.version < upto))
        return True
    connection.execute(delete(checkpoint).where(checkpoint.c.stream == number))
    connection.execute(delete(opener).where(opener.c.stream == number))
    for name in models:
        model = metadata.tables[name]
        connection.execute(delete(model).where(model.c.stream == number))
    done = update(stream).where(stream.c.id == number)
    connection.execute(done.values(projected=stream.c.version))
    return False


def _number(connection: Connection, table: bytes) -> Any:
    """What stands for a table in its rows."""
    found = connection.execute(select(stream.c.id).where(stream.c.table_id == table)).scalar()
    if found is None:
        raise UnknownTable("There is no such table in this log.")
    return found
