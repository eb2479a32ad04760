"""Round secret cache: decrypts round secrets with the house key, and verifies its notes."""

from __future__ import annotations

from collections import OrderedDict

from dealer.errors import NoteFault
from dealer.eventlog import EventRecord, Log
from dealer.eventlog.keys import HouseKeys
from dealer.proof.checkpoint import open_note
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import RoundSecret, tampered

SECRETS = 1024
"""Secrets of closed rounds that are cached for clients that read these rounds."""


class RoundSecretCache:
    """The recently used secrets of the rounds in `log`, decrypted with `key`."""

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._secrets: OrderedDict[tuple[bytes, int], RoundSecret] = OrderedDict()

    def signed(
        self, live_table: LiveTable, note: str, *, key: bytes | None = None
    ) -> tuple[int, bytes]:
        """Size and root of a note; DatabaseDamaged unless it is signed under the table's key."""
        signed = self._key.of(live_table.table.key if key is None else key).public_key
        try:
            return open_note(note, key=signed, table=live_table.table_id)
        except NoteFault:
            raise tampered(live_table.table_id) from None

    async def secret(self, live_table: LiveTable, number: int) -> RoundSecret:
        """The secret of a round of this table, open or closed."""
        current = live_table.secret
        if isinstance(current, RoundSecret) and current.round == number:
            return current
        name = (live_table.id, number)
        if name in self._secrets:
            self._secrets.move_to_end(name)
            return self._secrets[name]
        opening = live_table.table.round_versions[number - 1]
        rows = await self._log.read(live_table.id, after=opening - 1, limit=1)
        if not rows:
            raise tampered(live_table.table_id)
        secret = self._secrets[name] = self.unwrap(live_table.id, rows[0])
        if len(self._secrets) > SECRETS:
            self._secrets.popitem(last=False)
        return secret

    def unwrap(self, table: bytes, row: EventRecord) -> RoundSecret:
        """The secret in a RoundOpened row."""
        return self.unwrap_stored(table, row.members()["round"], row.hidden or b"")

    def unwrap_stored(self, table: bytes, number: int, wrapped: bytes) -> RoundSecret:
        """The secret of a round, given as it is stored; DatabaseDamaged if it is of another."""
        secret = self._key.unwrap(wrapped, table=table, round=number)
        return RoundSecret(table=table, round=number, secret=secret, wrapped=wrapped)

    def forget(self, table: bytes) -> None:
        """Drop the table's secrets: in a log that was rewound a round number may be used again."""
        for name in [name for name in self._secrets if name[0] == table]:
            del self._secrets[name]
