"""The tape's words, and numbers below a bound that are exactly uniform."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from dealer.game.tape import BOUND_MAX, SEGMENT_WORDS, WORD_RANGE, Tape, words

BYTES_32 = st.binary(min_size=32, max_size=32)


def entropy(vector):
    return {
        "secret": bytes.fromhex(vector["secret"]),
        "nonces": [bytes.fromhex(nonce) for nonce in vector["nonces"]],
        "root": bytes.fromhex(vector["root"]),
        "k": vector["k"],
        "n": vector["n"],
    }


def fed(source) -> Tape:
    """A tape with these words."""
    tape = Tape(secret=b"", nonces=[], root=b"", k=0, n=0)
    tape._next = iter(source).__next__
    return tape


def segment(*, secret, nonces, root, k, n, s):
    """One segment of the tape, computed with the `cryptography` library: HKDF of RFC 5869."""
    ikm = b"".join(struct.pack(">I", len(part)) + part for part in (secret, *nonces))
    salt = root + struct.pack(">III", k, n, s)
    key = HKDF(algorithm=SHA512(), length=64, salt=salt, info=b"dealer/v1/shuffle\0").derive(ikm)
    return list(struct.unpack(">32H", key))


def test_the_golden_tapes_have_the_same_words(vectors):
    for name, given_, out in vectors("tape"):
        tape = words(**entropy(given_))
        assert list(itertools.islice(tape, given_["count"])) == out["words"], name


@given(
    secret=st.binary(min_size=32, max_size=64),
    nonces=st.lists(BYTES_32, max_size=3),
    root=BYTES_32,
    k=st.integers(0, 2**32 - 1),
    n=st.integers(1, BOUND_MAX),
)
def test_every_segment_is_one_call_of_hkdf(secret, nonces, root, k, n):
    drawn = list(itertools.islice(words(secret=secret, nonces=nonces, root=root, k=k, n=n), 96))
    expected = [segment(secret=secret, nonces=nonces, root=root, k=k, n=n, s=s) for s in range(3)]
    assert drawn == list(itertools.chain.from_iterable(expected))


def test_different_inputs_give_different_tapes():
    """The boundary between secret and nonces is part of the input."""
    base: dict[str, Any] = {
        "secret": b"S" * 32,
        "nonces": [b"r" * 32],
        "root": b"R" * 32,
        "k": 1,
        "n": 52,
    }
    others: list[dict[str, Any]] = [
        {"secret": b"S" * 31},
        {"nonces": []},
        {"nonces": [b"r" * 31, b"r"]},
        {"nonces": [b"r" * 32, b"q" * 32]},
        {"nonces": [b"q" * 32, b"r" * 32]},
        {"secret": b"S" * 32 + b"r" * 32, "nonces": []},
        {"root": b"Q" * 32},
        {"k": 2},
        {"n": 53},
    ]
    tapes = {tuple(itertools.islice(words(**(base | other)), 8)) for other in [{}, *others]}
    assert len(tapes) == 1 + len(others)


@pytest.mark.parametrize("bound", [*range(2, 65), 104, 416, 1000, 1023, 1024])
def test_all_words_give_every_number_equally_often(bound):
    """Of all words 0…65535, the accepted ones give each number 0…bound−1 equally often."""
    refused = WORD_RANGE % bound
    tape = fed(range(WORD_RANGE))
    accepted = [tape.below(bound) for _ in range(WORD_RANGE - refused)]
    assert accepted == list(range(bound)) * (WORD_RANGE // bound)
    with pytest.raises(StopIteration):
        tape.below(bound)
    assert tape.refused == refused
    assert tape.read == list(range(WORD_RANGE))


def test_every_bound_is_exactly_uniform():
    """All bounds 2…1024: `below` is called with the words at the limits of the accepted range.

    Between them its result is w mod b, and all words are counted by their remainder.
    """
    for bound in range(2, BOUND_MAX + 1):
        refused = WORD_RANGE % bound
        limit = WORD_RANGE - refused
        assert {len(range(rest, limit, bound)) for rest in range(bound)} == {limit // bound}

        edges = [*range(bound + 1), *range(limit - bound, limit)]
        tape = fed(edges)
        assert [tape.below(bound) for _ in edges] == [word % bound for word in edges]
        assert tape.refused == 0

        tape = fed([*range(limit, WORD_RANGE), bound - 1])
        assert tape.below(bound) == bound - 1
        assert tape.refused == refused
        assert len(tape.read) == refused + 1


def test_a_bound_of_one_takes_a_word():
    tape = fed([65535, 7])
    assert tape.below(1) == 0
    assert tape.read == [65535]


@pytest.mark.parametrize("bound", [-1, 0, 1025])
def test_other_bounds_are_errors(bound):
    tape = fed([1])
    with pytest.raises(ValueError, match="the bound must be 1 to 1024"):
        tape.below(bound)
    assert tape.read == []


def test_a_rejected_last_word_of_a_segment_is_skipped():
    """The first word of the next segment is used, and no other word is skipped."""
    inputs: dict[str, Any] = {
        "secret": b"S" * 64,
        "nonces": [b"r" * 32],
        "root": b"R" * 32,
        "n": 700,
    }
    limit = WORD_RANGE - WORD_RANGE % 700
    k = next(k for k in itertools.count() if segment(**inputs, k=k, s=0)[-1] >= limit)
    row = segment(**inputs, k=k, s=0) + segment(**inputs, k=k, s=1)

    tape = Tape(**inputs, k=k)
    for _ in range(SEGMENT_WORDS - 1):
        tape.below(1)
    assert tape.below(700) == next(word for word in row[SEGMENT_WORDS:] if word < limit) % 700
    assert tape.refused == len(tape.read) - SEGMENT_WORDS
    assert tape.refused >= 1
    assert tape.read == row[: len(tape.read)]
