"""Whose open cards make them speak first in stud; elsewhere it is whose first card came first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dealer.game.cards import RANKS

_ACE_LOW = RANKS
_ACE_HIGH = RANKS[1:] + RANKS[0]


def bring_in(cards: Mapping[int, str], *, low: bool) -> int:
    """The seat whose card is the lowest, or, in a game for `low`, the highest with a low ace."""
    if low:
        return max(cards, key=lambda seat: (_ACE_LOW.index(cards[seat][0]), cards[seat][1]))
    return min(cards, key=lambda seat: (_ACE_HIGH.index(cards[seat][0]), cards[seat][1]))


def best_open(hands: Mapping[int, Sequence[str]], *, low: bool) -> int:
    """The seat whose one to four cards are best, the first of equal ones."""
    if low:
        return min(hands, key=lambda seat: _strength(hands[seat], _ACE_LOW))
    return max(hands, key=lambda seat: _strength(hands[seat], _ACE_HIGH))


def _strength(cards: Sequence[str], ranks: str) -> tuple[list[int], list[int]]:
    """Pairs and better come before ranks; four cards make no straight and no flush."""
    counts = Counter(ranks.index(card[0]) for card in cards)
    order = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    return [counts[rank] for rank in order], order
