"""Service keys and their tables for the tests, and clients that use them."""

from __future__ import annotations

from typing import Any

from dealer.eventlog import Log
from dealer.service import Service
from dealer.service.identity.admin import AdminService
from dealer.service.identity.service_keys import ServiceKey

ALL = ("open", "seat", "read", "close", "broadcast")


async def add_key(service: Service, name: str = "shop", *rights: str) -> str:
    """A new key with these rights, by default all but `admin`, which the service knows at once."""
    admin = AdminService(service.log, who="a test")
    key = await admin.add_service_key(name, rights or ALL)
    await service.service_keys.refresh(service.log)
    return key


def found(service: Service, text: str) -> ServiceKey:
    """The valid key with this text."""
    key = service.service_keys.find(text)
    assert key is not None
    return key


async def revoke_key(service: Service, *, at_once: bool = True) -> None:
    """Revoke the key `shop`; the service knows it `at_once`, or when it polls."""
    await AdminService(service.log, who="a test").revoke_service_key("shop", why="a test")
    if at_once:
        await service.service_keys.refresh(service.log)


async def give_table(log: Log, table: str, *, key: int, ref: str | None = None) -> None:
    """Make a table that no slice of the feed has seen one of this key's."""
    await log.run_in_transaction(
        lambda connection: connection.exec_driver_sql(
            "INSERT INTO service_table (table_id, key, ref) VALUES (?, ?, ?)",
            (bytes.fromhex(table), key, ref),
        )
    )


def with_key(key: str) -> dict[str, Any]:
    """The settings of a connection of this service, for `connect`."""
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}
