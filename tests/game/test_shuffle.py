"""Fisher–Yates in three forms: the golden shuffles, and the count of every order."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from dealer.game.shuffle import (
    backward,
    forward,
    full,
    shuffle,
    shuffled,
    steps_of,
)
from dealer.game.tape import Tape


def answers(chosen):
    """A source that gives these numbers, and checks that each is below the requested bound."""
    left = iter(chosen)

    def below(bound):
        number = next(left)
        assert 0 <= number < bound
        return number

    return below


def all_answers(bounds):
    return itertools.product(*(range(bound) for bound in bounds))


def shuffled_by(n, steps):
    cards = list(range(n))
    for _, i, j in steps:
        cards[i], cards[j] = cards[j], cards[i]
    return tuple(cards)


def test_the_golden_shuffles_have_the_same_swaps(vectors):
    for name, given, out in vectors("shuffle"):
        tape = Tape(
            secret=bytes.fromhex(given["secret"]),
            nonces=[bytes.fromhex(nonce) for nonce in given["nonces"]],
            root=bytes.fromhex(given["root"]),
            k=given["k"],
            n=given["n"],
        )
        n = given["n"]
        steps = list(steps_of(given["algorithm"], n=n, steps=given["steps"], below=tape.below))
        assert [step for step, _, _ in steps] == list(range(given["steps"])), name
        assert [[i, j] for _, i, j in steps] == out["swaps"], name
        assert list(shuffled_by(n, steps)) == out["order"], name
        assert tape.read == out["words"], name
        assert tape.refused == out["rejected"], name


@pytest.mark.parametrize("n", range(6))
def test_backward_reaches_every_order_once(n):
    ways = [
        shuffled_by(n, backward(n, full(n), answers(chosen)))
        for chosen in all_answers(range(n, 1, -1))
    ]
    assert len(ways) == math.factorial(n)
    assert Counter(ways) == Counter(itertools.permutations(range(n)))


@pytest.mark.parametrize("n", range(6))
def test_forward_reaches_every_order_once(n):
    ways = [shuffled_by(n, forward(n, answers(chosen))) for chosen in all_answers(range(n, 1, -1))]
    assert Counter(ways) == Counter(itertools.permutations(range(n)))


@pytest.mark.parametrize(
    ("n", "steps"), [(n, steps) for n in range(6) for steps in range(full(n) + 1)]
)
def test_a_partial_shuffle_samples_its_top_places_uniformly(n, steps):
    tops = Counter(
        shuffled_by(n, backward(n, steps, answers(chosen)))[n - steps :]
        for chosen in all_answers(range(n, n - steps, -1))
    )
    assert tops == Counter(itertools.permutations(range(n), steps))


def test_steps_are_the_exchanged_places():
    assert list(backward(4, 3, answers([1, 2, 0]))) == [(0, 3, 1), (1, 2, 2), (2, 1, 0)]
    assert list(forward(4, answers([1, 2, 0]))) == [(0, 0, 1), (1, 1, 3), (2, 2, 2)]


@pytest.mark.parametrize("n", [0, 1])
def test_decks_of_0_and_1_cards_need_no_number(n):
    cards = list("x" * n)
    shuffle(cards, answers([]))
    assert cards == list("x" * n)
    assert shuffled(cards, answers([])) == cards
    assert list(forward(n, answers([]))) == []


def test_in_place_and_copy_agree():
    cards = list("abcd")
    copy = shuffled(cards, answers([0, 0, 0]))
    assert cards == list("abcd")
    shuffle(cards, answers([0, 0, 0]))
    assert cards == copy == list("bcda")
    assert shuffled("abcd", answers([0, 0, 0])) == copy


@pytest.mark.parametrize(
    ("algorithm", "n", "steps"),
    [("backward", 4, 4), ("backward", 4, -1), ("forward", 4, 2), ("sideways", 4, 3)],
)
def test_a_shuffle_that_does_not_exist_is_an_error(algorithm, n, steps):
    with pytest.raises(ValueError, match="steps"):
        list(steps_of(algorithm, n=n, steps=steps, below=answers([0] * 9)))
