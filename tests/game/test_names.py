"""Validation of names."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import BadRequest
from dealer.game.names import NAME_MAX, check_name, check_text, look_alike, safe_text
from dealer.game.rules import Rules

UNSEEN = (
    "\ufffc\U0001d159\U00013441\U00016fe4"
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


LOOK_LIKE_ADA = [
    "Ada\ufffc",
    "Ada\U0001d159",
    "Ada\U00013441",
    "Ada\U00016fe4",
    "ADA",
    " ada ",
    "Ada\u200b",
    "A\u00adda",
    "\u200eAda",
    "Ada\u3164",
    "\uff21da",
    "\u202eadA",
    "\u0391da",
    "\u0410d\u0430",
    "\U0001d400\U0001d41d\U0001d41a",
    "A\u200dda",
    "Ad\u2060a",
    "Ada\ufe0f",
    "Ada\u2800",
    "\u00a0Ada\u3000",
    "\u2066Ada\u2069",
    "Ada\U000e0041",
    "\u24b6\u24d3\u24d0",
    "\u13aada",
]
"""Invisible characters, forms for compatibility, other alphabets, signs of direction."""


@pytest.mark.parametrize("name", LOOK_LIKE_ADA, ids=ascii)
def test_a_name_that_looks_like_another_one_is_alike(name: str) -> None:
    assert look_alike("Ada", name)
    assert look_alike(name, "Ada")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ida", "lda"),
        ("ida", "IDA"),
        ("Bob0", "BobO"),
        ("Mia", "\u202eaiM"),
        ("Stra\u00dfe", "STRASSE"),
        ("Warner", "Wamer"),
        ("\u4e00\u90ce", "\u30fc\u90ce"),
        ("caf\u00e9", "cafe\u0301"),
        ("11", "ll"),
        ("\u03c3\u03bf\u03c6\u03bf\u03c2", "\u03a3\u039f\u03a6\u039f\u03a3"),
    ],
)
def test_other_names_that_look_alike(one: str, other: str) -> None:
    assert look_alike(one, other)


@pytest.mark.parametrize(
    "name",
    [
        "Adam",
        "\u00c1da",
        "Ad\u0101",
        "Ada 2",
        "Aida",
        "\u4e9a\u8fbe",
        "\u0410\u0434\u0430",
        "A da",
        "Ad",
    ],
)
def test_another_name_is_not_alike(name: str) -> None:
    assert not look_alike("Ada", name)


@given(st.text(max_size=NAME_MAX))
def test_case_outer_space_and_composition_do_not_matter(name: str) -> None:
    for same in (name, f" {name}\u2003", normalize("NFC", name), normalize("NFD", name)):
        assert look_alike(name, same)
    assert look_alike(name, name.casefold())


HONEST = [
    "\u0d30\u0d3e\u0d1c\u0d28\u0d4d\u200d",
    "\u0d2e\u0d4b\u0d39\u0d28\u0d4d\u200d \u0d32\u0d3e\u0d32\u0d4d\u200d",
    "\u0626\u0647\u200c",
    "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
    "\U0001f469\u200d\U0001f680",
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
    "\u5c71\u7530\u3000\u592a\u90ce",
    "Le\u00a0Goff",
    "\U0001fae8",
    "\u2764\ufe0f\u200d\U0001f525",
    "1\ufe0f\u20e3",
    "\u845b\U000e0100",
    "Vi\u1ec7t",
    "Vie\u0323\u0302t",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\u05e9\u05c1\u05b8",
    "\u0915\u094d\u200d\u0937",
    "\u1820\u180e\u1820",
    "\uf8ff",
    "O\u2019Neil",
    "\u0f56\u0f66\u0f92\u0fb2\u0f74\u0f56\u0f66",
]
"""Names with joiners, selectors, flags, wide and narrow spaces, marks, and newer characters."""

NEUTRALISED = {
    "\u202eadA": "\ufffdadA",
    "Ada\u200b": "Ada\ufffd",
    "A\u200dda": "A\ufffdda",
    "\u200cAda": "\ufffdAda",
    "x\u2028y\u2029z": "x\ufffdy\ufffdz",
    "\x9b31m\x1b[0m\x85": "\ufffd31m\ufffd[0m\ufffd",
    "\u2067a\u2069": "\ufffda\ufffd",
    "a\ufe0f": "a\ufffd",
    "a\U000e0062": "a\ufffd",
    "Z" + "\u0301" * 50: "Z" + "\u0301" * 4,
    "Z" + "\u0301\u200d" * 9 + "y": "Z" + "\u0301\ufffd" * 9 + "y",
    "\u0e01" + "\u0e49" * 20: "\u0e01" + "\u0e49" * 4,
    "a\ufffcb\U0001d159": "a\ufffdb\ufffd",
    "\u0915\u094d\u200d\u200d": "\u0915\u094d\u200d\ufffd",
    "a" + "\u0897" * 9: "a" + "\u0897" * 4,
    "\ufff9a\ufffab\ufffb": "\ufffda\ufffdb\ufffd",
}


@pytest.mark.parametrize("name", HONEST, ids=ascii)
def test_an_honest_name_is_valid_and_shown_as_it_is(name: str) -> None:
    check_name(name)
    assert safe_text(name) == name


@pytest.mark.parametrize(("text", "safe"), NEUTRALISED.items(), ids=ascii)
def test_what_hides_moves_or_covers_is_replaced(text: str, safe: str) -> None:
    assert safe_text(text) == safe
    assert safe_text(safe) == safe


@pytest.mark.parametrize(
    "control", ["\x00", "\x1f", "\x7f", "\x80", "\x85", "\x9b", "\x9f"], ids=ascii
)
def test_a_control_character_is_refused(control: str) -> None:
    with pytest.raises(BadRequest, match="no control characters"):
        check_name(f"Ada{control}")
    with pytest.raises(BadRequest, match="no control characters"):
        check_text(f"a{control}", 100, of="A note")


def test_more_marks_than_a_letter_has_are_refused() -> None:
    check_name("a" + "\u0301" * 4 + "b" + "\u0302" * 4)
    for name in ("Z" + "\u0301" * 5, "Z" + "\u0301\u200d" * 5, "\u0e01" + "\u0e49" * 5):
        with pytest.raises(BadRequest, match="at most 4 marks on a letter; leave some of them out"):
            check_name(name)


def test_names_that_differ_only_in_what_is_replaced_look_alike() -> None:
    assert look_alike("A\u2028da", "A\ufffdda")
    assert look_alike("Ada\uffff", "Ada\ufffd")
