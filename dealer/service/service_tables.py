"""Tables of services: which service key opened a table, and the table of a service's own id."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import NamedTuple

from dealer.eventlog import Log
from dealer.eventlog.service_tables import claim, owner_of, table_of_ref
from dealer.service.execution import IdempotencyKey
from dealer.service.service_keys import ServiceKey

CACHED = 16_384
"""Tables whose owner is kept in memory, at most."""


class Owner(NamedTuple):
    """The key, by its id, that opens a table, and the table's `ref`, unique for the key."""

    key: int
    ref: str | None = None


def scope_of(key: ServiceKey) -> str:
    """The scope of a key's command ids, see `IdempotencyKey`."""
    return f"service:{key.id}"


def opening_key(
    key: ServiceKey, *, ref: str | None, cmd: str | None, content: bytes
) -> IdempotencyKey | None:
    """The idempotency key of `table.open`: from `ref` if there is one, otherwise from `cmd`."""
    if ref is not None:
        # Longer than any `cmd` may be, so that the two never meet.
        cmd = "ref:" + sha256(ref.encode()).hexdigest()
    return None if cmd is None else IdempotencyKey(scope_of(key), cmd, content)


class ServiceTables:
    """The owners of tables, from the database or from memory: an owner never changes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._owners: OrderedDict[bytes, int | None] = OrderedDict()

    async def owner(self, table: bytes) -> int | None:
        """The id of the key that opened an existing table; None if no service did.

        Raises DatabaseError.
        """
        if table not in self._owners:
            self._keep(table, await owner_of(self._log, table))
        self._owners.move_to_end(table)
        return self._owners[table]

    async def claim(self, table: bytes, owner: Owner) -> bytes:
        """Record the owner of a table to be opened; returns the id under which it is to be opened.

        That is the id of the earlier table if the owner's `ref` has one. Raises DatabaseError.
        """
        key, ref = owner
        found = None if ref is None else await table_of_ref(self._log, key, ref)
        if found is None:
            found = await self._log.run_in_transaction(
                lambda connection: claim(connection, table, key=key, ref=ref)
            )
        self._keep(found, key)
        return found

    async def authority(self, table: bytes, key: ServiceKey) -> ServiceKey | None:
        """The key, if it acts at this table as a service: it opened it, or has the right `admin`.

        Raises DatabaseError.
        """
        if "admin" in key.rights or await self.owner(table) == key.id:
            return key
        return None

    def _keep(self, table: bytes, key: int | None) -> None:
        self._owners[table] = key
        if len(self._owners) > CACHED:
            self._owners.popitem(last=False)
