"""The cards of a deck, and the commands of the game that its operations are.

The table of a deck has one seat, which is the API's. Cards that a shuffle has reached are drawn
into its hand, where they stay hidden until the round closes. The order of an unshuffled deck is
public: its cards are moved face up to the pile `OPEN`. Both are "drawn" to the original. Each other
pile is a pile of the original.

The deck's top card is its last one; a pile's top is its last card, too, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from dealer.errors import BadRequest
from dealer.game.commands import Actor, Command, Draw, Move, Show, StartShuffle
from dealer.game.stacks import DECK, hand, pile
from dealer.game.state import Round
from dealer.gateway.decks.codes import shown

SEAT = 1
API = Actor(host=True, seat=SEAT)
HAND = hand(SEAT)
OPEN = pile("(drawn)")
"""Cards drawn face up; no pile of the original can have this name."""

_PILE = "pile:"


class NotFound(BadRequest):
    """Answered with 404, as in the original."""


class Deck:
    """The cards of a deck's open round."""

    def __init__(self, round_: Round) -> None:
        self.round = round_

    @property
    def remaining(self) -> int:
        """The number of cards that are not drawn."""
        return len(self.round.cards(DECK))

    def piles(self) -> list[str]:
        """The names of the piles that a card has been in."""
        stacks = [stack for stack in self.round.stacks if stack.startswith(_PILE) and stack != OPEN]
        return [stack.removeprefix(_PILE) for stack in stacks]

    def codes(self, slots: Iterable[int]) -> list[str]:
        """The original's codes of cards."""
        return [shown(self.round.face(slot) or "") for slot in slots]

    def next_of_deck(self, count: int, where: str) -> list[int]:
        """At most `count` cards from an end of the deck, in the order in which they leave it."""
        cards = self.round.cards(DECK)
        return cards[:count] if where == "bottom" else cards[: -count - 1 : -1]

    def drawn(self) -> list[tuple[str, int]]:
        """(stack, slot) of each drawn card, in the order of a new deck."""
        order = {code: place for place, code in enumerate(reversed(self.round.opened))}
        found = [(stack, slot) for stack in (HAND, OPEN) for slot in self.round.cards(stack)]
        return sorted(found, key=lambda found_card: order[self.round.face(found_card[1]) or ""])

    def piled(self) -> list[tuple[str, int]]:
        """(stack, slot) of each card in a pile."""
        stacks = map(pile, self.piles())
        return [(stack, slot) for stack in stacks for slot in self.round.cards(stack)]

    def find(
        self, codes: Iterable[str], among: Iterable[tuple[str, int]], refusal: str
    ) -> list[tuple[str, int]]:
        """(stack, slot) of a card with each of the codes.

        Raises NotFound where there is none: with this refusal, in which `{codes}` stands for those.
        """
        left: dict[str, list[tuple[str, int]]] = {}
        for stack, slot in among:
            left.setdefault(shown(self.round.face(slot) or ""), []).append((stack, slot))
        found, missing = [], []
        for code in codes:
            if left.get(code):
                found.append(left[code].pop(0))
            else:
                missing.append(code)
        if missing:
            raise NotFound(refusal.format(codes=",".join(missing)))
        return found

    def looking_at(self, names: Iterable[str]) -> list[Command]:
        """The commands by which the API sees the cards of piles that it does not know."""
        sees = self.round.sees
        return [
            Show(API, pile(name), to=SEAT, whole=True)
            for name in names
            if not all(sees(SEAT, slot) for slot in self.round.cards(pile(name)))
        ]

    def taking(self, source: str, slots: Sequence[int]) -> list[Command]:
        """The commands that draw these cards from a stack."""
        count = len(slots)
        drawable = self.round.drawable
        if slots == self.round.cards(source)[: -count - 1 : -1] and self.round.all_shuffled(slots):
            return [Draw(API, count, source)] if slots else []
        taken: list[Command] = []
        for reached, some in groupby(slots, key=lambda slot: bool(drawable[slot])):
            run = tuple(some)
            if reached:
                taken.append(Draw(API, len(run), source, cards=run))
            else:
                taken.append(Move(API, "pile", source, OPEN, cards=run, face="up"))
        return taken


def moving(cards: Iterable[tuple[str, int]], to: str) -> list[Command]:
    """The commands that put cards, as (stack, slot), on top of a pile, or below the deck.

    Each goes on top of the one before it, and in the deck below the one before it.
    """
    moved: list[Command] = []
    for source, some in groupby(cards, key=lambda card: card[0]):
        slots = tuple(slot for _, slot in some)
        action = "return" if source == HAND and to == DECK else "pile"
        below = to == DECK
        moved.append(Move(API, action, source, to, cards=slots, where="bottom" if below else "top"))
    return moved


def shuffling(stack: str, *, steps: int | None = None) -> StartShuffle:
    """The command that shuffles a stack; with 0 steps it only seals the cards in their order."""
    return StartShuffle(API, stack, steps=steps)
