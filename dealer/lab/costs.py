"""Costs of shuffles as decks grow: random numbers, comparisons and time."""

from __future__ import annotations

import random
from functools import cmp_to_key, partial
from timeit import repeat
from typing import NamedTuple

from dealer.lab import shuffles
from dealer.lab.shuffles import METHODS, Rows, method, ordered

SIZES = (16, 64, 256, 1024)
_DECKS = 64
_ROUNDS = 3


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
