"""Numbers from the system, a tape or an engine: each number below a bound is equally frequent."""

from __future__ import annotations

import io
import random
import re
import secrets
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dealer.errors import ConfigurationError
from dealer.game import shuffle, tape
from dealer.lab import shuffles
from dealer.lab.shuffles import (
    SECRET_BYTES,
    SOURCES,
    NumberSource,
    TapeSource,
    method,
    number_source,
    ordered,
    words,
)

PARTS: dict[str, Any] = {"secret": b"s" * 64, "nonces": [b"n" * 32], "root": b"r" * 32}


def written(words):
    """A source of exactly these words."""
    left = iter(words)
    return lambda count: np.fromiter(islice(left, count), np.uint16)


@pytest.mark.parametrize("bound", [1, 2, 3, 52, 104, 416, 1000, 1024])
def test_all_words_give_all_numbers_equally_often(bound):
    accepted = 65536 - 65536 % bound
    source = NumberSource(written(range(65536)))
    numbers = source.draw(bound, np.arange(accepted))
    assert np.bincount(numbers, minlength=bound).tolist() == [accepted // bound] * bound


def test_a_rejected_word_is_skipped_as_by_the_tape():
    limit = 65536 - 65536 % 52
    words = [limit, 7, limit + 1, 65535, limit - 1, 53]
    assert NumberSource(written(words)).draw(52, np.arange(3)).tolist() == [1, 7, 51]


@pytest.mark.parametrize("bound", [0, 1025])
def test_a_bound_outside_the_range_is_an_error(bound):
    source = number_source("pcg64", n=52)
    assert isinstance(source, NumberSource)
    with pytest.raises(ValueError, match="bound"):
        source.draw(bound, np.arange(1))


@pytest.mark.parametrize("n", [5, 52, 416])
def test_each_shuffle_has_the_tape_of_a_real_table(n):
    source = TapeSource(**PARTS, n=n)
    decks = []
    one = method("backward", n=n)
    for count in (3, 2):
        source.begin(count)
        decks += one.shuffle(ordered(count, n), source).tolist()
    for k, deck in enumerate(decks):
        tape_k = tape.Tape(secret=b"s" * 64, nonces=[b"n" * 32], root=b"r" * 32, k=k, n=n)
        assert deck == shuffle.shuffled(range(n), tape_k.below)


def test_tapes_continue_after_a_segment_and_are_independent():
    source = TapeSource(**PARTS, n=52)
    source.begin(2)
    taken = [int(source.draw(1000, np.array([1]))[0]) for _ in range(600)]
    other = tape.Tape(secret=b"s" * 64, nonces=[b"n" * 32], root=b"r" * 32, k=1, n=52)
    assert taken == [other.below(1000) for _ in range(600)]
    assert other.refused
    first = tape.Tape(secret=b"s" * 64, nonces=[b"n" * 32], root=b"r" * 32, k=0, n=52)
    assert source.draw(1000, np.array([0])).tolist() == [first.below(1000)]


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "system"])
def test_a_seed_determines_the_numbers(source):
    def numbers(seed):
        seeded = number_source(source, n=52, seed=seed)
        seeded.begin(100)
        return seeded.draw(1024, np.arange(100)).tolist()

    assert numbers(7) == numbers(7)
    assert numbers(7) != numbers(8)
    if source != "tape":
        assert words(source, seed=7)(9).tolist() == words(source, seed=7)(9).tolist()


def test_without_a_seed_the_numbers_are_new():
    assert words("system")(64).tolist() != words("system")(64).tolist()


def test_the_mersenne_twister_is_that_of_python():
    data = random.Random(4).randbytes(40)
    assert words("mersenne", seed=4)(20).tobytes() == data


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "tape"])
def test_a_source_gives_the_requested_number_of_words(source):
    more = words(source)
    assert [len(more(count)) for count in (1, 2, 3, 4, 5, 64, 0)] == [1, 2, 3, 4, 5, 64, 0]


def test_missing_tables_are_reported():
    with pytest.raises(ConfigurationError, match="no source"):
        number_source("clock", n=52)
    with pytest.raises(ConfigurationError, match="no seed"):
        number_source("system", n=52, seed=1)


def test_the_secret_is_long_enough_for_every_order_of_the_largest_shoe():
    assert SECRET_BYTES == 416


def test_the_words_for_other_suites_are_a_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of README.md, whose reader leaves after two blocks."""

    class Reader(io.BytesIO):
        def write(self, data: Any) -> int:
            if len(self.getvalue()) >= 2 * len(data):
                raise BrokenPipeError
            return super().write(data)

    read, closed = Reader(), io.StringIO()
    monkeypatch.setattr(secrets, "token_bytes", bytes)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=read))
    monkeypatch.setattr(sys, "stderr", closed)
    document = (Path(shuffles.__file__).parent / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(import secrets\n.*?)```", document, re.DOTALL)
    exec(program, {})
    one = tape.words(secret=bytes(64), nonces=[bytes(32)], root=bytes(32), k=0, n=52)
    assert read.getvalue() == b"".join(next(one).to_bytes(2, "big") for _ in range(8192))
    assert closed.closed
