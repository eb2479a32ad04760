"""Exact probabilities of a few cards: every choice of a method is enumerated.

A fair shuffle of n cards produces each of the n! orders with probability exactly 1/n!.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from dealer.lab import shuffles
from dealer.lab.shuffles import Decks, NumberSource, Rows, method, ordered

Order = tuple[int, ...]
Shuffle = Callable[[Decks, NumberSource], Decks]


class Exact(NamedTuple):
    """How many of `ways` equally likely sequences of numbers give each order.

    `open` of them end before the shuffle does: a method may need any number of numbers.
    """

    counts: dict[Order, int]
    ways: int
    open: int = 0


class _EveryWay(NumberSource):
    """A number source: row r of `ways` gets the digits of r, in whatever bases are asked for."""

    def __init__(self, ways: int) -> None:
        self._ways = ways
        self._left = np.arange(ways)
        self._used = np.ones(ways, dtype=np.int64)
        self._turn = 0
        self.open = np.zeros(ways, dtype=bool)

    def draw(self, bound: int, rows: Rows) -> Rows:
        used = self._used[rows] * bound
        self.open[rows[used > self._ways]] = True
        self._used[rows] = np.minimum(used, self._ways)
        digits, self._left[rows] = self._left[rows] % bound, self._left[rows] // bound
        self._turn += 1  # a row that is open counts up, so that its shuffle ends
        return np.where(self.open[rows], self._turn % bound, digits)


def enumerated(shuffle: Shuffle, n: int, ways: int) -> Exact:
    """All ways to shuffle 0…n−1: a multiple of the product of the bounds of what is drawn."""
    numbers = _EveryWay(ways)
    decks = shuffle(ordered(ways, n), numbers)[~numbers.open]
    if not n:
        return Exact({(): len(decks)}, ways)
    orders, counts = np.unique(decks, axis=0, return_counts=True)
    found = zip(map(tuple, orders.tolist()), counts.tolist(), strict=True)
    return Exact(dict(found), ways, int(numbers.open.sum()))


def repeated(once: Exact, times: int) -> Exact:
    """The orders after `times` independent repetitions of a step."""
    result = {tuple(range(len(next(iter(once.counts))))): 1}
    for bit in f"{times:b}":
        result = _then(result, result)
        if bit == "1":
            result = _then(result, once.counts)
    return Exact(result, once.ways**times)


def _then(first: dict[Order, int], second: dict[Order, int]) -> dict[Order, int]:
    result: dict[Order, int] = {}
    for deck, a in first.items():
        for moves, b in second.items():
            order = tuple([deck[place] for place in moves])
            result[order] = result.get(order, 0) + a * b
    return result


def of_method(name: str, n: int) -> tuple[Exact, int]:
    """The orders of a method over `n` cards, and the number of places of its sample.

    For a method with an unbounded number of choices a few more than n are enumerated. Sorting by
    key is with keys 0…n instead of 2^40; a thousand transpositions are one, repeated.
    """
    if name == "random-key":
        return enumerated(partial(shuffles.random_key, base=n + 1, digits=1), n, (n + 1) ** n), n
    if name == "transpositions":
        chosen = method(name, n=n, steps=1)
        once = enumerated(chosen.shuffle, n, n**2 or 1)
        return repeated(once, method(name, n=n).steps), n
    chosen = method(name, n=n, steps=n // 2 if name == "partial" else None)
    if name == "visited-set":
        ways = n ** (n + 2) or 1
    elif name == "random-comparator":
        ways = 2 ** (3 * n)
    else:
        ways = math.prod(count for _, _, count in shuffles.exchanges(name, n, chosen.steps))
    return enumerated(chosen.shuffle, n, ways), chosen.steps if name == "partial" else n


def unfairness(exact: Exact, n: int, k: int | None = None) -> Fraction:
    """The largest relative deviation from the fair probability; exactly 0 for a fair shuffle.

    It is taken over ordered samples of `k` of the n cards, the last k of each order. Open cases are
    excluded.
    """
    k = n if k is None else k
    samples: dict[Order, int] = {}
    for order, count in exact.counts.items():
        samples[order[n - k :]] = samples.get(order[n - k :], 0) + count
    fair = Fraction(exact.ways - exact.open, math.perm(n, k))
    off = [abs(count / fair - 1) for count in samples.values()]
    return max(*off, Fraction(int(len(samples) < math.perm(n, k))))
