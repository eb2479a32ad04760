"""Who opened a table: a keyed digest of the client's network, so that no address is stored.

One network's tables are to fill the lobby no more than one household's may, on every node and after
a restart. The digest is an HMAC under a key that the database does not hold, of an IPv4 address, or
of the /64 of an IPv6 address, which is what one customer is given.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from dealer.errors import DealerError
from dealer.eventlog import Log, openers
from dealer.eventlog.sealing import HouseKeys

DIGEST_BYTES = 16

EVERY_SECONDS = 1.0

WAITING = 10_000
"""Openers that may wait to be written while the database is away; later ones are not noted."""


def network_of(address: str) -> bytes:
    """What stands for the network of an address: the same for an IPv4 address in IPv6's clothes."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    if isinstance(parsed, IPv6Address):
        return parsed.packed[:8] if parsed.ipv4_mapped is None else parsed.ipv4_mapped.packed
    return parsed.packed


class Openers:
    """Notes the opener of each table that this process opens; `write` brings them to the log.

    They are no events: losing some with a crash lists a few tables too many, no more.
    """

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._waiting: dict[bytes, bytes] = {}

    def note(self, table: bytes, address: str) -> None:
        """A client at `address` opened `table`; nothing is noted of one without an address."""
        if address and len(self._waiting) < WAITING:
            digest = self._key.command_digest(b"opener " + network_of(address))
            self._waiting[table] = digest[:DIGEST_BYTES]

    async def write(self) -> None:
        """Write down what was noted since the last time; raises DatabaseError."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        try:
            await self._log.schedule(lambda connection: openers.add(connection, waiting))
        except DealerError:
            self._waiting = waiting | self._waiting
            raise

    async def run(self) -> None:
        """Write every second what was noted; while the database is away, keep it."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            with suppress(DealerError):
                await self.write()
