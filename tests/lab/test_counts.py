"""Counts over arrays agree with counts of single decks."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

from dealer.lab import experiment
from dealer.lab.experiment import (
    Counted,
    Tally,
    inverses,
    patterns,
    ranks,
    run,
    sample,
    tally,
)
from dealer.lab.shuffles import METHODS, SOURCES, method, number_source


def decks(n, count, seed=1):
    engine = random.Random(seed)
    return [engine.sample(range(n), n) for _ in range(count)]


def array(rows):
    return np.array(rows, dtype=np.uint16)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 33, 52])
def test_cards_at_each_place(n):
    rows = decks(n, 40)
    tally = Tally(n=n, k=n)
    tally.add(array(rows[:15]))
    tally.add(array(rows[15:]))
    seen = Counter((place, card) for row in rows for place, card in enumerate(row))
    assert {at: int(tally.cells[at]) for at in seen} == seen
    assert tally.cells.sum() == 40 * n
    assert tally.shuffles == 40


@pytest.mark.parametrize(("n", "k"), [(0, 0), (1, 1), (4, 4), (6, 6), (5, 2), (9, 3)])
def test_ranks_are_those_of_a_dictionary(n, k):
    words = list(permutations(range(n), k))
    assert ranks(array(words).reshape(len(words), k), n).tolist() == list(range(len(words)))


def orders(tally: Tally) -> list[int]:
    assert tally.orders is not None
    return tally.orders.tolist()


def test_orders_are_counted_up_to_seven_cards():
    tally = Tally(n=3, k=3)
    tally.add(array([[0, 1, 2], [2, 1, 0], [2, 1, 0], [0, 2, 1]]))
    assert orders(tally) == [1, 1, 0, 0, 0, 2]
    assert len(orders(Tally(n=7, k=7))) == 5040
    assert Tally(n=8, k=8).orders is None
    assert len(orders(Tally(n=52, k=2))) == 52 * 51


def test_patterns_and_inverses():
    assert patterns(array([[40, 3, 9], [1, 2, 0]])).tolist() == [[2, 0, 1], [1, 2, 0]]
    rows = decks(10, 20)
    places = inverses(array(rows)).tolist()
    assert all(row[where[card]] == card for row, where in zip(rows, places, strict=True)
               for card in range(10))  # fmt: skip


@pytest.mark.parametrize("pieces", [[30], [1, 28, 1], [10, 0, 20]])
def test_quotients_of_consecutive_shuffles(pieces):
    rows = decks(6, 30)
    counted = Counted(n=6, k=6)
    done = 0
    for piece in pieces:
        counted.add(array(rows[done : done + piece]).reshape(piece, 6))
        done += piece
    leads = [[a.index(card) for card in b] for a, b in pairwise(rows)]
    assert counted.quotients.shuffles == 29
    expected = Counter((place, was) for lead in leads for place, was in enumerate(lead))
    assert {at: int(counted.quotients.cells[at]) for at in expected} == expected


def test_a_sample_is_the_top_cards_in_drawing_order():
    deck = array([[0, 1, 2, 3, 4]])
    assert sample(deck, 2).tolist() == [[4, 3]]
    assert sample(deck, 5).tolist() == [[0, 1, 2, 3, 4]]


def test_progress_is_reported_up_to_the_end(monkeypatch):
    monkeypatch.setattr("dealer.lab.experiment.CARDS_AT_ONCE", 40)
    reported = []
    run(method("forward", n=4), number_source("pcg64", n=4), shuffles=25,
        step=lambda done, total: reported.append((done, total)))  # fmt: skip
    assert reported == [(10, 25), (20, 25), (25, 25)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", METHODS)
def test_a_notebook_has_the_counts_of_each_method_and_source(name, source):
    found = tally(name, n=5, shuffles=40, source=source)
    taken = method(name, n=5).sample
    assert found.cells.shape == (taken, 5)
    assert (found.cells.sum(axis=1) == 40).all()
    assert found.orders is not None
    assert found.orders.sum() == 40
    if source != "system":
        again = run(method(name, n=5), number_source(source, n=5, seed=3), shuffles=40).shuffles
        seeded = tally(name, n=5, shuffles=40, source=source, seed=3)
        assert (seeded.cells == again.cells).all()


def test_the_histogram_of_the_seeds(capsys):
    """The example of README.md, with fewer shuffles: each order, then mean and deviation."""
    document = (Path(experiment.__file__).parent / "README.md").read_text(encoding="utf-8")
    (program, _) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    assert len(program.splitlines()) <= 7
    exec(program.replace("600_000", "24_000"), {})
    *bars, last = capsys.readouterr().out.splitlines()
    assert sum(int(bar.split()[1].replace(",", "")) for bar in bars) == 24_000
    assert len(bars) == 24
    assert last.split()[0] == "1000.0"
