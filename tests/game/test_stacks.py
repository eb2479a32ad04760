"""Names of stacks."""

from __future__ import annotations

import pytest

from dealer.errors import BadRequest
from dealer.game.stacks import BURN, DISCARD, hand, is_stack, pile, seat_of

STACKS = ["deck", "hand:1", "hand:4294967295", "pile:x", 'pile:!"\\~', "pile:" + "p" * 32]
NONE = [
    "", "Deck", "deck ", "deck\n", "hand:", "hand:0", "hand:01", "hand:x", "hand:-1",
    "hand:4294967296", "hand:99999999999", "hand:٣", "pile:", "pile:a b", "pile:é",
    "pile:" + "p" * 33, "heap:x",
]  # fmt: skip


@pytest.mark.parametrize("name", [*STACKS, BURN, DISCARD])
def test_a_stack_is_deck_a_hand_or_a_pile(name):
    assert is_stack(name)


@pytest.mark.parametrize("name", NONE)
def test_other_names_of_stacks_are_refused(name):
    assert not is_stack(name)


def test_a_hand_belongs_to_its_seat():
    assert seat_of(hand(12)) == 12
    assert seat_of("deck") is None
    assert seat_of("pile:hand:1") is None


def test_a_pile_has_a_name():
    assert pile("burn") == BURN
    assert pile("p" * 32) == "pile:" + "p" * 32
    for name in ("", "a b", "p" * 33, "a\n"):
        with pytest.raises(BadRequest, match="1 to 32"):
            pile(name)
