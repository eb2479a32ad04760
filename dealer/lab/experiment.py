"""Counts of many shuffles: of one method, or of played tables by their verified bundles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dealer.game.shuffle import full
from dealer.lab.counts import Counted, Samples
from dealer.lab.shuffles import Decks, Method, ordered
from dealer.lab.sources import NumberSource
from dealer.proof.verify import Swap

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
        decks = method.shuffle(ordered(count, method.n), numbers)
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

    `lines` are those of a verified bundle, `swaps` those that the verifier recomputed. A card is
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
