"""Shuffle a new deck a great many times, and count what comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dealer.lab.many import Decks, ordered
from dealer.lab.methods import Method
from dealer.lab.sources import Dice
from dealer.lab.tally import Counted, Samples

Step = Callable[[int, int], None]

CARDS_AT_ONCE = 1 << 19


def run(
    method: Method, dice: Dice, *, shuffles: int, carry: bool = False, step: Step | None = None
) -> Counted:
    """What is counted over that many shuffles; `step(done, shuffles)` is called now and then.

    Each starts from a deck in order, or with `carry` from where the one before ended. With `carry`
    nearly every method, wrong ones too, gives all orders equally often in the end: it wanders.
    Then only what leads from one shuffle to the next tells them apart.
    """
    counted = Counted(n=method.n, k=method.sample)
    at_once = max(1, CARDS_AT_ONCE // max(method.n, 1))
    last = ordered(1, method.n)
    for done in range(0, shuffles, at_once):
        count = min(at_once, shuffles - done)
        dice.begin(count)
        decks = method.many(ordered(count, method.n), dice)
        if carry:
            decks = _one_after_another(np.concatenate((last, decks)))[1:]
            last = decks[-1:]
        counted.add(sample(decks, method.sample))
        if step is not None:
            step(done + count, shuffles)
    return counted


def sample(decks: Decks, k: int) -> Samples:
    """Of whole decks all places from the bottom; else the top `k`, from the top down."""
    return decks if k == decks.shape[1] else decks[:, ::-1][:, :k]


def _one_after_another(decks: Decks) -> Decks:
    """Deck r shuffled as rows 1…r were, one after another: prefixes, doubled each time."""
    reach = 1
    while reach < len(decks):
        further = np.take_along_axis(decks[:-reach], decks[reach:], axis=1)
        decks = np.concatenate((decks[:reach], further))
        reach *= 2
    return decks
