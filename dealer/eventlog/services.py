"""SQL tables about other people's servers: their keys (`service_key`), tables (`service_table`) and
addresses to which events are sent (`webhook`); the networks of players (`opener`), and the numbers
of broadcast links (`broadcast_link`).

They are not part of the log. Only a digest of a key is stored; a revoked key keeps its row, so that
its name stays with the tables that it opened and with the entries of the operators' journal.

A row of `service_table` is committed before the first event of its table, and never changes. After
a crash between the two there is a row without a table; the same `ref` then opens that table.

A webhook's secret is encrypted under the house key. `position` is the place in the feed after the
last delivered event. One node delivers at a time: `owner` until `lease`, by the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dealer.errors import ConcurrentUpdate
from dealer.eventlog.admin import JournalEntry, add_entry
from dealer.eventlog.nodes import CLOCK
from dealer.eventlog.protocols import Connection
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import TABLE_ID, insert, select_in


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


async def stored_keys(log: ReadOnlyLog) -> list[StoredKey]:
    """All keys, also those that were revoked, by name; raises DatabaseError."""
    rows = await log.fetch(f"SELECT {', '.join(StoredKey._fields)} FROM service_key ORDER BY name")
    return [StoredKey(*row) for row in rows]


def add_key(connection: Connection, key: Mapping[str, object], entry: JournalEntry) -> None:
    """Add a key, given as columns without `id`; ConcurrentUpdate if its name is taken."""
    query = "SELECT 1 FROM service_key WHERE name = ?"
    taken = connection.exec_driver_sql(query, (key["name"],)).first()
    if taken is not None:
        raise ConcurrentUpdate(f"There is a key {key['name']} already; choose another name.")
    insert(connection, "service_key", key)
    add_entry(connection, entry)


def revoke_key(connection: Connection, name: str, entry: JournalEntry) -> bool:
    """Revoke a key at the entry's time; False, and no write, if it is revoked already."""
    statement = "UPDATE service_key SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
    return _change(connection, statement, (entry.at, name), entry)


_OWNER = "SELECT key FROM service_table WHERE table_id = ?"
_BY_REF = "SELECT table_id FROM service_table WHERE key = ? AND ref = ?"
_ADD_TABLE = (
    "INSERT INTO service_table (table_id, key, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
)


async def owner_of(log: ReadOnlyLog, table: bytes) -> int | None:
    """The id of the key that opened a table, None for a table of players; raises DatabaseError."""
    rows = await log.fetch(_OWNER, (table,))
    return rows[0][0] if rows else None


async def table_of_ref(log: ReadOnlyLog, key: int, ref: str) -> bytes | None:
    """The id of the table that a key has claimed under `ref`, if any; raises DatabaseError."""
    rows = await log.fetch(_BY_REF, (key, ref))
    return bytes(rows[0][0]) if rows else None


def claim_table(connection: Connection, table: bytes, *, key: int, ref: str | None) -> bytes:
    """Claim the id `table` for a key; with a `ref` that has a table already, returns that one's id.

    If two nodes claim the same `ref` at the same time, both get the id of the first.
    """
    connection.exec_driver_sql(_ADD_TABLE, (table, key, ref))
    if ref is None:
        return table
    found: bytes = connection.exec_driver_sql(_BY_REF, (key, ref)).scalar_one()
    return bytes(found)


HOST = 0  # the owner of the broadcast link that a table's host made, as the number of a key

_LINKS = "SELECT table_id, owner, number FROM broadcast_link"
_ADD_LINK = "INSERT INTO broadcast_link VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ONE_LINK = " WHERE table_id = ? AND owner = ?"


class StoredLink(NamedTuple):
    """A row of `broadcast_link`: a link that is valid as long as the row is there."""

    table: bytes
    owner: int
    number: int


async def links(log: ReadOnlyLog, tables: Sequence[bytes]) -> set[StoredLink]:
    """The broadcast links to these tables; raises DatabaseError."""
    queries = select_in(log.dialect, _LINKS, "table_id", tables)
    return {StoredLink(bytes(row[0]), *row[1:]) for sql in queries for row in await log.fetch(*sql)}


def add_link(connection: Connection, link: StoredLink) -> StoredLink:
    """The owner's broadcast link to a table: the one that it has, or this one, which is added."""
    connection.exec_driver_sql(_ADD_LINK, link)
    return StoredLink(*connection.exec_driver_sql(_LINKS + _ONE_LINK, link[:2]).one())


def remove_link(connection: Connection, table: bytes, owner: int) -> bool:
    """Take back the owner's broadcast link to a table; whether there was one."""
    statement = "DELETE FROM broadcast_link" + _ONE_LINK
    return bool(connection.exec_driver_sql(statement, (table, owner)).rowcount)


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


LEASE_MS = 15_000
"""Milliseconds after which another node takes over the webhooks of one that has died."""

