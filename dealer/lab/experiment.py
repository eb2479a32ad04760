"""Many shuffles of one method or of played tables, and what is counted over them.

A *sample* is the part of one shuffle that is tested: the cards of k places. For a full shuffle
these are all n places from the bottom up, for a partial one the top k places from the top down, in
the order in which they were chosen. The *pattern* of a sample is its relative order, a permutation
of 0…k−1; for a full shuffle it is the sample itself. The size of the counts does not depend on the
number of shuffles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dealer.game.shuffle import full
from dealer.lab.shuffles import Decks, Method, NumberSource, method, number_source, ordered
from dealer.proof.verify import Swap

Step = Callable[[int, int], None]
Samples = NDArray[np.uint16]
Counts = NDArray[np.int64]

ORDERS_MAX = 5040
CARDS_AT_ONCE = 1 << 19


class Tally:
    """Counts over samples of `k` of `n` cards.

    `cells[place, card]`; `orders[rank]` in lexicographic order, or None if there are more than 7!
    orders.
    """

    def __init__(self, *, n: int, k: int) -> None:
        self.n = n
        self.k = k
        self.shuffles = 0
        self.cells: Counts = np.zeros((k, n), dtype=np.int64)
        possible = math.perm(n, k)
        counted = possible <= ORDERS_MAX
        self.orders: Counts | None = np.zeros(possible, dtype=np.int64) if counted else None

    def add(self, samples: Samples) -> None:
        """Add samples, an array of shuffles × k."""
        self.shuffles += len(samples)
        if self.orders is not None:
            self.orders += np.bincount(ranks(samples, self.n), minlength=self.orders.size)
        if not self.k:
            return
        flat = samples + np.arange(self.k) * self.n
        self.cells += np.bincount(flat.ravel(), minlength=self.cells.size).reshape(self.cells.shape)


class Counted:
    """Counts of the samples and of the quotients of consecutive samples.

    The quotient is the permutation that leads from one shuffle to the next. It is uniform if the
    shuffles are uniform and independent.
    """

    def __init__(self, *, n: int, k: int) -> None:
        self.shuffles = Tally(n=n, k=k)
        self.quotients = Tally(n=k, k=k)
        self._last: Samples = np.empty((0, k), dtype=np.uint16)

    def add(self, samples: Samples) -> None:
        """Add the next samples, an array of shuffles × k, in chronological order."""
        self.shuffles.add(samples)
        row = np.concatenate((self._last, samples))
        found = patterns(row) if self.shuffles.k < self.shuffles.n else row
        self.quotients.add(np.take_along_axis(inverses(found[:-1]), found[1:], axis=1))
        self._last = row[-1:]


def patterns(samples: Samples) -> Samples:
    """The pattern of each sample: every card replaced by the number of smaller cards in it."""
    return inverses(samples.argsort(axis=1))


def inverses(orders: NDArray[np.integer]) -> Samples:
    """The inverse permutations: entry c of row r is the place of card c in that row."""
    result = np.empty(orders.shape, dtype=np.uint16)
    places = np.broadcast_to(np.arange(orders.shape[1], dtype=np.uint16), orders.shape)
    np.put_along_axis(result, orders.astype(np.intp), places, axis=1)
    return result


def ranks(samples: Samples, n: int) -> NDArray[np.int64]:
    """The lexicographic rank of each sample among all ordered samples of `n` cards."""
    result = np.zeros(len(samples), dtype=np.int64)
    for place in range(samples.shape[1]):
        card = samples[:, place]
        less_before = (samples[:, :place] < card[:, None]).sum(axis=1)
        result = result * (n - place) + card - less_before
    return result


def run(
    method: Method, numbers: NumberSource, *, shuffles: int, step: Step | None = None
) -> Counted:
    """Counts over that many shuffles of an ordered deck; `step(done, shuffles)` says how far."""
    counted = Counted(n=method.n, k=method.sample)
    at_once = max(1, CARDS_AT_ONCE // max(method.n, 1))
    for done in range(0, shuffles, at_once):
        count = min(at_once, shuffles - done)
        numbers.begin(count)
        decks = method.shuffle(ordered(count, method.n), numbers)
        counted.add(sample(decks, method.sample))
        if step is not None:
            step(done + count, shuffles)
    return counted


def tally(
    shuffle: str = "backward",
    *,
    n: int = 52,
    shuffles: int = 100_000,
    source: str = "system",
    seed: int | None = None,
    steps: int | None = None,
) -> Tally:
    """What `dealer lab run` counts, for a notebook: `cells[place, card]`, and the `orders`.

    `shuffle` is one of `shuffles.METHODS`, `source` one of `shuffles.SOURCES`; the others are as
    the flags of the command. ConfigurationError for a name or a number that there is not.
    """
    chosen = method(shuffle, n=n, steps=steps)
    return run(chosen, number_source(source, n=n, seed=seed), shuffles=shuffles).shuffles


def sample(decks: Decks, k: int) -> Samples:
    """All places from the bottom up if `k` is all of them, else the top `k` from the top down."""
    return decks if k == decks.shape[1] else decks[:, ::-1][:, :k]


class Kind(NamedTuple):
    """What shuffles must have in common to be counted together."""

    n: int
    algorithm: str
    steps: int

    @property
    def sample(self) -> int:
        return self.n if self.steps == full(self.n) else self.steps


def shuffles_of(
    lines: Iterable[str | bytes], swaps: Iterable[Swap]
) -> Iterator[tuple[Kind, Samples]]:
    """Every shuffle of the closed rounds of a bundle as one sample (1 × k), in order.

    `lines` are a verified bundle's, `swaps` what the verifier recomputed. A card is
    identified by its place at the start of the shuffle.
    """
    taken: dict[tuple[int, int], list[Swap]] = {}
    for swap in swaps:
        taken.setdefault((swap.round, swap.shuffle_index), []).append(swap)
    for line in lines:
        leaf = json.loads(line)
        if leaf.get("type") != "ShuffleStarted":
            continue
        public = leaf["public"]
        kind = Kind(public["n"], public["algorithm"], public["steps"])
        steps = taken.get((public["round"], public["k"]), [])
        if kind.steps and len(steps) == kind.steps:
            deck = list(range(kind.n))
            for swap in steps:
                deck[swap.i], deck[swap.j] = deck[swap.j], deck[swap.i]
            yield kind, sample(np.array([deck], dtype=np.uint16), kind.sample)


def counted(shuffles: Iterable[tuple[Kind, Samples]]) -> dict[Kind, Counted]:
    """The counts of each kind of shuffle, the most frequent first."""
    found: dict[Kind, list[Samples]] = {}
    for kind, shuffle in shuffles:
        found.setdefault(kind, []).append(shuffle)
    result = {}
    for kind, samples in sorted(found.items(), key=lambda item: -len(item[1])):
        result[kind] = Counted(n=kind.n, k=kind.sample)
        result[kind].add(np.concatenate(samples))
    return result
