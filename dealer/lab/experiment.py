"""Shuffle many decks by one method and count the results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dealer.lab.counts import Counted, Samples
from dealer.lab.methods import Method
from dealer.lab.sources import NumberSource
from dealer.lab.vectorised import Decks, ordered

Step = Callable[[int, int], None]

CARDS_AT_ONCE = 1 << 19


def run(
    method: Method,
    numbers: NumberSource,
    *,
    shuffles: int,
    carry: bool = False,
    step: Step | None = None,
) -> Counted:
    """Counts over that many shuffles; `step(done, shuffles)` reports progress.

    Each shuffle starts from an ordered deck or, with `carry`, from the result of the one before.
    With `carry` the orders of nearly every method, biased ones too, converge to uniform, as in a
    random walk; only the quotients of consecutive shuffles then show a bias.
    """
    counted = Counted(n=method.n, k=method.sample)
    at_once = max(1, CARDS_AT_ONCE // max(method.n, 1))
    last = ordered(1, method.n)
    for done in range(0, shuffles, at_once):
        count = min(at_once, shuffles - done)
        numbers.begin(count)
        decks = method.many(ordered(count, method.n), numbers)
        if carry:
            decks = _one_after_another(np.concatenate((last, decks)))[1:]
            last = decks[-1:]
        counted.add(sample(decks, method.sample))
        if step is not None:
            step(done + count, shuffles)
    return counted


def sample(decks: Decks, k: int) -> Samples:
    """All places from the bottom up if `k` is all of them, else the top `k` from the top down."""
    return decks if k == decks.shape[1] else decks[:, ::-1][:, :k]


def _one_after_another(decks: Decks) -> Decks:
    """Row r becomes the composition of rows 0…r, as prefix products in log2 steps."""
    reach = 1
    while reach < len(decks):
        further = np.take_along_axis(decks[:-reach], decks[reach:], axis=1)
        decks = np.concatenate((decks[:reach], further))
        reach *= 2
    return decks
