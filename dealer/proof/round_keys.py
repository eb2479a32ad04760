"""Key derivation and commitments of a round: all commitments are derived from one secret S.

Formulas, with H = SHA-256 and T(s) = ASCII "dealer/v1/" ‖ s ‖ 0x00:

    commitment = H(T("house") ‖ lp(table, be32(round), S))
    salt_key   = HKDF-SHA-512(ikm=S, salt=table, info=T("salt") ‖ be32(round), 32 bytes)
    seal_key   = the same with T("seal")
    digest     = H(T("player") ‖ lp(table, be32(round), be32(k), be32(seat), r))

    slot:  salt   = HMAC-SHA-256(salt_key, T("card") ‖ be32(slot))
           commit = H(T("card") ‖ lp(table, be32(round), be32(slot), salt, card))
    event: salt   = HMAC-SHA-256(salt_key, T("event") ‖ be64(version))
           commit = H(T("event") ‖ lp(table, be64(version), salt, JCS(hidden)))

`table` is the table's id, 16 bytes; salts, keys, digests and commitments have 32 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from hmac import digest as hmac_digest
from itertools import count
from math import factorial

from dealer.proof.concatenation import T, be32, be64, lp

_BLOCK = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
LENGTH_32 = be32(32)


@lru_cache
def secret_length(n: int) -> int:
    """Length of S in bytes for a deck of n cards: 32·⌈(bitlen(n!) + 128) / 256⌉.

    That is 128 bits more than needed to select an order, rounded up to blocks of 32 bytes.
    """
    return 32 * -(-(factorial(n).bit_length() + 128) // 256)


def round_commitment(*, table: bytes, round: int, secret: bytes) -> bytes:
    """The commitment to S, which RoundOpened publishes."""
    return sha256(T("house") + lp(table, be32(round), secret)).digest()


def player_digest(*, table: bytes, round: int, k: int, seat: int, nonce: bytes) -> bytes:
    """The digest that commits a seat to its `nonce`, 32 bytes, for shuffle `k`."""
    parts = lp(table, be32(round), be32(k), be32(seat), nonce)
    return sha256(T("player") + parts).digest()


def slot_commitment(*, table: bytes, round: int, slot: int, salt: bytes, card: str) -> bytes:
    """The commitment to the card in a slot, which DeckSealed publishes."""
    parts = lp(table, be32(round), be32(slot), salt, card.encode("ascii"))
    return sha256(T("card") + parts).digest()


def _hkdf(*, ikm: bytes, salt: bytes, info: bytes) -> bytes:
    """The first 32 bytes of HKDF-SHA-512 (RFC 5869): extract, and one block of expand."""
    return hmac_digest(hmac_digest(salt, ikm, "sha512"), info + b"\x01", "sha512")[:32]


class Hmac:
    """HMAC-SHA-256 under one key, of messages that begin with `start`.

    The key's blocks are hashed once and the states copied: that takes half the time of a new HMAC,
    for which Python's own would also release its lock to the other threads.
    """

    __slots__ = ("inner", "outer")

    def __init__(self, key: bytes, start: bytes = b"") -> None:
        block = key.ljust(_BLOCK, b"\0")
        self.inner = sha256(block.translate(_INNER) + start).copy
        self.outer = sha256(block.translate(_OUTER)).copy

    def digest(self, rest: bytes) -> bytes:
        """The HMAC of `start` and the rest of a message, 32 bytes."""
        inner = self.inner()
        inner.update(rest)
        outer = self.outer()
        outer.update(inner.digest())
        return outer.digest()


class RoundKeys:
    """The keys, salts and commitments of one round of one table, derived from S."""

    __slots__ = (
        "_card_start",
        "_commitment",
        "event_salts",
        "event_start",
        "round",
        "salt_key",
        "seal_key",
        "slot_salts",
        "table",
    )

    def __init__(self, *, table: bytes, round: int, secret: bytes) -> None:
        self.table: bytes = table
        self.round: int = round
        self.salt_key: bytes = _hkdf(ikm=secret, salt=table, info=T("salt") + be32(round))
        self.seal_key: bytes = _hkdf(ikm=secret, salt=table, info=T("seal") + be32(round))
        self._commitment = round_commitment(table=table, round=round, secret=secret)
        self.slot_salts = Hmac(self.salt_key, T("card"))
        self.event_salts = Hmac(self.salt_key, T("event"))
        self._card_start = T("card") + lp(table, be32(round)) + be32(4)
        self.event_start = T("event") + lp(table) + be32(8)

    @property
    def commitment(self) -> bytes:
        """The commitment to the round's secret, 32 bytes."""
        return self._commitment

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> bytes:
        """The digest of a seat's nonce for shuffle `k`, 32 bytes."""
        return player_digest(table=self.table, round=self.round, k=k, seat=seat, nonce=nonce)

    def slot_salt(self, slot: int) -> bytes:
        """The salt of a slot's commitment, 32 bytes."""
        return self.slot_salts.digest(be32(slot))

    def slot_commitment(self, slot: int, card: str) -> bytes:
        """The commitment to the card in a slot, 32 bytes."""
        return self.slot_commitments(slot, (card,))[0]

    def slot_commitments(self, first: int, cards: Iterable[str]) -> list[bytes]:
        """The commitments to the cards in the slots from `first` on."""
        return _commitments(self._card_start, map(be32, count(first)), self.slot_salts, cards)

    def event_commitment(self, version: int, hidden: str) -> bytes:
        """The commitment to the hidden part (canonical text) of the event at this version."""
        number = be64(version)
        parts = number + lp(self.event_salts.digest(number), hidden.encode())
        return sha256(self.event_start + parts).digest()

    def event_commitments(self, first: int, hidden: Iterable[str]) -> list[bytes]:
        """The commitments to the hidden parts of the versions from `first` on."""
        return _commitments(self.event_start, map(be64, count(first)), self.event_salts, hidden)


def _commitments(
    start: bytes, numbers: Iterable[bytes], salts: Hmac, parts: Iterable[str]
) -> list[bytes]:
    """H(`start` ‖ number ‖ lp(salt, part)) for each part and its number, which gives the salt."""
    inner_of, outer_of, pack, length = salts.inner, salts.outer, be32, LENGTH_32
    commitments = []
    for text, number in zip(parts, numbers, strict=False):  # `Hmac.digest` without the call
        inner, outer = inner_of(), outer_of()
        inner.update(number)
        outer.update(inner.digest())
        part = text.encode()
        content = start + number + length + outer.digest() + pack(len(part)) + part
        commitments.append(sha256(content).digest())
    return commitments
