"""What the house knows and the table does not say: the secret of the open round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from dealer.errors import NoRound


class House(Protocol):
    """Everything that `decide` needs of the round's secret S; fairness.md has the formulas."""

    @property
    def secret(self) -> bytes: ...

    @property
    def commitment(self) -> bytes: ...

    def slot_salt(self, slot: int) -> bytes:
        """The salt, 32 bytes, that opens this slot's commitment."""

    def slot_commitments(self, first: int, cards: Sequence[str]) -> list[bytes]:
        """Commitments, 32 bytes each, of the cards in slots first, first+1, …"""

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> bytes:
        """The digest that this seat must have sent before it revealed `nonce`."""


class NoSecret:
    """The house between two rounds: it has no secret, and whatever needs one is refused."""

    @property
    def secret(self) -> NoReturn:
        raise NoRound("No round is open at this table; the host opens one with round.open.")

    @property
    def commitment(self) -> NoReturn:
        raise NoRound("Between rounds there is no secret to commit to.")

    def slot_salt(self, slot: int) -> NoReturn:
        raise NoRound("Between rounds no card has a salt.")

    def slot_commitments(self, first: int, cards: Sequence[str]) -> NoReturn:
        raise NoRound("Between rounds no card is sealed.")

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> NoReturn:
        raise NoRound("Between rounds no entropy is taken.")