_SELECT = (
    "SELECT id, url, key, types, signing, secret, allow_private, position, created_at,"
    " failing_since, problem, disabled_at, owner, lease - {now} FROM webhook ORDER BY id"
)
_CLAIM = (
    "UPDATE webhook SET owner = ?, lease = {now} + ? WHERE id = ? AND position = ?"
    " AND disabled_at IS NULL AND (owner = ? OR owner IS NULL OR lease < {now})"
)
_RENEW = "UPDATE webhook SET lease = {now} + ? WHERE id = ? AND owner = ? AND disabled_at IS NULL"
_MOVE = (
    "UPDATE webhook SET position = ?, failing_since = ?, problem = ?, lease = {now} + ?"
    " WHERE id = ? AND owner = ? AND position = ? AND disabled_at IS NULL"
)
_RELEASE = "UPDATE webhook SET owner = NULL, lease = 0 WHERE owner = ?"


class StoredWebhook(NamedTuple):
    """A row of `webhook`; `types` are separated by spaces, `signing` is `v1` or `v1a`.

    Times are milliseconds since 1970; `failing_since` is None if the last request succeeded, and
    then `problem` says why a table waits, if one does. The node `owner` delivers for `lease_ms`
    from now on.
    """

    id: int
    url: str
    key: int
    types: str
    signing: str
    secret: bytes
    allow_private: int
    position: str
    created_at: int
    failing_since: int | None
    problem: str
    disabled_at: int | None
    owner: bytes | None
    lease_ms: int


async def stored_webhooks(log: ReadOnlyLog) -> list[StoredWebhook]:
    """All webhooks by number; raises DatabaseError."""
    rows = await log.fetch(_SELECT.format(now=CLOCK[log.dialect]))
    return [StoredWebhook(*row) for row in rows]


def add_webhook(connection: Connection, webhook: Mapping[str, Any], entry: JournalEntry) -> int:
    """Add a webhook, given as columns without `id`; returns its number."""
    highest = connection.exec_driver_sql("SELECT max(id) FROM webhook").scalar()
    number = (highest or 0) + 1
    row = {"id": number, "problem": "", "lease": 0} | dict(webhook)
    insert(connection, "webhook", row)
    add_entry(connection, entry)
    return number


def remove_webhook(connection: Connection, number: int, entry: JournalEntry) -> bool:
    """Remove a webhook; False, and no write, if there is none."""
    return _change(connection, "DELETE FROM webhook WHERE id = ?", (number,), entry)


def enable_webhook(connection: Connection, number: int, entry: JournalEntry) -> bool:
    """Deliver to a webhook that was switched off; False if there is none."""
    statement = (
        "UPDATE webhook SET disabled_at = NULL, failing_since = NULL, problem = '', owner = NULL,"
        " lease = 0 WHERE id = ?"
    )
    return _change(connection, statement, (number,), entry)


def disable_webhook(
    connection: Connection, number: int, owner: bytes, problem: str, entry: JournalEntry
) -> bool:
    """Switch off a webhook that this node delivers to, at the entry's time."""
    statement = (
        "UPDATE webhook SET disabled_at = ?, problem = ? WHERE id = ? AND owner = ?"
        " AND disabled_at IS NULL"
    )
    return _change(connection, statement, (entry.at, problem, number, owner), entry)


def replay_webhook(connection: Connection, number: int, position: str, entry: JournalEntry) -> bool:
    """Deliver again from a position; False if there is no such webhook."""
    # Without an owner: the node that delivers at present notices that it has lost it.
    statement = "UPDATE webhook SET position = ?, owner = NULL, lease = 0 WHERE id = ?"
    return _change(connection, statement, (position, number), entry)


def _change(
    connection: Connection, statement: str, parameters: tuple[Any, ...], entry: JournalEntry
) -> bool:
    changed = bool(connection.exec_driver_sql(statement, parameters).rowcount)
    if changed:
        add_entry(connection, entry)
    return changed


def claim_webhook(connection: Connection, number: int, owner: bytes, position: str) -> bool:
    """Whether this node delivers to the webhook from `position` on, until `LEASE_MS` later.

    False, too, if another node or a replay has moved the webhook since the position was read.
    """
    return _lease(connection, _CLAIM, (owner, LEASE_MS, number, position, owner))


def renew_webhook(connection: Connection, number: int, owner: bytes) -> bool:
    """Renew the lease; False if this node has lost it, or the webhook was changed."""
    return _lease(connection, _RENEW, (LEASE_MS, number, owner))


def move_webhook(
    connection: Connection,
    number: int,
    owner: bytes,
    before: str,
    after: str,
    failing_since: int | None,
    problem: str,
) -> bool:
    """Store the position and what fails, and renew the lease; False if this node lost it."""
    changed = (after, failing_since, problem, LEASE_MS, number, owner, before)
    return _lease(connection, _MOVE, changed)


def reseal_webhook(connection: Connection, number: int, before: bytes, after: bytes) -> None:
    """Replace the stored form of a secret."""
    statement = "UPDATE webhook SET secret = ? WHERE id = ? AND secret = ?"
    connection.exec_driver_sql(statement, (after, number, before))


def release_webhooks(connection: Connection, owner: bytes) -> None:
    """Let other nodes deliver what this one delivered to."""
    connection.exec_driver_sql(_RELEASE, (owner,))


def _lease(connection: Connection, statement: str, parameters: tuple[Any, ...]) -> bool:
    sql = statement.format(now=CLOCK[connection.dialect.name])
    return bool(connection.exec_driver_sql(sql, parameters).rowcount)
