"""What `decide` needs of the open round's secret, which is no part of the table's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from dealer.errors import NoRound


class RoundSecrets(Protocol):
    """The round's secret S and what is derived from it (formulas: `dealer.proof.round_keys`)."""

    @property
    def secret(self) -> bytes:
        """The secret S, as long as the deck requires."""

    @property
    def commitment(self) -> bytes:
        """The commitment to S, 32 bytes."""

    def slot_salt(self, slot: int) -> bytes:
        """The salt of this slot's commitment, 32 bytes."""

    def slot_commitments(self, first: int, cards: Sequence[str]) -> list[bytes]:
        """The commitments, 32 bytes each, of the cards in the slots from `first` on."""

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> bytes:
        """The digest, 32 bytes, that commits this seat to `nonce`."""


class NoRoundSecrets:
    """Stands in for the secret between two rounds: every member raises NoRound."""

    @property
    def secret(self) -> NoReturn:
        """Raise NoRound."""
        raise NoRound("No round is open at this table; the host opens one with round.open.")

    @property
    def commitment(self) -> NoReturn:
        """Raise NoRound."""
        raise NoRound("No round is open, so there is no secret to commit to.")

    def slot_salt(self, slot: int) -> NoReturn:
        """Raise NoRound."""
        raise NoRound("No round is open, so no card has a salt.")

    def slot_commitments(self, first: int, cards: Sequence[str]) -> NoReturn:
        """Raise NoRound."""
        raise NoRound("No round is open, so no card can be sealed.")

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> NoReturn:
        """Raise NoRound."""
        raise NoRound("No round is open, so no entropy is accepted.")
