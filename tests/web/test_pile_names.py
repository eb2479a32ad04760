"""Names of piles in any script: the plain names that the log can have, and what pages show."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dealer.game.names import safe_text
from dealer.game.stacks import pile
from tests.harness.programs import output_of
from tests.web.js_verifier import node

SCRIPT = Path(__file__).with_name("pile_names.mjs")
TYPED = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=32)


def named(*typed: str) -> list[tuple[str, str | None]]:
    printed = output_of(node(), SCRIPT, input=json.dumps(typed))
    return [(plain, title) for plain, title in json.loads(printed)]


def test_a_plain_name_stays_and_another_one_can_be_read() -> None:
    assert named("won:3", "弃牌 links", " a ", "a b") == [
        ("won:3", None),
        ("~5byD54mMIGxpbmtz", "弃牌 links"),
        ("a", None),
        ("~YSBi", "a b"),
    ]


def test_a_long_name_is_cut_between_characters() -> None:
    ((plain, title),) = named("弃" * 32)
    assert title == "弃" * 7
    assert len(plain) <= 32


def test_names_that_only_look_written_are_left_alone() -> None:
    assert [title for _, title in named("~", "~!", "~_w", "~YWJj")] == [None] * 4


@settings(max_examples=5, deadline=None)
@given(st.lists(TYPED, min_size=50, max_size=100))
def test_every_name_is_one_that_the_log_can_have(typed: list[str]) -> None:
    for one, (plain, title) in zip(typed, named(*typed), strict=True):
        pile(plain)
        assert title is None or safe_text(one).startswith(title)
