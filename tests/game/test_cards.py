"""Decks, jokers, shoes, custom decks, and invalid decks."""

from __future__ import annotations

import itertools

import pytest

from dealer.errors import BadRequest
from dealer.game.cards import DECK_MAX, STANDARD, build, check_deck


def test_a_standard_deck_has_every_rank_of_every_suit():
    deck = build()
    assert len(deck) == 52
    assert set(deck) == {r + s for r, s in itertools.product("A23456789TJQK", "shdc")}
    assert deck[:3] == ("As", "2s", "3s")
    assert deck[-1] == "Kc"


@pytest.mark.parametrize("jokers", [0, 1, 2])
def test_jokers_are_on_top_of_a_fresh_deck(jokers):
    assert build(jokers=jokers) == STANDARD + ("X1", "X2")[:jokers]


def test_a_custom_deck_is_the_given_list():
    assert build(cards=["Qh", "As"]) == ("Qh", "As")
    assert build(cards=["Qh", "As"], jokers=1) == ("Qh", "As", "X1")


@pytest.mark.parametrize("decks", range(1, 20))
def test_a_shoe_is_several_decks_whose_codes_have_one_length(decks):
    shoe = build(decks=decks)
    assert len(shoe) == len(set(shoe)) == 52 * decks
    width = 0 if decks == 1 else 2 if decks < 10 else 3
    assert {len(code) for code in shoe} == {2 + width}
    assert sorted({code[:2] for code in shoe}) == sorted(STANDARD)


def test_a_shoe_names_its_decks_from_one():
    shoe = build(cards=["As", "Kd"], decks=10, jokers=1)
    assert shoe[:4] == ("As.01", "Kd.01", "X1.01", "As.02")
    assert shoe[-1] == "X1.10"
    assert build(decks=8)[0] == "As.1"
    assert build(decks=8)[-1] == "Kc.8"


def test_twenty_small_decks_are_a_shoe():
    assert len(build(cards=STANDARD[:51], decks=20)) == 1020


@pytest.mark.parametrize(
    ("spec", "saying"),
    [
        ({"decks": 0}, "1 to 20 decks"),
        ({"decks": 21, "cards": ["As"]}, "1 to 20 decks"),
        ({"decks": 20}, "20 decks of 52 are too many"),
        ({"jokers": -1}, "0 to 2 jokers"),
        ({"jokers": 3}, "0 to 2 jokers"),
        ({"cards": []}, "has 0"),
        ({"cards": ["As", "As"]}, "distinct"),
        ({"cards": ["X1"], "jokers": 1}, "distinct"),
        ({"cards": ["A"], "jokers": 1}, "the same length"),
        ({"cards": ["x" * 15], "decks": 2}, "invalid code"),
    ],
)
def test_invalid_decks_are_refused(spec, saying):
    with pytest.raises(BadRequest, match=saying):
        build(**spec)


@pytest.mark.parametrize("n", [1, 2, DECK_MAX])
def test_a_custom_deck_has_one_to_1024_cards(n):
    check_deck([f"{number:04}" for number in range(n)])


@pytest.mark.parametrize("n", [0, DECK_MAX + 1])
def test_decks_of_0_and_1025_cards_are_refused(n):
    with pytest.raises(BadRequest, match=f"has {n}"):
        check_deck([f"{number:04}" for number in range(n)])


@pytest.mark.parametrize("code", ["!", "~", "x" * 16, "[]", "?!", "#$%&'()*+,-./:;<"])
def test_a_code_is_printable_ascii(code):
    check_deck([code])


@pytest.mark.parametrize(
    "code", ["", " ", "a b", '"', "\\", "x" * 17, "??", "é", "\x7f", "a\n", "\ud800", 7, None]
)
def test_other_codes_are_refused_with_their_place(code):
    with pytest.raises(BadRequest, match="Card 0 of the deck"):
        check_deck([code])


def test_all_codes_have_one_length():
    with pytest.raises(BadRequest, match="the same length"):
        check_deck(["As", "10s"])
