"""The encoding of a table's state: the same state again, in the same order, or an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.eventlog import savepoints
from dealer.eventlog.savepoints import decode_table, encode_table, fold_code
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Deal, Move, Pass
from dealer.game.state import Table
from tests.game.test_state import replay
from tests.projector.random_games import HOST, Game, random_step

CHOICES = st.lists(st.integers(0, 19 * 25 - 1), min_size=5, max_size=50)


def dicts_of(table: Table) -> list[list[object]]:
    """The keys of all dicts of a state, in their order."""
    found: list[list[object]] = [list(table.seats)]
    if table.round is not None:
        found += [list(table.round.stacks), list(table.round.early_digests)]
        if table.round.shuffle is not None:
            found += [list(table.round.shuffle.digests), list(table.round.shuffle.nonces)]
    return found


@given(choices=CHOICES)
def test_a_state_is_the_same_after_every_event(choices: list[int]) -> None:
    game = Game(rules={"preset": "shared", "x": [1, {"é": "ü"}]}).sit("Ada", "Bob").open_round()
    for choice in choices:
        random_step(game, choice)
        again = decode_table(encode_table(game.table))
        assert again == game.table
        assert dicts_of(again) == dicts_of(game.table)
        assert encode_table(again) == encode_table(game.table)


def test_a_decoded_state_can_be_evolved_further() -> None:
    game = Game().sit("Ada", "Bob").open_round()
    game.do(Deal(HOST, 2))
    table = decode_table(encode_table(game.table))
    game.shuffle()
    game.close_round()
    assert replay(game.events) == game.table
    assert table != game.table
    assert table == replay(game.events[: table.version])


def test_moves_that_can_be_taken_back_are_part_of_the_state() -> None:
    game = Game(rules={"collect": "nobody"}).sit("Ada", "Bob").open_round()
    game.do(Deal(HOST, 3))
    first, second, third = game.round.cards("hand:1")
    game.do(Pass(Actor(seat=1), (first, third), 2))
    game.do(Move(Actor(seat=1), "discard", "hand:1", "pile:discard", (second,)))
    moves = game.round.moves
    assert moves.last is not None
    assert list(moves.passed) == [1]
    again = decode_table(encode_table(game.table))
    assert again.round is not None
    assert again.round.moves == moves


def test_a_face_is_one_object_for_all_slots() -> None:
    game = Game().sit("Ada").open_round(deck=STANDARD)
    game.shuffle()
    table = decode_table(encode_table(game.table))
    assert table.round is not None
    assert len({id(face) for face in table.round.faces}) == len(STANDARD)


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_other_bytes_are_an_error(cut: int) -> None:
    data = encode_table(Game().sit("Ada").open_round().table)
    with pytest.raises(ValueError):  # noqa: PT011  of msgspec, in its own words
        decode_table(data[:cut])
    with pytest.raises(ValueError):  # noqa: PT011
        decode_table(b"\x90" + data)


def test_the_code_has_a_number_of_its_own() -> None:
    assert len(fold_code()) == savepoints.CODE_BYTES
    assert fold_code() is fold_code()
