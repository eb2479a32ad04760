"""The secrets of a table's rounds: published with RoundClosed, or decrypted with the house key."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dealer.errors import DatabaseDamaged, HouseKeyError
from dealer.eventlog import EventRecord, HouseKeys, ReadOnlyLog
from dealer.eventlog.key_file import key_checks, read_keys
from dealer.game.decide import NoRoundSecrets
from dealer.service.reading.past_states import AnySecret
from dealer.service.tables.decoding import tampered
from dealer.service.tables.round_secret import RoundSecret


async def house_keys(log: ReadOnlyLog, file: Path) -> tuple[HouseKeys, ...]:
    """The keys in `file` and beside it; HouseKeyError if they are not those of this log."""
    checks = set((await key_checks(log)).values())
    keys = await asyncio.to_thread(read_keys, file)
    ours = tuple(key for key in keys if key.check in checks)
    if not ours:
        raise HouseKeyError(f"The key in {file} is not the key of {log.name}.")
    return ours


@contextmanager
def taken_apart(table: str) -> Iterator[None]:
    """Raise DatabaseDamaged where the block cannot take the rows of this table apart."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError):
        raise tampered(table) from None


class RoundSecrets:
    """The secrets of one table's rounds, as far as they are known; `open` reads them.

    A closed round has published its secret. That of the open round needs one of `keys`.
    """

    def __init__(
        self, table: bytes, keys: Sequence[HouseKeys], published: dict[int, bytes]
    ) -> None:
        self._table = table
        self._keys = keys
        self._published = published
        self._known: dict[int, AnySecret] = {}

    @classmethod
    async def open(cls, log: ReadOnlyLog, table: bytes, keys: Sequence[HouseKeys]) -> RoundSecrets:
        """Raises DatabaseError."""
        published = {}
        async for rows in log.stream_types(table, ("RoundClosed",)):
            for row in rows:
                with taken_apart(table.hex()):
                    members = row.members()
                    published[members["round"]] = bytes.fromhex(members["secret"])
        return cls(table, keys, published)

    def known(self, number: int) -> bool:
        """Whether `of` has the secret of this round."""
        return isinstance(self.of(number), RoundSecret)

    def of(self, number: int) -> AnySecret:
        """The secret of a round; of an open one only after `opened` has got its RoundOpened."""
        if number not in self._known and number in self._published:
            self._known[number] = RoundSecret(
                table=self._table, round=number, secret=self._published[number], wrapped=b""
            )
        return self._known.get(number, NoRoundSecrets())

    async def opened(self, row: EventRecord) -> AnySecret:
        """The secret of the round that this RoundOpened began."""
        with taken_apart(self._table.hex()):
            number = row.members()["round"]
            if number not in self._published and self._keys:
                self._known[number] = self._unwrap(number, row.hidden or b"")
            return self.of(number)

    def _unwrap(self, number: int, wrapped: bytes) -> RoundSecret:
        for key in self._keys:
            with suppress(DatabaseDamaged):  # it may be wrapped under an earlier key
                secret = key.unwrap(wrapped, table=self._table, round=number)
                return RoundSecret(table=self._table, round=number, secret=secret, wrapped=wrapped)
        raise HouseKeyError(
            f"The secret of round {number} cannot be decrypted with this house key, nor with the "
            "earlier ones beside it."
        )
