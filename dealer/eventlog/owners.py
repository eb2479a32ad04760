"""Who opened a table: the keys of other people's servers (`service_key`), their tables
(`service_table`), and the networks of players (`opener`).

They are not part of the log. Of a key only a digest is stored; a revoked key keeps its row, so that
its name stays with the tables that it opened and with the entries of the operators' journal.

A row of `service_table` is committed before the first event of its table, and never changes. After
a crash between the two there is a row without a table; the same `ref` then opens that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Index,
    LargeBinary,
    Text,
    UniqueConstraint,
    insert,
    update,
)

from dealer.errors import ConcurrentUpdate
from dealer.eventlog.admin import AuditRow, add_entry
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import TABLE_ID, Number, define_table


class StoredKey(NamedTuple):
    """A row of `service_key`; `digest` is SHA-256 of the key, `rights` are separated by spaces.

    Times are milliseconds since 1970; `revoked_at` is None for a key that is valid.
    """

    id: int
    name: str
    digest: bytes
    rights: str
    created_at: int
    revoked_at: int | None


_key = define_table(
    "service_key",
    Column("id", Number, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("rights", Text, nullable=False),
    Column("created_at", Number, nullable=False),
    Column("revoked_at", Number),
)
# Written before the table's first event, so that no event of it is without its key.
define_table(
    "service_table",
    Column("table_id", LargeBinary(16), primary_key=True),
    Column("key", Number, nullable=False),
    Column("ref", Text),
    UniqueConstraint("key", "ref"),
    Index("ix_service_table_key_table_id", "key", "table_id"),
)


async def stored_keys(log: ReadOnlyLog) -> list[StoredKey]:
    """All keys, also those that were revoked, by name; raises DatabaseError."""
    rows = await log.fetch(f"SELECT {', '.join(StoredKey._fields)} FROM service_key ORDER BY name")
    return [StoredKey(*row) for row in rows]


def add(connection: Connection, key: Mapping[str, object], entry: AuditRow) -> None:
    """Add a key, given as columns without `id`; ConcurrentUpdate if its name is taken."""
    taken = connection.execute(_key.select().where(_key.c.name == key["name"])).first()
    if taken is not None:
        raise ConcurrentUpdate(f"There is a key {key['name']} already; choose another name.")
    connection.execute(insert(_key).values(**key))
    add_entry(connection, entry)


def revoke(connection: Connection, name: str, entry: AuditRow) -> bool:
    """Revoke a key at the entry's time; False, and no write, if it is revoked already."""
    valid = (_key.c.name == name) & _key.c.revoked_at.is_(None)
    changed = connection.execute(update(_key).where(valid).values(revoked_at=entry.at)).rowcount
    if changed:
        add_entry(connection, entry)
    return bool(changed)


_OWNER = "SELECT key FROM service_table WHERE table_id = ?"
_BY_REF = "SELECT table_id FROM service_table WHERE key = ? AND ref = ?"
_ADD = "INSERT INTO service_table (table_id, key, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


async def owner_of(log: ReadOnlyLog, table: bytes) -> int | None:
    """The id of the key that opened a table, None for a table of players; raises DatabaseError."""
    rows = await log.fetch(_OWNER, (table,))
    return rows[0][0] if rows else None


async def table_of_ref(log: ReadOnlyLog, key: int, ref: str) -> bytes | None:
    """The id of the table that a key has claimed under `ref`, if any; raises DatabaseError."""
    rows = await log.fetch(_BY_REF, (key, ref))
    return bytes(rows[0][0]) if rows else None


def claim(connection: Connection, table: bytes, *, key: int, ref: str | None) -> bytes:
    """Claim the id `table` for a key; with a `ref` that has a table already, returns that one's id.

    If two nodes claim the same `ref` at the same time, both get the id of the first.
    """
    connection.exec_driver_sql(_ADD, (table, key, ref))
    if ref is None:
        return table
    found: bytes = connection.exec_driver_sql(_BY_REF, (key, ref)).scalar_one()
    return bytes(found)


_ADD_OPENER = (
    "INSERT INTO opener (stream, digest) SELECT id, ? FROM stream WHERE {} = ?"
    " ON CONFLICT (stream) DO NOTHING"
)


def add_openers(connection: Connection, digests: Mapping[bytes, bytes]) -> bool:
    """Add digests of 16 bytes by table ids; returns False: the work is complete."""
    statement = _ADD_OPENER.format(TABLE_ID[connection.dialect.name])
    for table, digest in digests.items():
        connection.exec_driver_sql(statement, (digest, table))
    return False
