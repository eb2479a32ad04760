"""Exact probabilities of the orders of a few cards, by enumerating every choice of a method.

A fair shuffle of n cards produces each of the n! orders with probability exactly 1/n!.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from dealer.game.shuffle import Below
from dealer.lab import shuffles

Order = tuple[int, ...]
One = Callable[[Sequence[int], Below], list[int]]


class Exact(NamedTuple):
    """The probability of each possible order; `open` is that of exceeding the limit of numbers."""

    chances: dict[Order, Fraction]
    open: Fraction


class _TooMany(Exception):
    pass


class _Script:
    """A number source with predefined numbers; beyond their end it appends zeros."""

    def __init__(self, numbers: list[int], limit: int) -> None:
        self.numbers = numbers
        self.bounds: list[int] = []
        self._limit = limit

    def below(self, bound: int) -> int:
        place = len(self.bounds)
        if place == self._limit:
            raise _TooMany
        self.bounds.append(bound)
        if place == len(self.numbers):
            self.numbers.append(0)
        return self.numbers[place]


def enumerated(one: One, n: int, *, limit: int = 1000) -> Exact:
    """All ways to shuffle 0…n−1; those that need more than `limit` numbers count as open."""
    chances: dict[Order, Fraction] = {}
    left_open = Fraction(0)
    for order, chance in _ways(one, n, limit):
        if order is None:
            left_open += chance
        else:
            chances[order] = chances.get(order, Fraction(0)) + chance
    return Exact(chances, left_open)


def _ways(one: One, n: int, limit: int) -> Iterator[tuple[Order | None, Fraction]]:
    numbers: list[int] = []
    while True:
        script = _Script(numbers, limit)
        order: Order | None
        try:
            order = tuple(one(range(n), script.below))
        except _TooMany:
            order = None
        yield order, Fraction(1, math.prod(script.bounds))
        # Next script: increment the last number that can be incremented, and drop those after it.
        while numbers and numbers[-1] + 1 == script.bounds[len(numbers) - 1]:
            numbers.pop()
        if not numbers:
            return
        numbers[-1] += 1


def repeated(once: dict[Order, Fraction], times: int) -> dict[Order, Fraction]:
    """The probabilities after `times` independent repetitions of a step with those of `once`."""
    whole = math.lcm(*(chance.denominator for chance in once.values()))
    weights = {order: int(chance * whole) for order, chance in once.items()}
    identity = tuple(range(len(next(iter(once)))))
    result = {identity: 1}
    for bit in f"{times:b}":
        result = _then(result, result)
        if bit == "1":
            result = _then(result, weights)
    return {order: Fraction(weight, whole**times) for order, weight in result.items()}


def of_method(name: str, n: int) -> tuple[Exact, int]:
    """The probabilities of the method over `n` cards, and the number of places of its sample.

    For a method with an unbounded number of choices the limit is a few more than n. Sorting by key
    is enumerated with keys 0…n instead of 2^40; a thousand transpositions are one, repeated.
    """
    if name == "transpositions":
        once = enumerated(partial(shuffles.transpositions, steps=1), n).chances
        return Exact(repeated(once, shuffles.A_THOUSAND), Fraction(0)), n
    if name == "random-key":
        return enumerated(partial(shuffles.random_key, base=n + 1, digits=1), n, limit=n), n
    if name == "partial":
        steps = n // 2
        return enumerated(partial(shuffles.partial, steps=steps), n), steps
    one: One = getattr(shuffles, name.replace("-", "_"))
    return enumerated(one, n, limit=n + 2 if name == "visited-set" else 1000), n


def _then(first: dict[Order, int], second: dict[Order, int]) -> dict[Order, int]:
    result: dict[Order, int] = {}
    for deck, a in first.items():
        for moves, b in second.items():
            order = tuple([deck[place] for place in moves])
            result[order] = result.get(order, 0) + a * b
    return result


def unfairness(exact: Exact, n: int, k: int | None = None) -> Fraction:
    """The largest relative deviation from the fair probability; exactly 0 for a fair shuffle.

    It is taken over ordered samples of `k` of the n cards, the last k of each order. Open cases are
    excluded.
    """
    k = n if k is None else k
    chances: dict[Order, Fraction] = {}
    for order, chance in exact.chances.items():
        sample = order[n - k :]
        chances[sample] = chances.get(sample, Fraction(0)) + chance
    fair = (1 - exact.open) / math.perm(n, k)
    off = [abs(chance / fair - 1) for chance in chances.values()]
    return max(*off, Fraction(int(len(chances) < math.perm(n, k))))
