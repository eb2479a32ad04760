"""Fisher–Yates shuffle as a sequence of swaps, after which every order is equally likely.

R. Durstenfeld, Algorithm 235, CACM 7 (1964); D. Knuth, TAOCP 2, 3.4.2, Algorithm P. The source of
random numbers is a function `below(b)` that returns 0…b−1, each with equal probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence, Sequence
from typing import TypeVar

Below = Callable[[int], int]
Step = tuple[int, int, int]
Card = TypeVar("Card")

ALGORITHMS = ("backward", "forward")


def full(n: int) -> int:
    """The number of steps of a full shuffle of `n` cards: max(n − 1, 0)."""
    return max(n - 1, 0)


def backward(n: int, steps: int, below: Below) -> Iterator[Step]:
    """Steps (step, i, j) from the top down, 0 ≤ j ≤ i = n−1−step.

    With fewer than `full(n)` steps (a partial shuffle) the top `steps` places are a uniform ordered
    sample; the other cards are not shuffled. Raises ValueError for an impossible number of steps.
    """
    if not 0 <= steps <= full(n):
        raise ValueError(f"{n} cards take 0 to {full(n)} steps, not {steps}")
    for step in range(steps):
        i = n - 1 - step
        yield step, i, below(i + 1)


def forward(n: int, below: Below) -> Iterator[Step]:
    """Steps (step, i, j) from the bottom up, i = step ≤ j ≤ n−1; always a full shuffle."""
    for step in range(full(n)):
        yield step, step, step + below(n - step)


def steps_of(algorithm: str, *, n: int, steps: int, below: Below) -> Iterator[Step]:
    """The steps of `algorithm`, `backward` or `forward`, over `n` cards; ValueError for others."""
    if algorithm == "backward":
        return backward(n, steps, below)
    if algorithm == "forward" and steps == full(n):
        return forward(n, below)
    raise ValueError(f"no algorithm {algorithm!r} with {steps} steps over {n} cards")


def shuffle(cards: MutableSequence[Card], below: Below) -> None:
    """Shuffle `cards` in place."""
    for _, i, j in backward(len(cards), full(len(cards)), below):
        cards[i], cards[j] = cards[j], cards[i]


def shuffled(cards: Sequence[Card], below: Below) -> list[Card]:
    """A shuffled copy of `cards`."""
    copy = list(cards)
    shuffle(copy, below)
    return copy
