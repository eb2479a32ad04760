"""Test decks: the order that a shuffle gives, and the rule that names it."""

from __future__ import annotations

import pytest

from dealer.errors import BadRequest
from dealer.game.cards import build
from dealer.game.insecure_deck import InsecureDeck, check_insecure_deck
from dealer.game.rules import Rules, check_names
from dealer.game.shuffle import full, steps_of

DECK = build()


def shuffled(deck: InsecureDeck, *, algorithm="backward", steps=None, k=0, cards=DECK) -> list[str]:
    """The cards, bottom first, after a shuffle's steps."""
    order = list(cards)
    below = deck.below(order, algorithm=algorithm, k=k)
    steps = full(len(order)) if steps is None else steps
    for _, i, j in steps_of(algorithm, n=len(order), steps=steps, below=below):
        assert 0 <= min(i, j) <= max(i, j) < len(order)
        order[i], order[j] = order[j], order[i]
    return order


@pytest.mark.parametrize("algorithm", ["backward", "forward"])
def test_the_cards_of_the_order_get_to_the_top(algorithm):
    order = shuffled(InsecureDeck(("As", "2c", "Kd")), algorithm=algorithm)
    assert order[::-1][:3] == ["As", "2c", "Kd"]
    assert order[:-3] == [card for card in DECK if card not in ("As", "2c", "Kd")]


def test_a_partial_shuffle_brings_them_to_the_top_too():
    order = shuffled(InsecureDeck(("As", "2c", "Kd")), steps=2)
    assert order[::-1][:2] == ["As", "2c"]
    assert sorted(order) == sorted(DECK)


def test_cards_that_are_not_in_the_stack_are_left_out():
    left = [card for card in DECK if card != "As"]
    assert shuffled(InsecureDeck(("As", "2c")), cards=left)[-1] == "2c"


def test_a_seed_gives_the_same_order_each_time():
    deck = InsecureDeck(seed="1")
    first = shuffled(deck)
    assert shuffled(deck, cards=DECK[::-1]) == first != list(DECK)
    assert shuffled(deck, k=1) != first != shuffled(InsecureDeck(seed="2"))
    assert shuffled(InsecureDeck(("As",), "1"))[-1] == "As"


@pytest.mark.parametrize(
    "value",
    [
        False, None, 1, "As", {}, {"seed": 1}, {"order": "AsKs"}, {"order": [1]}, {"cards": []},
        {"order": ["As", "As"]},
    ],
)  # fmt: skip
def test_a_malformed_rule_is_refused(value):
    with pytest.raises(BadRequest, match="insecure_test_deck"):
        Rules.check({"insecure_test_deck": value})


@pytest.mark.parametrize(
    "value", [True, {"order": ["As"]}, {"seed": ""}, {"order": [], "seed": "x"}]
)
def test_a_rule(value):
    rules = {"insecure_test_deck": value}
    check_insecure_deck(rules)
    check_names(rules)
    assert (InsecureDeck.of(rules) is None) == (value is True)


def test_other_tables_have_none():
    assert InsecureDeck.of({}) is None
    check_insecure_deck({})
