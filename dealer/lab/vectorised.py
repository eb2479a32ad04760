"""The methods of `shuffles` vectorised over many decks: each step is applied to all decks.

Each function takes `decks`, an array of shuffles × n cards that it may change, and a source of
numbers, and returns the shuffled array. Each deck gets its numbers in the order in which the
function of the same name in `shuffles` requests them: equal numbers result in equal decks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dealer.lab.shuffles import A_THOUSAND, KEY_BASE, KEY_DIGITS
from dealer.lab.sources import NumberSource, Rows

Decks = NDArray[np.uint16]


def ordered(shuffles: int, n: int) -> Decks:
    """`shuffles` decks in their first order, card c at place c."""
    return np.tile(np.arange(n, dtype=np.uint16), (shuffles, 1))


def _rows(decks: Decks) -> Rows:
    return np.arange(len(decks))


def _swap(decks: Decks, rows: Rows, i: Rows | int, j: Rows) -> None:
    held = decks[rows, j]
    decks[rows, j] = decks[rows, i]
    decks[rows, i] = held


def backward(decks: Decks, numbers: NumberSource) -> Decks:
    return partial(decks, numbers, steps=max(decks.shape[1] - 1, 0))


def forward(decks: Decks, numbers: NumberSource) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n - 1):
        _swap(decks, rows, i, i + numbers.draw(n - i, rows))
    return decks


def partial(decks: Decks, numbers: NumberSource, *, steps: int) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n - 1, n - 1 - steps, -1):
        _swap(decks, rows, i, numbers.draw(i + 1, rows))
    return decks


def random_key(
    decks: Decks, numbers: NumberSource, *, base: int = KEY_BASE, digits: int = KEY_DIGITS
) -> Decks:
    n = decks.shape[1]
    keys = np.zeros(decks.shape, dtype=np.int64)
    rows = _rows(decks) if n else _rows(decks)[:0]
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
    n = decks.shape[1]
    visited = np.zeros(decks.shape, dtype=bool)
    taken = np.empty_like(decks)
    count = np.zeros(len(decks), dtype=np.intp)
    rows = _rows(decks) if n else _rows(decks)[:0]
    while rows.size:
        place = numbers.draw(n, rows)
        new = ~visited[rows, place]
        row, place = rows[new], place[new]
        visited[row, place] = True
        taken[row, count[row]] = decks[row, place]
        count[row] += 1
        rows = rows[count[rows] < n]
    return taken


def swap_any(decks: Decks, numbers: NumberSource) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n):
        _swap(decks, rows, i, numbers.draw(n, rows))
    return decks


def swap_any_but_last(decks: Decks, numbers: NumberSource) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    if n > 1:
        for i in range(n):
            _swap(decks, rows, i, numbers.draw(n - 1, rows))
    return decks


def random_comparator(decks: Decks, numbers: NumberSource) -> Decks:
    n = decks.shape[1]
    if n < 2:
        return decks
    run, falling = _first_runs(decks, numbers)
    places = np.arange(n)
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


def _first_runs(decks: Decks, numbers: NumberSource) -> tuple[Rows, NDArray[np.bool_]]:
    """How long the coin makes each deck's first run, and whether it falls."""
    rows, n = _rows(decks), decks.shape[1]
    falling = numbers.draw(2, rows) == 1
    run = np.full(len(decks), 2)
    for _ in range(2, n):
        rows = rows[(numbers.draw(2, rows) == 1) == falling[rows]]
        run[rows] += 1
    return run, falling


def _searched(place: int, rows: Rows, numbers: NumberSource) -> Rows:
    """Where in 0…place the coin puts the card of `place`, for each of the rows."""
    low, high = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), place)
    while (undecided := np.flatnonzero(low < high)).size:
        middle = (low[undecided] + high[undecided]) // 2
        less = numbers.draw(2, rows[undecided]) == 1
        high[undecided] = np.where(less, middle, high[undecided])
        low[undecided] = np.where(less, low[undecided], middle + 1)
    return low


def transpositions(decks: Decks, numbers: NumberSource, *, steps: int = A_THOUSAND) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    if n > 1:
        for _ in range(steps):
            i = numbers.draw(n, rows)
            _swap(decks, rows, i, numbers.draw(n, rows))
    return decks


def sattolo(decks: Decks, numbers: NumberSource) -> Decks:
    rows = _rows(decks)
    for i in range(decks.shape[1] - 1, 0, -1):
        _swap(decks, rows, i, numbers.draw(i, rows))
    return decks
