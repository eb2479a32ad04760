"""The first player to act in stud games, determined by the open cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dealer.game.cards import RANKS

_ACE_LOW = RANKS
_ACE_HIGH = RANKS[1:] + RANKS[0]


def bring_in(cards: Mapping[int, str], *, low: bool) -> int:
    """The seat with the lowest card or, in `low` games, the highest card with the ace low."""
    if low:
        return max(cards, key=lambda seat: (_ACE_LOW.index(cards[seat][0]), cards[seat][1]))
    return min(cards, key=lambda seat: (_ACE_HIGH.index(cards[seat][0]), cards[seat][1]))


def best_open(hands: Mapping[int, Sequence[str]], *, low: bool) -> int:
    """The seat with the best one to four open cards; the first seat if several are equal."""
    if low:
        return min(hands, key=lambda seat: _strength(hands[seat], _ACE_LOW))
    return max(hands, key=lambda seat: _strength(hands[seat], _ACE_HIGH))


def _strength(cards: Sequence[str], ranks: str) -> tuple[list[int], list[int]]:
    """Sort key: pairs and better before ranks; four cards form no straight or flush."""
    counts = Counter(ranks.index(card[0]) for card in cards)
    order = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    return [counts[rank] for rank in order], order
