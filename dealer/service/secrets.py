"""The secret of an open round, as the house holds it in memory."""

from __future__ import annotations

from collections.abc import Sequence

from dealer.eventlog.sealing import NONCE, RoundSeal
from dealer.proof.keys import RoundKeys

__all__ = ["NONCE", "RoundSecret"]


class RoundSecret:
    """S and what is derived from it, as `dealer.game.decide.House` asks for it.

    `wrapped` is S as the log keeps it beside RoundOpened.
    """

    def __init__(self, *, table: bytes, round: int, secret: bytes, wrapped: bytes) -> None:
        keys = RoundKeys(table=table, round=round, secret=secret)
        seal = RoundSeal(table=table, seal_key=keys.seal_key)
        self.round = round
        self.secret = secret
        self.wrapped = wrapped
        self.commitment = keys.commitment
        self.event_commitment = keys.event_commitment
        self.event_commitments = keys.event_commitments
        self.slot_salt = keys.slot_salt
        self.slot_commitments = keys.slot_commitments
        self.player_digest = keys.player_digest
        self._seal = seal.seal
        self._seal_many = seal.seal_many
        self._unseal = seal.unseal

    def seal(self, version: int, hidden: str, nonce: bytes) -> bytes:
        """A hidden part, canonical text, as the log keeps it."""
        return self._seal(version, hidden.encode(), nonce=nonce)

    def seal_many(
        self, versions: Sequence[int], hidden: Sequence[str], nonces: bytes
    ) -> list[bytes]:
        """The same for many; `nonces` are 12 bytes for each, joined."""
        return self._seal_many(versions, [part.encode() for part in hidden], nonces=nonces)

    def unseal(self, version: int, stored: bytes) -> bytes:
        """The hidden part again; DatabaseDamaged if the row is not the one that was sealed."""
        return self._unseal(version, stored)
