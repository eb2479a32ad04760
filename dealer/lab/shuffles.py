"""Ten ways to shuffle, each over many decks at once, and the random numbers that they take.

All sources of numbers produce 16-bit words: random bytes of the system, tapes, and seeded
generators. Numbers below a bound are derived by rejection sampling as in `dealer.game.tape`: a word
at or above the largest multiple of the bound is rejected.

Five methods are fair, and five are common mistakes. A shuffle takes `decks`, an array of shuffles ×
cards that it may change, and a source of numbers, and returns the shuffled array. Place 0 is the
bottom. Each deck gets its own numbers, in the order in which a shuffle of that deck alone would
draw them: Fisher–Yates makes the same exchanges as `dealer.game.shuffle`.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dealer.errors import ConfigurationError
from dealer.game import tape

Rows = NDArray[np.intp]
Words = NDArray[np.uint16]
MoreWords = Callable[[int], Words]
Decks = NDArray[np.uint16]
Exchange = tuple[int | None, int, int]
"""(i, first, count): place i, or any place if None, and a random one of `count` from `first` on."""

SOURCES = ("system", "tape", "pcg64", "mersenne")
BOUND_MAX = tape.BOUND_MAX
SECRET_BYTES = 416

SAMPLE = 13
"""Steps of a partial shuffle."""

A_THOUSAND = 1000
KEY_BASE, KEY_DIGITS = 1024, 4

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


class NumberSource:
    """Numbers for many shuffles at once, of one stream of words; `words(count)` gives the next."""

    def __init__(self, words: MoreWords) -> None:
        self._stream = words

    def begin(self, shuffles: int) -> None:
        """Start a batch: rows 0…shuffles−1 are new shuffles."""

    def draw(self, bound: int, rows: Rows) -> Rows:
        """A number 0…bound−1 for each of these distinct rows; 1 ≤ bound ≤ 1024."""
        if not 1 <= bound <= BOUND_MAX:
            raise ValueError(f"the bound must be 1 to {BOUND_MAX}, not {bound}")
        limit = tape.WORD_RANGE - tape.WORD_RANGE % bound
        found, left = np.empty(len(rows), dtype=np.intp), np.arange(len(rows))
        while left.size:
            words = self._words(rows[left])
            found[left] = words
            left = left[words >= limit]
        return found % bound

    def _words(self, rows: Rows) -> Words:
        """The next word of each of these rows."""
        return self._stream(len(rows))


class TapeSource(NumberSource):
    """A separate tape for each shuffle, as at a table; shuffle number k, counted from 0.

    All tapes have the same secret, player's nonce and root; only k differs.
    """

    def __init__(self, *, secret: bytes, nonces: Sequence[bytes], root: bytes, n: int) -> None:
        self._tape = partial(tape.words, secret=secret, nonces=nonces, root=root, n=n)
        self._k = 0

    def begin(self, shuffles: int) -> None:
        self._tapes = [self._tape(k=k) for k in range(self._k, self._k + shuffles)]
        self._k += shuffles

    def _words(self, rows: Rows) -> Words:
        tapes = self._tapes
        return np.fromiter((next(tapes[row]) for row in rows.tolist()), np.uint16, len(rows))


def number_source(source: str, *, n: int, seed: int | None = None) -> NumberSource:
    """The named source of SOURCES for decks of `n` cards; `seed` is not allowed for `system`."""
    if source == "tape":
        return TapeSource(**_tape_parts(seed), n=n)
    return NumberSource(words(source, seed=seed))


def words(source: str, *, seed: int | None = None) -> MoreWords:
    """The stream of words of the named source, which is not `tape`."""
    if source == "system":
        if seed is not None:
            raise ConfigurationError("The source system takes no seed; name another source.")
        return lambda count: np.frombuffer(os.urandom(2 * count), np.uint16)
    if source == "pcg64":
        bits = np.random.PCG64(seed or 0)
        return lambda count: bits.random_raw(-(-count // 4)).view(np.uint16)[:count]
    if source == "mersenne":
        engine = random.Random(seed or 0)
        return lambda count: np.frombuffer(engine.randbytes(2 * count), np.uint16)
    raise ConfigurationError(f"There is no source {source!r}; use one of {', '.join(SOURCES)}.")


def _tape_parts(seed: int | None) -> dict[str, Any]:
    """Secret, one nonce and root of a tape: random, or derived from a seed to be reproducible."""
    size, text = SECRET_BYTES + 64, str(seed).encode()
    data = os.urandom(size) if seed is None else hashlib.shake_256(text).digest(size)
    secret, nonce, root = data[:SECRET_BYTES], data[SECRET_BYTES : SECRET_BYTES + 32], data[-32:]
    return {"secret": secret, "nonces": [nonce], "root": root}


class Method(NamedTuple):
    """One method for decks of `n` cards.

    `sample` is the number of places, from the top down, that are tested: all n except for a partial
    shuffle. `steps` is for `partial` and `transpositions`.
    """

    name: str
    n: int
    fair: bool
    sentence: str
    sample: int
    steps: int

    def shuffle(self, decks: Decks, numbers: NumberSource) -> Decks:
        if self.name == "random-key":
            return random_key(decks, numbers)
        if self.name == "visited-set":
            return visited_set(decks, numbers)
        if self.name == "random-comparator":
            return random_comparator(decks, numbers)
        rows = np.arange(len(decks))
        for i, first, count in exchanges(self.name, self.n, self.steps):
            place = numbers.draw(self.n, rows) if i is None else i
            other = first + numbers.draw(count, rows)
            held = decks[rows, other]
            decks[rows, other] = decks[rows, place]
            decks[rows, place] = held
        return decks


def method(name: str, *, n: int, steps: int | None = None) -> Method:
    """The method of that name over `n` cards; ConfigurationError if there is none."""
    if name not in METHODS:
        raise ConfigurationError(f"There is no shuffle {name!r}; there are {', '.join(METHODS)}.")
    if not 0 <= n <= BOUND_MAX:
        raise ConfigurationError(f"A deck has 0 to {BOUND_MAX} cards, not {n}.")
    most, sentence = max(n - 1, 0), (_FAIR | _WRONG)[name]
    if name == "partial":
        taken = min(SAMPLE, most) if steps is None else steps
        if not 0 <= taken <= most:
            raise ConfigurationError(
                f"A partial shuffle of {n} cards has 0 to {most} steps, not {steps}."
            )
        return Method(name, n, True, sentence, n if taken == most else taken, taken)
    if name == "transpositions":
        if steps is not None:
            sentence = f"{steps} times any place exchanged with any"
        return Method(name, n, False, sentence, n, A_THOUSAND if steps is None else steps)
    if steps is not None:
        raise ConfigurationError(f"How many steps {name} takes is not a choice.")
    return Method(name, n, name in _FAIR, sentence, n, most)


def exchanges(name: str, n: int, steps: int) -> Sequence[Exchange]:
    """The exchanges of a method that consists of them, in their order."""
    if name in ("backward", "partial"):
        return [(i, 0, i + 1) for i in range(n - 1, n - 1 - steps, -1)]
    if name == "forward":
        return [(i, i, n - i) for i in range(n - 1)]
    if name == "swap-any":  # n^n equally likely ways, which are not a multiple of n! orders
        return [(i, 0, n) for i in range(n)]
    if name == "swap-any-but-last":  # the same with an off-by-one error
        return [(i, 0, n - 1) for i in range(n if n > 1 else 0)]
    if name == "sattolo":
        # i in place of i + 1: only (n−1)! orders are possible. S. Sattolo, 1986, for random cycles.
        return [(i, 0, i) for i in range(n - 1, 0, -1)]
    # Approaches fairness and never reaches it: the bias falls as (1 − 2/n)^steps (P. Diaconis and
    # M. Shahshahani, 1981).
    return [(None, 0, n)] * (steps if n > 1 else 0)


def ordered(shuffles: int, n: int) -> Decks:
    """`shuffles` decks in their first order, card c at place c."""
    return np.tile(np.arange(n, dtype=np.uint16), (shuffles, 1))


def random_key(
    decks: Decks, numbers: NumberSource, *, base: int = KEY_BASE, digits: int = KEY_DIGITS
) -> Decks:
    """Sort by a random key for each card, `digits` digits below `base`, in O(n log n).

    If two keys are equal all are drawn again: a stable sort would favour the old order of a pair.
    """
    n = decks.shape[1]
    keys = np.zeros(decks.shape, dtype=np.int64)
    rows = np.arange(len(decks) if n else 0)
    while rows.size:
        drawn = np.zeros((len(rows), n), dtype=np.int64)
        for place in range(n):
            for _ in range(digits):
                drawn[:, place] = drawn[:, place] * base + numbers.draw(base, rows)
        keys[rows] = drawn
        drawn.sort(axis=1)
        rows = rows[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    return np.take_along_axis(decks, keys.argsort(axis=1), axis=1)


def visited_set(decks: Decks, numbers: NumberSource) -> Decks:
    """Draw random places and skip those taken before; needs n·(1 + 1/2 + … + 1/n) numbers."""
    n = decks.shape[1]
    visited = np.zeros(decks.shape, dtype=bool)
    taken, count = np.empty_like(decks), np.zeros(len(decks), dtype=np.intp)
    rows = np.arange(len(decks) if n else 0)
    while rows.size:
        place = numbers.draw(n, rows)
        new = ~visited[rows, place]
        row, place = rows[new], place[new]
        visited[row, place] = True
        taken[row, count[row]] = decks[row, place]
        count[row] += 1
        rows = rows[count[rows] < n]
    return taken


def random_comparator(decks: Decks, numbers: NumberSource) -> Decks:
    """Sort with a comparator that returns a random result.

    The sort is TimSort as in JavaScript's V8 and in Python before 3.13 for less than 64 cards: an
    initial run, reversed if descending, then binary insertion of each further card.
    """
    n = decks.shape[1]
    if n < 2:
        return decks
    rows, places = np.arange(len(decks)), np.arange(n)
    falling, run = numbers.draw(2, rows) == 1, np.full(len(decks), 2)
    for _ in range(2, n):
        rows = rows[(numbers.draw(2, rows) == 1) == falling[rows]]
        run[rows] += 1
    turned = falling[:, None] & (places < run[:, None])
    decks = np.take_along_axis(decks, np.where(turned, run[:, None] - 1 - places, places), axis=1)
    for place in range(2, n):
        rows = np.flatnonzero(run <= place)
        low = _searched(place, rows, numbers)[:, None]
        # Those above make room: the card of `place` lies at `low`, the others one place higher.
        upto = places[: place + 1]
        moved = np.where(upto < low, upto, np.where(upto == low, place, upto - 1))
        decks[rows, : place + 1] = np.take_along_axis(decks[rows, : place + 1], moved, axis=1)
    return decks


def _searched(place: int, rows: Rows, numbers: NumberSource) -> Rows:
    """Where in 0…place the coin puts the card of `place`, for each of the rows."""
    low, high = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), place)
    while (undecided := np.flatnonzero(low < high)).size:
        middle = (low[undecided] + high[undecided]) // 2
        less = numbers.draw(2, rows[undecided]) == 1
        high[undecided] = np.where(less, middle, high[undecided])
        low[undecided] = np.where(less, low[undecided], middle + 1)
    return low
