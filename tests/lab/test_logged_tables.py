"""Shuffles of real tables: the swaps of a verified log are repeated and counted."""

from __future__ import annotations

import json

import numpy as np

from dealer.game.shuffle import steps_of
from dealer.game.tape import Tape
from dealer.lab.experiment import Kind, counted, shuffles_of
from dealer.proof.verify import Swap


def log(*shuffles):
    """Lines and swaps of shuffles (round, k, n, algorithm, steps), as a verifier gives them."""
    lines, swaps = ['{"bundle":"dealer/v1"}'], []
    for number, k, n, algorithm, steps in shuffles:
        public = {"round": number, "k": k, "n": n, "algorithm": algorithm, "steps": steps}
        lines.append(json.dumps({"type": "ShuffleStarted", "public": public | {"stack": "deck"}}))
        lines.append(json.dumps({"type": "EntropyClosed", "public": {"round": number, "k": k}}))
        below = tape(number, k, n).below
        for step, i, j in steps_of(algorithm, n=n, steps=steps, below=below):
            swaps.append(Swap(0, number, k, step, i, j, (), ("", "")))
    lines.append('{"checkpoint":"…"}')
    return lines, swaps


def tape(number, k, n):
    return Tape(secret=bytes([number]) * 32, nonces=[], root=b"", k=k, n=n)


def shuffled(number, k, n, algorithm, steps):
    cards = list(range(n))
    for _, i, j in steps_of(algorithm, n=n, steps=steps, below=tape(number, k, n).below):
        cards[i], cards[j] = cards[j], cards[i]
    return cards


def test_each_shuffle_of_the_log_is_repeated():
    played = [
        (1, 0, 52, "backward", 51),
        (1, 1, 20, "backward", 19),
        (2, 0, 52, "forward", 51),
        (2, 1, 9, "backward", 3),
    ]
    found = list(shuffles_of(*log(*played)))
    assert [kind for kind, _ in found] == [Kind(*one[2:]) for one in played]
    for one, (_, sample) in zip(played[:3], found, strict=False):
        assert sample.tolist() == [shuffled(*one)]
    assert found[3][1].tolist() == [shuffled(*played[3])[:-4:-1]]


def test_voided_and_open_shuffles_are_not_counted():
    lines, swaps = log((1, 0, 5, "backward", 4), (1, 1, 5, "backward", 4), (1, 2, 1, "backward", 0))
    swaps = [swap for swap in swaps if swap.shuffle_index == 1][1:]
    assert list(shuffles_of(lines, swaps)) == []
    assert list(shuffles_of(lines, [])) == []


def test_kinds_are_counted_separately_and_in_order():
    rounds = [(number, 0, 5, "backward", 4) for number in range(1, 31)]
    others = [(40, 0, 6, "backward", 2), (41, 0, 5, "forward", 4)]
    result = counted(shuffles_of(*log(*rounds[:10], *others, *rounds[10:])))
    assert next(iter(result)) == Kind(5, "backward", 4)
    assert [counts.shuffles.shuffles for counts in result.values()] == [30, 1, 1]
    whole = result[Kind(5, "backward", 4)]
    decks = np.array([shuffled(*one) for one in rounds])
    assert [int(whole.shuffles.cells[4, card]) for card in range(5)] == [
        int((decks[:, 4] == card).sum()) for card in range(5)
    ]
    assert whole.quotients.shuffles == 29
    assert result[Kind(6, "backward", 2)].shuffles.k == 2
