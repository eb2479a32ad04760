"""The last move of cards, and the cards that wait to be passed, as far as the log shows them.

A move that showed no card to anyone can be taken back (`decide.card_moves`). The events of a move
have no member for the command or the player that caused them, so both are derived: a command's
events have one time and the same stacks, and the player is the seat whose hand they name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dealer.game.stacks import is_pass_pile, seat_of


class CardFrom(NamedTuple):
    """A card that moved, and its place in the stack that it left."""

    slot: int
    place: int


@dataclass(slots=True)
class CardsMoved:
    """The cards that one command moved between two stacks, in the order in which they left.

    `version` is its first event's, `at` its time in milliseconds. `drawn`: the events are
    CardDrawn. `revealed`: a viewer has seen a face by it that was unknown to them.
    """

    version: int
    at: int
    source: str
    to: str
    drawn: bool = False
    revealed: bool = False
    cards: list[CardFrom] = field(default_factory=list)

    @property
    def seat(self) -> int | None:
        """The seat whose hand it concerns; None for a move between deck and piles."""
        giver = seat_of(self.source)
        return seat_of(self.to) if giver is None else giver

    @property
    def versions(self) -> str:
        """The versions of its events, as `first-last`, or one version."""
        last = self.version + len(self.cards) - 1
        return str(self.version) if last == self.version else f"{self.version}-{last}"

    def follows(self, version: int) -> bool:
        """Whether an event of this version comes right after its own."""
        return version == self.version + len(self.cards)


@dataclass(slots=True)
class Moves:
    """What can be taken back in a round: the last move, and by seat the cards it has passed."""

    last: CardsMoved | None = None
    passed: dict[int, CardsMoved] = field(default_factory=dict)

    def record(
        self,
        card: CardFrom,
        *,
        version: int,
        at: int,
        source: str,
        to: str,
        drawn: bool,
        known: bool,
    ) -> None:
        """Record that a card left `source`, which is not the deck.

        `known`: no viewer has learned its face by that.
        """
        giver = seat_of(source)
        if is_pass_pile(source) or (giver is not None and is_pass_pile(to)):
            self.last = None
            if giver is None:
                self.drop({card.slot})
            else:
                self._record_pass(giver, card, CardsMoved(version, at, source, to))
            return
        last = self.last
        same = last is not None and (last.at, last.source, last.to, last.drawn) == (
            at,
            source,
            to,
            drawn,
        )
        if last is None or not same or not (last.revealed or last.follows(version)):
            last = self.last = CardsMoved(version, at, source, to, drawn)
        last.cards.append(card)
        last.revealed |= not known

    def _record_pass(self, giver: int, card: CardFrom, new: CardsMoved) -> None:
        passed = self.passed.get(giver)
        if passed is None or passed.to != new.to or not passed.follows(new.version):
            passed = self.passed[giver] = new
        passed.cards.append(card)

    def shown(self, slot: int, at: int) -> None:
        """Record that a card was turned up, by the last move or by a command of its own."""
        last = self.last
        if last is None or last.at != at or all(card.slot != slot for card in last.cards):
            self.last = None
        else:
            last.revealed = True

    def drop(self, slots: set[int]) -> None:
        """Forget these cards, which do not wait to be passed any more."""
        for seat, passed in list(self.passed.items()):
            passed.cards[:] = [card for card in passed.cards if card.slot not in slots]
            if not passed.cards:
                del self.passed[seat]

    def left(self, seat: int) -> None:
        """Record that the player of a seat left; cards that the seat has passed stay passed."""
        if self.last is not None and self.last.seat == seat:
            self.last = None

    def waiting(self) -> Iterable[tuple[int, int, str]]:
        """The cards that wait to be passed: (seat that gave it, slot, pile)."""
        for seat, passed in self.passed.items():
            for card in passed.cards:
                yield seat, card.slot, passed.to

    def waits_in(self, stack: str) -> bool:
        """Whether cards wait in this pile to be passed."""
        return any(passed.to == stack for passed in self.passed.values())
