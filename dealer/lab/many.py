"""The same shuffles over very many decks at once, one step of all of them after the other.

Each function takes `decks`, an array of shuffles × n cards that it may change, and `dice`; it
returns the shuffled array. Deck r gets the numbers, in the order, that the function of the same
name in `shuffles` would ask for: with equal numbers both give equal decks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dealer.lab.shuffles import A_THOUSAND, KEY_BASE, KEY_DIGITS
from dealer.lab.sources import Dice, Rows

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


def backward(decks: Decks, dice: Dice) -> Decks:
    return partial(decks, dice, steps=max(decks.shape[1] - 1, 0))


def forward(decks: Decks, dice: Dice) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n - 1):
        _swap(decks, rows, i, i + dice.draw(n - i, rows))
    return decks


def partial(decks: Decks, dice: Dice, *, steps: int) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n - 1, n - 1 - steps, -1):
        _swap(decks, rows, i, dice.draw(i + 1, rows))
    return decks


def random_key(
    decks: Decks, dice: Dice, *, base: int = KEY_BASE, digits: int = KEY_DIGITS
) -> Decks:
    n = decks.shape[1]
    keys = np.zeros(decks.shape, dtype=np.int64)
    rows = _rows(decks) if n else _rows(decks)[:0]
    while rows.size:
        drawn = np.zeros((len(rows), n), dtype=np.int64)
        for place in range(n):
            for _ in range(digits):
                drawn[:, place] = drawn[:, place] * base + dice.draw(base, rows)
        keys[rows] = drawn
        drawn.sort(axis=1)
        rows = rows[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    return np.take_along_axis(decks, keys.argsort(axis=1), axis=1)


def visited_set(decks: Decks, dice: Dice) -> Decks:
    n = decks.shape[1]
    visited = np.zeros(decks.shape, dtype=bool)
    taken = np.empty_like(decks)
    count = np.zeros(len(decks), dtype=np.intp)
    rows = _rows(decks) if n else _rows(decks)[:0]
    while rows.size:
        place = dice.draw(n, rows)
        new = ~visited[rows, place]
        row, place = rows[new], place[new]
        visited[row, place] = True
        taken[row, count[row]] = decks[row, place]
        count[row] += 1
        rows = rows[count[rows] < n]
    return taken


def swap_any(decks: Decks, dice: Dice) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    for i in range(n):
        _swap(decks, rows, i, dice.draw(n, rows))
    return decks


def swap_any_but_last(decks: Decks, dice: Dice) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    if n > 1:
        for i in range(n):
            _swap(decks, rows, i, dice.draw(n - 1, rows))
    return decks


def random_comparator(decks: Decks, dice: Dice) -> Decks:
    n = decks.shape[1]
    if n < 2:
        return decks
    run, falling = _first_runs(decks, dice)
    places = np.arange(n)
    turned = falling[:, None] & (places < run[:, None])
    decks = np.take_along_axis(decks, np.where(turned, run[:, None] - 1 - places, places), axis=1)
    for place in range(2, n):
        rows = np.flatnonzero(run <= place)
        low = _searched(place, rows, dice)[:, None]
        # Those above make room: the card of `place` lies at `low`, the others one place higher.
        upto = places[: place + 1]
        moved = np.where(upto < low, upto, np.where(upto == low, place, upto - 1))
        decks[rows, : place + 1] = np.take_along_axis(decks[rows, : place + 1], moved, axis=1)
    return decks


def _first_runs(decks: Decks, dice: Dice) -> tuple[Rows, NDArray[np.bool_]]:
    """How long the coin makes each deck's first run, and whether it falls."""
    rows, n = _rows(decks), decks.shape[1]
    falling = dice.draw(2, rows) == 1
    run = np.full(len(decks), 2)
    for _ in range(2, n):
        rows = rows[(dice.draw(2, rows) == 1) == falling[rows]]
        run[rows] += 1
    return run, falling


def _searched(place: int, rows: Rows, dice: Dice) -> Rows:
    """Where in 0…place the coin puts the card of `place`, for each of the rows."""
    low, high = np.zeros(len(rows), dtype=np.intp), np.full(len(rows), place)
    while (undecided := np.flatnonzero(low < high)).size:
        middle = (low[undecided] + high[undecided]) // 2
        less = dice.draw(2, rows[undecided]) == 1
        high[undecided] = np.where(less, middle, high[undecided])
        low[undecided] = np.where(less, low[undecided], middle + 1)
    return low


def transpositions(decks: Decks, dice: Dice, *, steps: int = A_THOUSAND) -> Decks:
    rows, n = _rows(decks), decks.shape[1]
    if n > 1:
        for _ in range(steps):
            i = dice.draw(n, rows)
            _swap(decks, rows, i, dice.draw(n, rows))
    return decks


def sattolo(decks: Decks, dice: Dice) -> Decks:
    rows = _rows(decks)
    for i in range(decks.shape[1] - 1, 0, -1):
        _swap(decks, rows, i, dice.draw(i, rows))
    return decks
