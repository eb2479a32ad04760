"""Openers: stores, for each table, a keyed digest of the network that opened it.

The lobby uses it to list only a few tables of one network, on every node and after a restart. The
digest is an HMAC, under a key that is not in the database, of an IPv4 address or of the /64 of an
IPv6 address, which is what one customer gets. No address is stored.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from dealer.backoff import poll
from dealer.errors import DealerError
from dealer.eventlog import Log, openers
from dealer.eventlog.encryption import HouseKeys

DIGEST_BYTES = 16

EVERY_SECONDS = 1.0
"""Seconds between two writes."""

WAITING = 10_000
"""The most openers that wait while the database is unavailable; further ones are dropped."""


def network_of(address: str) -> bytes:
    """The network of an address, as bytes; equal for an IPv4 address and its IPv4-mapped form."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    if isinstance(parsed, IPv6Address):
        return parsed.packed[:8] if parsed.ipv4_mapped is None else parsed.ipv4_mapped.packed
    return parsed.packed


class Openers:
    """Collects the openers of new tables; `write` stores them.

    They are not events: after a crash that loses some, the lobby lists a few tables too many.
    """

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._waiting: dict[bytes, bytes] = {}

    def note(self, table: bytes, address: str) -> None:
        """Add the opener of `table`; ignored where `address` is empty."""
        if address and len(self._waiting) < WAITING:
            digest = self._key.command_digest(b"opener " + network_of(address))
            self._waiting[table] = digest[:DIGEST_BYTES]

    async def write(self) -> None:
        """Store the openers that were noted since the last call; raises DatabaseError."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        try:
            await self._log.run_when_idle(lambda connection: openers.add(connection, waiting))
        except DealerError:
            self._waiting = waiting | self._waiting
            raise

    async def run(self) -> None:
        """Call `write` every second until cancelled; after an error the openers are retried."""
        await poll(EVERY_SECONDS, self.write)
