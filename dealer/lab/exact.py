"""What is known without statistics: exact probabilities of a few cards, and costs of growing decks.

A fair shuffle of n cards produces each of the n! orders with probability exactly 1/n!; every choice
of a method is enumerated. The cost of a shuffle is its random numbers, comparisons and time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key, partial
from itertools import permutations
from timeit import repeat
from typing import NamedTuple

import numpy as np

from dealer.errors import amount
from dealer.lab import shuffles
from dealer.lab.shuffles import METHODS, Decks, NumberSource, Rows, method, ordered

Order = tuple[int, ...]
Shuffle = Callable[[Decks, NumberSource], Decks]

LISTED_WAYS, LISTED_ORDERS = 10_000, 24
SIZES = (16, 64, 256, 1024)
_DECKS = 64
_ROUNDS = 3


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


def ways(exact: Exact, n: int) -> str | None:
    """How the ways are divided among all orders, in their order; None if that is too long."""
    counts = [exact.counts.get(order, 0) for order in permutations(range(n))]
    common = math.gcd(*counts)
    total = sum(counts) // common
    if total > LISTED_WAYS or len(counts) > LISTED_ORDERS:
        return None
    listed = " ".join(str(count // common) for count in counts)
    return f"{amount(total, 'way')} over {amount(len(counts), 'order')}: {listed}"


class Cost(NamedTuple):
    """Cost of one shuffle of n cards; `seconds` are measured on this machine."""

    n: int
    numbers: float
    comparisons: float
    seconds: float

    @property
    def operations(self) -> float:
        return self.numbers + self.comparisons


class _Counting(shuffles.NumberSource):
    """Counts the numbers that are drawn."""

    count = 0

    def draw(self, bound: int, rows: Rows) -> Rows:
        self.count += len(rows)
        return super().draw(bound, rows)


def costs(name: str, *, sizes: tuple[int, ...] = SIZES) -> list[Cost]:
    """One cost for each size; the random numbers are seeded, so the counts are reproducible."""
    result = []
    for n in sizes:
        # A partial shuffle takes a quarter of the deck, so that its cost grows, too.
        chosen = method(name, n=n, steps=n // 4 if name == "partial" else None)
        counting = _Counting(shuffles.words("pcg64", seed=1))
        decks = chosen.shuffle(ordered(_DECKS, n), counting)
        numbers, comparisons = counting.count / _DECKS, 0.0
        if name == "random-key":
            comparisons = sum(_comparisons(n, seed) for seed in range(_DECKS)) / _DECKS
        elif name == "random-comparator":
            numbers, comparisons = 0.0, numbers  # every number is the result of one comparison
        # The minimum of a few runs, since other load only adds to it.
        again = partial(chosen.shuffle, decks, shuffles.number_source("pcg64", n=n, seed=1))
        runs = repeat(again, number=1, repeat=_ROUNDS)
        result.append(Cost(n, numbers, comparisons, min(runs) / _DECKS))
    return result


def _comparisons(n: int, seed: int) -> int:
    """The number of comparisons of a sort of n random keys."""
    compared = 0

    def compare(a: int, b: int) -> int:
        nonlocal compared
        compared += 1
        return a - b

    sorted(random.Random(seed).sample(range(n), n), key=cmp_to_key(compare))
    return compared


def cost_lines(measured: dict[str, list[Cost]]) -> list[str]:
    """Lines with operations and nanoseconds for each card; O(n) methods are constant."""
    sizes = [cost.n for cost in measured[METHODS[0]]]
    numbers, wide = "".join(f"{n:>8}" for n in sizes), 8 * len(sizes)
    heading = f"{'numbers and comparisons a card':^{wide}}  {'last':<6}"
    lines = [
        f"{'':<18}{heading}{'nanoseconds a card':^{wide}}",
        f"{'cards':<18}{numbers}  {'step':<6}{numbers}",
    ]
    for name, row in measured.items():
        operations = "".join(f"{cost.operations / cost.n:>8.2f}" for cost in row)
        times = "".join(f"{cost.seconds / cost.n * 1e9:>8.0f}" for cost in row)
        grows = row[-1].operations / row[-2].operations
        lines.append(f"{name:<18}{operations}  ×{grows:<5.2f}{times}")
    step = sizes[-1] / sizes[-2]
    return [
        *lines,
        "",
        f"The last step makes the deck {step:g} times as large. A total cost of ×{step:.2f} is "
        "O(n), constant for each card;",
        "a greater one, rising by the same amount a card with every step, is O(n log n); ×1.00 is "
        "independent of the deck.",
    ]
