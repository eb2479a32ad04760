"""Swarm testing: plans that have only some of the commands and faults.

Where every plan has everything, long sequences of one kind are rare, and what one command undoes
another never shows. (Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, 2012.)
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

NEEDED = ("round_open", "shuffle")
"""Without these most other commands are refused."""


def subset(weights: Mapping[str, float], random: Random, *, keep: float) -> dict[str, float]:
    """Some of these, each with the probability `keep`, with new weights; never none."""
    kept = [name for name in weights if name in NEEDED or random.random() < keep]
    kept = kept or [random.choice(list(weights))]
    return {name: weights[name] * random.choice((0.3, 1.0, 5.0)) for name in kept}
