"""Cost of each method as decks grow: random numbers, comparisons and running time."""

from __future__ import annotations

from functools import cmp_to_key
from timeit import Timer
from typing import NamedTuple

from dealer.game.shuffle import Below
from dealer.lab.exact import One
from dealer.lab.methods import METHODS, method
from dealer.lab.sources import Stream, words_from

SIZES = (16, 64, 256, 1024)
_COUNTED = 20
_ROUNDS = 5
_LEAST_SECONDS = 0.002


class Cost(NamedTuple):
    """Cost of one shuffle of n cards; `seconds` are measured on this machine."""

    n: int
    numbers: float
    comparisons: float
    seconds: float

    @property
    def operations(self) -> float:
        return self.numbers + self.comparisons


def costs(name: str, *, sizes: tuple[int, ...] = SIZES, timed: bool = True) -> list[Cost]:
    """One cost for each size; the random numbers are seeded, so the counts are reproducible."""
    below = Stream(words_from("pcg64", seed=1)).below
    return [_cost(name, n, below, timed) for n in sizes]


def _cost(name: str, n: int, below: Below, timed: bool) -> Cost:
    counted = _Counting(below)
    # A partial shuffle takes a quarter of the deck, so that its cost grows, too.
    steps = n // 4 if name == "partial" else None
    one, cards = method(name, n=n, steps=steps).one, range(n)
    for _ in range(_COUNTED):
        one(cards, counted.below)
    numbers, comparisons = counted.numbers / _COUNTED, 0.0
    if name == "random-key":
        comparisons = sum(_comparisons(n, below) for _ in range(_COUNTED)) / _COUNTED
    elif name == "random-comparator":
        # Every random number it draws is the result of one comparison.
        numbers, comparisons = 0.0, numbers
    return Cost(n, numbers, comparisons, _seconds(one, cards, below) if timed else 0.0)


class _Counting:
    def __init__(self, below: Below) -> None:
        self.numbers = 0
        self._below = below

    def below(self, bound: int) -> int:
        self.numbers += 1
        return self._below(bound)


def _comparisons(n: int, below: Below) -> int:
    """The number of comparisons of a sort of n random keys."""
    compared = 0

    def compare(a: int, b: int) -> int:
        nonlocal compared
        compared += 1
        return a - b

    sorted((below(1024) * 1024 + below(1024) for _ in range(n)), key=cmp_to_key(compare))
    return compared


def _seconds(one: One, cards: range, below: Below) -> float:
    """Time of one shuffle: the minimum of a few runs, since other load only adds to it."""
    timer, times = Timer(lambda: one(cards, below)), 1
    while timer.timeit(times) < _LEAST_SECONDS:
        times *= 2
    return min(timer.repeat(_ROUNDS, times)) / times


def table(measured: dict[str, list[Cost]]) -> list[str]:
    """Lines of a table with operations and nanoseconds for each card; O(n) methods are constant."""
    sizes = [cost.n for cost in measured[METHODS[0]]]
    numbers = "".join(f"{n:>8}" for n in sizes)
    lines = [
        f"{'':<18}{'numbers and comparisons a card':^{8 * len(sizes)}}  {'last':<6}"
        f"{'nanoseconds a card':^{8 * len(sizes)}}",
        f"{'cards':<18}{numbers}  {'step':<6}{numbers}",
    ]
    for name, row in measured.items():
        operations = "".join(f"{cost.operations / cost.n:>8.2f}" for cost in row)
        times = "".join(f"{cost.seconds / cost.n * 1e9:>8.0f}" for cost in row)
        grows = row[-1].operations / row[-2].operations
        lines.append(f"{name:<18}{operations}  ×{grows:<5.2f}{times}")
    step = sizes[-1] / sizes[-2]
    lines += [
        "",
        f"The last step makes the deck {step:g} times as large. A total cost of ×{step:.2f} is "
        "O(n), constant for each card;",
        "a greater one, rising by the same amount a card with every step, is O(n log n); ×1.00 is "
        "independent of the deck.",
    ]
    return lines
