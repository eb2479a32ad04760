"""Service keys for the tests, and clients that use them."""

from __future__ import annotations

from typing import Any

from dealer.service import Service
from dealer.service.admin import AdminService

ALL = ("open", "seat", "read", "close")


async def add_key(service: Service, name: str = "shop", *rights: str) -> str:
    """A new key with these rights, by default all but `admin`, which the service knows at once."""
    admin = AdminService(service.log, who="a test")
    key = await admin.add_service_key(name, rights or ALL)
    await service.service_keys.refresh(service.log)
    return key


async def revoke_key(service: Service, name: str = "shop") -> None:
    """Revoke a key in the database; processes learn it when they poll."""
    await AdminService(service.log, who="a test").revoke_service_key(name, why="a test")


def with_key(key: str) -> dict[str, Any]:
    """The settings of a connection of this service, for `connect`."""
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}
