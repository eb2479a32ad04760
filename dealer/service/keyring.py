"""What the house's key opens and what it signed: the secrets of rounds, the notes of tables."""

from __future__ import annotations

from collections import OrderedDict

from dealer.errors import NoteFault
from dealer.eventlog import Log, Row
from dealer.eventlog.sealing import HouseKeys
from dealer.proof.checkpoint import open_note
from dealer.service.leaves import altered
from dealer.service.resident import Resident
from dealer.service.round_secret import RoundSecret

SECRETS = 1024
"""How many closed rounds' secrets are kept at hand for players who come back to them."""


class Keyring:
    """What of one house's `log` was lately opened with `key`, and whether it signed a note."""

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._secrets: OrderedDict[tuple[bytes, int], RoundSecret] = OrderedDict()

    def signed(
        self, resident: Resident, note: str, *, key: bytes | None = None
    ) -> tuple[int, bytes]:
        """Size and root of a note, which must be signed under the table's key."""
        signed = self._key.of(resident.table.key if key is None else key).public_key
        try:
            return open_note(note, key=signed, table=resident.table_id)
        except NoteFault:
            raise altered(resident.table_id) from None

    async def secret(self, resident: Resident, number: int) -> RoundSecret:
        """The secret of a round of this table, open or closed."""
        current = resident.secret
        if isinstance(current, RoundSecret) and current.round == number:
            return current
        name = (resident.id, number)
        if name in self._secrets:
            self._secrets.move_to_end(name)
            return self._secrets[name]
        opening = resident.table.openings[number - 1]
        (row,) = await self._log.read(resident.id, after=opening - 1, limit=1)
        secret = self._secrets[name] = self.unwrap(resident.id, row)
        if len(self._secrets) > SECRETS:
            self._secrets.popitem(last=False)
        return secret

    def unwrap(self, table: bytes, row: Row) -> RoundSecret:
        """The secret in a RoundOpened."""
        number = row.members()["round"]
        wrapped = row.hidden or b""
        secret = self._key.unwrap(wrapped, table=table, round=number)
        return RoundSecret(table=table, round=number, secret=secret, wrapped=wrapped)

    def forget(self, table: bytes) -> None:
        """Let go of the table's secrets: in a log that was put back a round may come again."""
        for name in [name for name in self._secrets if name[0] == table]:
            del self._secrets[name]
