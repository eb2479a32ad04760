"""Random numbers for experiments: from the system, from tapes, or from a seeded generator.

All sources produce 16-bit words. Numbers below a bound are derived by rejection sampling as in
`dealer.game.tape`: a word at or above the largest multiple of the bound is rejected.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dealer.errors import ConfigurationError
from dealer.game import tape

Rows = NDArray[np.intp]
Words = NDArray[np.uint16]
MoreWords = Callable[[int], Words]

SOURCES = ("system", "tape", "pcg64", "mersenne")
BOUND_MAX = tape.BOUND_MAX
SECRET_BYTES = 416


class NumberSource:
    """Numbers for many shuffles at once."""

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
        raise NotImplementedError


class Stream(NumberSource):
    """One infinite stream of words for all shuffles; `more(count)` returns the next words."""

    def __init__(self, more: MoreWords) -> None:
        self._more = more

    def _words(self, rows: Rows) -> Words:
        return self._more(len(rows))


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
    return Stream(words_from(source, seed=seed))


def words_from(source: str, *, seed: int | None = None) -> MoreWords:
    """The infinite words of a source; for `tape`, of one tape over 52 cards."""
    if source == "tape":
        one = tape.words(**_tape_parts(seed), k=0, n=52)
        return lambda count: np.fromiter(islice(one, count), np.uint16, count)
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
