"""The shuffles of games that were really played, taken out of their verified logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dealer.game.shuffle import full
from dealer.lab.experiment import sample
from dealer.lab.tally import Counted, Samples
from dealer.proof.verify import Swap


class Kind(NamedTuple):
    """Shuffles that can be counted together."""

    n: int
    algorithm: str
    steps: int

    @property
    def sample(self) -> int:
        return self.n if self.steps == full(self.n) else self.steps


def shuffles_of(
    lines: Iterable[str | bytes], swaps: Iterable[Swap]
) -> Iterator[tuple[Kind, Samples]]:
    """Every shuffle of a bundle whose round is closed, as one sample (1 × k), in their order.

    `lines` are the bundle's, verified, and `swaps` those that the verifier recomputed. A card
    counts as the place where it lay when the shuffle began.
    """
    taken: dict[tuple[int, int], list[Swap]] = {}
    for swap in swaps:
        taken.setdefault((swap.round, swap.k), []).append(swap)
    for line in lines:
        leaf = json.loads(line)
        if leaf.get("type") != "ShuffleStarted":
            continue
        public = leaf["public"]
        kind = Kind(public["n"], public["algorithm"], public["steps"])
        steps = taken.get((public["round"], public["k"]), [])
        if kind.steps and len(steps) == kind.steps:
            yield kind, sample(_deck(kind.n, steps), kind.sample)


def _deck(n: int, steps: Iterable[Swap]) -> Samples:
    cards = list(range(n))
    for swap in steps:
        cards[swap.i], cards[swap.j] = cards[swap.j], cards[swap.i]
    return np.array([cards], dtype=np.uint16)


def counted(shuffles: Iterable[tuple[Kind, Samples]]) -> dict[Kind, Counted]:
    """The counts of each kind, the most frequent first."""
    found: dict[Kind, list[Samples]] = {}
    for kind, one in shuffles:
        found.setdefault(kind, []).append(one)
    result = {}
    for kind, samples in sorted(found.items(), key=lambda item: -len(item[1])):
        result[kind] = Counted(n=kind.n, k=kind.sample)
        result[kind].add(np.concatenate(samples))
    return result
