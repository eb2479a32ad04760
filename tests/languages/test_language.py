"""Which language a reader gets."""

from __future__ import annotations

import pytest

from dealer.languages.language import accepted, language_of


@pytest.mark.parametrize(
    ("header", "tag"),
    [
        (None, "en"),
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("en;q=0.5, pl;q=0.8", "pl"),
        ("sw, fr;q=0.1", "fr"),
        ("sw", "en"),
        ("fr;q=0, de;q=0.2", "de"),
        ("*", "en"),
        ("zh-Hans-CN", "zh"),
        ("AR", "ar"),
        ("de;q=nonsense, es", "es"),
        (",;=,", "en"),
    ],
)
def test_accept_language(header: str | None, tag: str) -> None:
    assert accepted(header).tag == tag


def test_a_tag_with_a_region_is_a_language() -> None:
    german = language_of("de-CH")
    assert german is not None
    assert german.tag == "de"
    assert language_of("../de") is None
