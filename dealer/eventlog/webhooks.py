"""SQL table `webhook`: the addresses to which the events of a service key are sent.

The secret is encrypted under the house key. `position` is that of the feed after the last delivered
event. One node delivers at a time: `owner` until `lease`, by the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, Integer, LargeBinary, Text, insert

from dealer.eventlog.admin import AuditRow, add_entry
from dealer.eventlog.presence import CLOCK
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.schema import Number, define_table

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
    "UPDATE webhook SET position = ?, failing_since = NULL, problem = '', lease = {now} + ?"
    " WHERE id = ? AND owner = ? AND position = ? AND disabled_at IS NULL"
)
_FAILING = (
    "UPDATE webhook SET failing_since = coalesce(failing_since, ?), problem = ?, lease = {now} + ?"
    " WHERE id = ? AND owner = ? AND disabled_at IS NULL"
)
_RELEASE = "UPDATE webhook SET owner = NULL, lease = 0 WHERE owner = ?"


class StoredWebhook(NamedTuple):
    """A row of `webhook`; `types` are separated by spaces, `signing` is `v1` or `v1a`.

    Times are milliseconds since 1970; `failing_since` is None if the last request succeeded. The
    node `owner` delivers for `lease_ms` from now on.
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


_webhook = define_table(
    "webhook",
    Column("id", Number, primary_key=True),
    Column("url", Text, nullable=False),
    Column("key", Number, nullable=False),
    Column("types", Text, nullable=False),
    Column("signing", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("allow_private", Integer, nullable=False),
    Column("position", Text, nullable=False),
    Column("created_at", Number, nullable=False),
    Column("failing_since", Number),
    Column("problem", Text, nullable=False),
    Column("disabled_at", Number),
    Column("owner", LargeBinary(8)),
    Column("lease", Number, nullable=False),
)


async def stored_webhooks(log: ReadOnlyLog) -> list[StoredWebhook]:
    """All webhooks by number; raises DatabaseError."""
    rows = await log.fetch(_SELECT.format(now=CLOCK[log.dialect]))
    return [StoredWebhook(*row) for row in rows]


def add(connection: Connection, webhook: Mapping[str, Any], entry: AuditRow) -> int:
    """Add a webhook, given as columns without `id`; returns its number."""
    highest = connection.exec_driver_sql("SELECT max(id) FROM webhook").scalar()
    number = (highest or 0) + 1
    row = {"id": number, "problem": "", "lease": 0} | dict(webhook)
    connection.execute(insert(_webhook).values(**row))
    add_entry(connection, entry)
    return number


def remove(connection: Connection, number: int, entry: AuditRow) -> bool:
    """Remove a webhook; False, and no write, if there is none."""
    return _change(connection, "DELETE FROM webhook WHERE id = ?", (number,), entry)


def enable(connection: Connection, number: int, entry: AuditRow) -> bool:
    """Deliver to a webhook that was switched off; False if there is none."""
    statement = (
        "UPDATE webhook SET disabled_at = NULL, failing_since = NULL, problem = '', owner = NULL,"
        " lease = 0 WHERE id = ?"
    )
    return _change(connection, statement, (number,), entry)


def disable(
    connection: Connection, number: int, owner: bytes, problem: str, entry: AuditRow
) -> bool:
    """Switch off a webhook that this node delivers to, at the entry's time."""
    statement = (
        "UPDATE webhook SET disabled_at = ?, problem = ? WHERE id = ? AND owner = ?"
        " AND disabled_at IS NULL"
    )
    return _change(connection, statement, (entry.at, problem, number, owner), entry)


def replay(connection: Connection, number: int, position: str, entry: AuditRow) -> bool:
    """Deliver again from a position; False if there is no such webhook."""
    # Without an owner: the node that delivers at present notices that it has lost it.
    statement = "UPDATE webhook SET position = ?, owner = NULL, lease = 0 WHERE id = ?"
    return _change(connection, statement, (position, number), entry)


def _change(
    connection: Connection, statement: str, parameters: tuple[Any, ...], entry: AuditRow
) -> bool:
    changed = bool(connection.exec_driver_sql(statement, parameters).rowcount)
    if changed:
        add_entry(connection, entry)
    return changed


def claim(connection: Connection, number: int, owner: bytes, position: str) -> bool:
    """Whether this node delivers to the webhook from `position` on, until `LEASE_MS` later.

    False, too, if another node or a replay has moved the webhook since the position was read.
    """
    return _lease(connection, _CLAIM, (owner, LEASE_MS, number, position, owner))


def renew(connection: Connection, number: int, owner: bytes) -> bool:
    """Renew the lease; False if this node has lost it, or the webhook was changed."""
    return _lease(connection, _RENEW, (LEASE_MS, number, owner))


def move(connection: Connection, number: int, owner: bytes, before: str, after: str) -> bool:
    """Store the position after a delivery, and renew the lease; False if this node lost it."""
    return _lease(connection, _MOVE, (after, LEASE_MS, number, owner, before))


def failing(connection: Connection, number: int, owner: bytes, at: int, problem: str) -> bool:
    """Record a failure at millisecond `at`, and renew the lease; False if this node lost it."""
    return _lease(connection, _FAILING, (at, problem, LEASE_MS, number, owner))


def reseal(connection: Connection, number: int, before: bytes, after: bytes) -> None:
    """Replace the stored form of a secret."""
    statement = "UPDATE webhook SET secret = ? WHERE id = ? AND secret = ?"
    connection.exec_driver_sql(statement, (after, number, before))


def release(connection: Connection, owner: bytes) -> None:
    """Let other nodes deliver what this one delivered to."""
    connection.exec_driver_sql(_RELEASE, (owner,))


def _lease(connection: Connection, statement: str, parameters: tuple[Any, ...]) -> bool:
    sql = statement.format(now=CLOCK[connection.dialect.name])
    return bool(connection.exec_driver_sql(sql, parameters).rowcount)
