"""The list of all shuffle methods with their names, fairness and descriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial as bound
from typing import Any

from dealer.errors import ConfigurationError
from dealer.game.shuffle import Below
from dealer.lab import shuffles, vectorised
from dealer.lab.sources import BOUND_MAX, NumberSource
from dealer.lab.vectorised import Decks

SAMPLE = 13


@dataclass(frozen=True, slots=True)
class Method:
    """One method for decks of `n` cards.

    `one` shuffles a single deck with a `below` function, `many` an array of decks with a
    NumberSource. `sample` is the number of places, from the top down, that are tested: all n except
    for a partial shuffle.
    """

    name: str
    n: int
    fair: bool
    sentence: str
    sample: int
    one: Callable[[Sequence[Any], Below], list[Any]]
    many: Callable[[Decks, NumberSource], Decks]


_FAIR = {
    "backward": "Fisher–Yates from the top down, the house's own",
    "forward": "Fisher–Yates from the bottom up",
    "partial": "Fisher–Yates that stops early: the top places are a fair sample",
    "random-key": "sorted by a random number for each card",
    "visited-set": "any card not yet taken, until all are",
}
_WRONG = {
    "swap-any": "each place exchanged with any place",
    "swap-any-but-last": "each place exchanged with any but the last",
    "random-comparator": "sorted by a comparison that tosses a coin",
    "transpositions": "a thousand times any place exchanged with any",
    "sattolo": "Fisher–Yates that never leaves a card where it is",
}
METHODS = (*_FAIR, *_WRONG)


def method(name: str, *, n: int, steps: int | None = None) -> Method:
    """The method of that name over `n` cards; `steps` is for `partial` and `transpositions`."""
    if name not in METHODS:
        raise ConfigurationError(f"There is no shuffle {name!r}; there are {', '.join(METHODS)}.")
    if not 0 <= n <= BOUND_MAX:
        raise ConfigurationError(f"A deck has 0 to {BOUND_MAX} cards, not {n}.")
    options, sample = {}, n
    if name == "partial":
        most = max(n - 1, 0)
        options["steps"] = min(SAMPLE, most) if steps is None else steps
        if not 0 <= options["steps"] <= most:
            raise ConfigurationError(
                f"A partial shuffle of {n} cards has 0 to {most} steps, not {steps}."
            )
        sample = n if options["steps"] == most else options["steps"]
    elif name == "transpositions":
        options["steps"] = shuffles.A_THOUSAND if steps is None else steps
    elif steps is not None:
        raise ConfigurationError(f"How many steps {name} takes is not a choice.")
    function = name.replace("-", "_")
    sentence = (_FAIR | _WRONG)[name]
    if name == "transpositions" and steps is not None:
        sentence = f"{steps} times any place exchanged with any"
    return Method(
        name=name,
        n=n,
        fair=name in _FAIR,
        sentence=sentence,
        sample=sample,
        one=bound(getattr(shuffles, function), **options),
        many=bound(getattr(vectorised, function), **options),
    )
