"""Shuffles of played tables, extracted from their verified bundles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dealer.game.shuffle import full
from dealer.lab.counts import Counted, Samples
from dealer.lab.experiment import sample
from dealer.lab.shuffles import swapped
from dealer.proof.verify import Swap


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
            deck = swapped(range(kind.n), ((swap.i, swap.j) for swap in steps))
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
