"""The estimate of a table's size grows with each of its parts."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from dealer.game.rules import Rules
from dealer.game.size import size_of
from dealer.game.state import Player, Round, Shuffle, Table

FEW = st.integers(0, 12)


class Shape(NamedTuple):
    seats: int
    rounds: int
    cards: int
    slots: int
    piles: int
    known: int
    digests: int
    rules: int


def table_of(shape: Shape) -> Table:
    rules = Rules.read({f"r{number}": "x" for number in range(shape.rules)})
    table = Table(rules=rules, round_versions=list(range(shape.rounds)))
    table.seats = {seat: Player("Ada", None, seat) for seat in range(1, shape.seats + 1)}
    deck = tuple(f"{number:04}" for number in range(shape.cards))
    round_ = Round(1, deck, "players", 1000, 1000, bytes(32), {})
    round_.stacks = {f"pile:{number}": [] for number in range(shape.piles)}
    round_.faces = [None] * shape.slots
    round_.known = {seat: set(range(shape.known)) for seat in range(1, 3)}
    digests = {seat: bytes(32) for seat in range(shape.digests)}
    round_.shuffle = Shuffle(0, "deck", 1, "backward", 0, 0, digests)
    table.round = round_
    return table


SHAPES = st.builds(Shape, *[FEW] * len(Shape._fields))


@given(SHAPES, st.sampled_from(Shape._fields), st.integers(1, 1000))
def test_the_estimate_grows_with_each_part(shape: Shape, field: str, more: int) -> None:
    larger = shape._replace(**{field: getattr(shape, field) + more})
    assert size_of(table_of(larger)) > size_of(table_of(shape))


@given(SHAPES)
def test_an_open_round_increases_the_estimate(shape: Shape) -> None:
    table = table_of(shape)
    with_round = size_of(table)
    table.round = None
    assert 0 < size_of(table) < with_round
