"""Service keys and their tables for the tests, as `dealer key add` and a service make them."""

from __future__ import annotations

from itertools import count

from dealer.eventlog import Log
from dealer.eventlog import service_keys as stored
from dealer.eventlog.admin import AuditRow
from dealer.service import Service
from dealer.service.service_keys import ServiceKey, digest_of, new_key

_numbers = count(1)


def _entry(what: str) -> AuditRow:
    number = next(_numbers)
    return AuditRow(number, number.to_bytes(8), "test", what, "key")


async def add_key(service: Service, name: str = "shop", rights: str = "read") -> str:
    """A new service key, which this process knows."""
    text = new_key()
    row = {"name": name, "digest": digest_of(text), "rights": rights, "created_at": 1}
    await service.log.run_in_transaction(
        lambda connection: stored.add(connection, row, _entry("add-key"))
    )
    await service.service_keys.refresh(service.log)
    return text


def found(service: Service, text: str) -> ServiceKey:
    """The valid key with this text."""
    key = service.service_keys.find(text)
    assert key is not None
    return key


async def revoke_key(log: Log, name: str = "shop") -> None:
    """Revoke a key in the database; processes that poll it follow."""
    await log.run_in_transaction(
        lambda connection: stored.revoke(connection, name, _entry("revoke-key"))
    )


async def give_table(log: Log, table: str, *, key: int, ref: str | None = None) -> None:
    """Make a table that no slice of the feed has seen one of this key's."""
    await log.run_in_transaction(
        lambda connection: connection.exec_driver_sql(
            "INSERT INTO service_table (table_id, key, ref) VALUES (?, ?, ?)",
            (bytes.fromhex(table), key, ref),
        )
    )
