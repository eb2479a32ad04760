"""Validation of names."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import BadRequest
from dealer.game.names import NAME_MAX, check_name, comparable
from dealer.game.rules import Rules

UNSEEN = (
    " \u00a0\u2003\u200b\u200d\u2028\u2029\u202e\u2060\ufeff\u00ad"  # Zs, Cf, Zl, Zp
    "\u3164\u115f\u1160\uffa0\u2800\u034f\u180b\ufe0f\U000e0100\U000e0001"  # without a visible form
    "\u0301\u20dd"  # marks without a base character
)


@pytest.mark.parametrize("name", ["Ada", "Änne", "李", "a\u0301", "🂡", "👩\u200d🚀", "-", "7", "ﷺ"])
def test_a_name_with_a_visible_character_is_accepted(name: str) -> None:
    check_name(name)
    Rules.check({"name": name})


@given(st.text(UNSEEN, min_size=1, max_size=NAME_MAX))
def test_a_name_of_which_nothing_can_be_seen_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="visible"):
        check_name(name)
    with pytest.raises(BadRequest, match="The name of a table"):
        Rules.check({"name": name})


@given(st.text(UNSEEN, max_size=20), st.text(UNSEEN, max_size=20))
def test_one_visible_character_is_enough(before: str, after: str) -> None:
    check_name(f"{before}x{after}")


@pytest.mark.parametrize("name", ["x" * 15_000, "", "a\nb", 5, None, ["x"]])
def test_the_name_in_the_rules_obeys_the_limits_of_a_name(name: object) -> None:
    with pytest.raises(BadRequest, match="name of a table"):
        Rules.check({"name": name})


def test_rules_of_old_logs_are_read_with_any_name() -> None:
    assert Rules.read({"name": "x" * 15_000, "collect": "host"}).who["collect"] == "host"


@given(st.text(max_size=NAME_MAX))
def test_the_comparable_form_is_stable_and_ignores_case_and_outer_white_space(name: str) -> None:
    form = comparable(name)
    assert comparable(form) == form
    assert comparable(f" {name}\u2003") == form
    assert comparable(normalize("NFC", name)) == comparable(normalize("NFD", name)) == form
