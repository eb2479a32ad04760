"""Texts that players chose are shown alike by Python, by the pages and by the verifier."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import unidata_version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dealer.game.names import safe_text
from tests.game.test_names import HONEST, LOOK_LIKE_ADA, NEUTRALISED
from tests.harness.programs import output_of
from tests.web.js_verifier import node

SCRIPT = Path(__file__).with_name("safe_texts.mjs")

# Of the blocks in which the rule says something, and of others.
SIGNS = st.one_of(
    st.characters(max_codepoint=0x2FF),
    st.characters(min_codepoint=0x300, max_codepoint=0x20FF, exclude_categories=["Cn"]),
    st.characters(min_codepoint=0xFE00, max_codepoint=0xFFFF, exclude_categories=["Cn", "Cs"]),
    st.characters(min_codepoint=0xE0000, max_codepoint=0xE01EF, exclude_categories=["Cn"]),
    st.sampled_from(
        "\u200c\u200d\u202e\ufe0f\u0301\u0323\U0001f3f4\U000e0067\U000e007f\U0001f469#1\u0915\u094d"
    ),
)


def in_javascript(texts: list[str]) -> list[list[str]]:
    printed: list[list[str]] = json.loads(output_of(node(), SCRIPT, input=json.dumps(texts)))
    return printed


def test_known_names_are_shown_alike() -> None:
    texts = [*HONEST, *LOOK_LIKE_ADA, *NEUTRALISED, ""]
    assert in_javascript(texts) == [[safe_text(one)] * 2 for one in texts]


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.text(SIGNS, max_size=40), min_size=50, max_size=200))
def test_any_text_is_shown_alike(texts: list[str]) -> None:
    """With the marks of the Unicode version that Python knows."""
    assert in_javascript(texts) == [[safe_text(one)] * 2 for one in texts], unidata_version
