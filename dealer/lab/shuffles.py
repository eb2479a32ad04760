"""Ten ways to shuffle a deck: five fair ones and five common mistakes.

Each is a plain function of a deck and a source of random numbers `below(b)`, 0…b−1, and returns a
new list; the given deck is not changed. Fisher–Yates is that of `dealer.game.shuffle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from dealer.game import shuffle
from dealer.game.shuffle import Below

Card = TypeVar("Card")

KEY_BASE = 1024
KEY_DIGITS = 4
A_THOUSAND = 1000


def backward(cards: Sequence[Card], below: Below) -> list[Card]:
    """Fisher–Yates from the top down."""
    return shuffle.shuffled(cards, below)


def forward(cards: Sequence[Card], below: Below) -> list[Card]:
    """Fisher–Yates from the bottom up."""
    return swapped(cards, ((i, j) for _, i, j in shuffle.forward(len(cards), below)))


def partial(cards: Sequence[Card], below: Below, *, steps: int) -> list[Card]:
    """The first `steps` steps of `backward`: only the top `steps` places are a fair sample."""
    return swapped(cards, ((i, j) for _, i, j in shuffle.backward(len(cards), steps, below)))


def random_key(
    cards: Sequence[Card], below: Below, *, base: int = KEY_BASE, digits: int = KEY_DIGITS
) -> list[Card]:
    """Sort by a random key for each card, in O(n log n).

    A key has `digits` digits below `base`. If two keys are equal all are drawn again, since a
    stable sort would favour the old order of such a pair.
    """
    while True:
        keys = [_number(below, base, digits) for _ in cards]
        if len(set(keys)) == len(keys):
            order = sorted(range(len(keys)), key=keys.__getitem__)
            return [cards[place] for place in order]


def _number(below: Below, base: int, digits: int) -> int:
    number = 0
    for _ in range(digits):
        number = number * base + below(base)
    return number


def visited_set(cards: Sequence[Card], below: Below) -> list[Card]:
    """Draw random places and skip those taken before; fair, needs n·(1 + 1/2 + … + 1/n) numbers."""
    taken: list[Card] = []
    visited: set[int] = set()
    while len(taken) < len(cards):
        place = below(len(cards))
        if place not in visited:
            visited.add(place)
            taken.append(cards[place])
    return taken


def swap_any(cards: Sequence[Card], below: Below) -> list[Card]:
    """Wrong: swaps each place with any place; n^n equally likely ways into n! orders is biased."""
    n = len(cards)
    return swapped(cards, ((i, below(n)) for i in range(n)))


def swap_any_but_last(cards: Sequence[Card], below: Below) -> list[Card]:
    """Wrong: as `swap_any` with an off-by-one error, so that the last place is never chosen."""
    n = len(cards)
    if n < 2:
        return list(cards)
    return swapped(cards, ((i, below(n - 1)) for i in range(n)))


def random_comparator(cards: Sequence[Card], below: Below) -> list[Card]:
    """Wrong: sorts with a comparator that returns a random result.

    The sort is TimSort as in JavaScript's V8 and in Python before 3.13 for less than 64 cards: an
    initial run, reversed if descending, then binary insertion of each further card.
    """
    copy, n = list(cards), len(cards)
    if n < 2:
        return copy
    falling = below(2)
    run = 2
    while run < n and below(2) == falling:
        run += 1
    if falling:
        copy[:run] = copy[:run][::-1]
    for place in range(run, n):
        low, high = 0, place
        while low < high:
            middle = (low + high) // 2
            if below(2):
                high = middle
            else:
                low = middle + 1
        copy.insert(low, copy.pop(place))
    return copy


def transpositions(cards: Sequence[Card], below: Below, *, steps: int = A_THOUSAND) -> list[Card]:
    """Wrong: swaps two random places, `steps` times; approaches fairness but never reaches it.

    The bias falls as (1 − 2/n)^steps (P. Diaconis and M. Shahshahani, 1981): a thousand steps are
    far too few for eight decks; for a single deck the remaining bias is too small to measure.
    """
    n = len(cards)
    if n < 2:
        return list(cards)
    return swapped(cards, ((below(n), below(n)) for _ in range(steps)))


def sattolo(cards: Sequence[Card], below: Below) -> list[Card]:
    """Wrong: Fisher–Yates that never keeps a card in place, so only (n−1)! orders are possible.

    S. Sattolo, 1986, for random cyclic permutations; used as a shuffle it is an off-by-one error.
    """
    return swapped(cards, ((i, below(i)) for i in range(len(cards) - 1, 0, -1)))


def swapped(cards: Sequence[Card], swaps: Iterable[tuple[int, int]]) -> list[Card]:
    """A copy of `cards` in which these places are exchanged, one pair after the other."""
    copy = list(cards)
    for i, j in swaps:
        copy[i], copy[j] = copy[j], copy[i]
    return copy
