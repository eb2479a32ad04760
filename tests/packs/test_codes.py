"""Codes on the wire from the codes that an author writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import ConfigurationError
from dealer.game.cards import check_deck
from dealer.packs.pack import base_codes, deck_of


def test_codes_of_one_length_stay_as_they_are() -> None:
    assert base_codes(["o1", "oR"]) == ["o1", "oR"]


def test_shorter_codes_are_filled_up() -> None:
    assert base_codes(["A", "10"]) == ["A_", "10"]


@pytest.mark.parametrize("codes", [["Rot +2", "Blau"], ["红中", "发财"], ["??", "ab"], ["x" * 17]])
def test_other_codes_become_numbers(codes: list[str]) -> None:
    assert base_codes(codes) == [str(number) for number in range(1, len(codes) + 1)]


def test_numbers_have_as_many_digits_as_the_last() -> None:
    assert base_codes([f"карта {n}" for n in range(12)])[:2] == ["01", "02"]


def test_two_codes_that_would_become_one_are_refused() -> None:
    with pytest.raises(ConfigurationError, match='"A_" and "A" would both get the code A_'):
        base_codes(["A", "A_", "BC"])


def test_copies_have_a_number() -> None:
    assert deck_of(["R0", "R1"], [1, 2]) == ["R0.1", "R1.1", "R1.2"]
    assert deck_of(["R0"], [10])[::9] == ["R0.01", "R0.10"]
    assert deck_of(["R0", "R1"], [1, 1]) == ["R0", "R1"]


def test_a_code_that_is_too_long_with_its_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cards: Card 0 of the deck has an invalid code"):
        deck_of(["x" * 15], [2])


@given(st.lists(st.text(min_size=1, max_size=16), min_size=1, max_size=40, unique=True), st.data())
def test_every_mapping_is_a_deck_or_is_refused(codes: list[str], data: st.DataObject) -> None:
    counts = [data.draw(st.integers(1, 9)) for _ in codes]
    try:
        bases = base_codes(codes)
        deck = deck_of(bases, counts)
    except ConfigurationError:
        return
    check_deck(deck)
    assert len(deck) == sum(counts)
    assert {code[: len(bases[0])] for code in deck} == set(bases)
