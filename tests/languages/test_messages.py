"""Messages: placeholders, plurals and choices, the same in Python and in the browser's module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dealer.languages.language import Language, languages
from dealer.languages.messages import MalformedMessage, parse
from tests.harness.programs import output_of
from tests.web.js_verifier import node

WEB = Path(__file__).parents[2] / "dealer" / "web"
PROGRAM = """
const { Formatter, parse } = await import(MODULE);
const formatter = new Formatter(LOCALE, RTL);
console.log(JSON.stringify(GIVEN.map(([text, values]) => formatter.format(parse(text), values))));
"""

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("plain", {}, "plain"),
    ("{name}, seat {seat}", {"name": "Ada", "seat": 3}, "Ada, seat 3"),
    ("{What} left", {"what": "ace"}, "Ace left"),
    ("{What} left", {"what": "2 aces"}, "2 aces left"),
    ("{names}", {"names": ["Ada", "Bo", "Cy"]}, "Ada, Bo and Cy"),
    ("{n, plural, =0 {none} one {# card} other {# cards}}", {"n": 0}, "none"),
    ("{n, plural, =0 {none} one {# card} other {# cards}}", {"n": 1}, "1 card"),
    ("{n, plural, =0 {none} one {# card} other {# cards}}", {"n": 5}, "5 cards"),
    ("{n, plural, one {{who}: #} other {{who}: # #}} #", {"n": 2, "who": "Bo"}, "Bo: 2 2 #"),
    ("{on, select, true {a {n}} other {b}}", {"on": "true", "n": 7}, "a 7"),
    ("{on, select, true {a} other {b}}", {"on": "no"}, "b"),
    ("x{n, plural, =0 {} other {#}}{on, select, a {} other {b}}", {"n": 0, "on": "a"}, "x"),
    ("{name} wins", {"name": "עדה"}, "\u2068עדה\u2069 wins"),
]


def in_browser(language: Language, cases: list[tuple[str, dict[str, Any]]]) -> list[str]:
    given = {
        "MODULE": (WEB / "messages.js").as_uri(),
        "LOCALE": language.texts["language"]["locale"],
        "RTL": language.direction == "rtl",
        "GIVEN": cases,
    }
    names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
    command = [node(), "--input-type=module", "-e", names + PROGRAM]
    found: list[str] = json.loads(output_of(*command))
    return found


def in_python(language: Language, text: str, values: dict[str, Any]) -> str:
    return Language("xx", {**language.texts, "text": text}).text("text", **values)


def test_messages_are_formatted() -> None:
    english = languages()["en"]
    for text, values, formatted in CASES:
        assert in_python(english, text, values) == formatted
    assert in_browser(english, [(text, values) for text, values, _ in CASES]) == [
        formatted for _, _, formatted in CASES
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tag", sorted(languages()))
def test_python_and_browsers_format_alike(tag: str) -> None:
    """Plural categories of all numbers up to 1000, lists, and names of another direction."""
    language = languages()[tag]
    forms = "".join(f"{name} {{{name} {{n}}}} " for name in ("zero", "one", "two", "few", "many"))
    plural = f"{{n, plural, {forms}other {{other {{n}}}}}}"
    cases: list[tuple[str, dict[str, Any]]] = [(plural, {"n": n}) for n in range(1001)]
    names = ["Ada", "عدا", "Cy", "Di"]
    cases += [("{names}.", {"names": names[:length]}) for length in range(1, 5)]
    ours = [in_python(language, *case) for case in cases]
    theirs = in_browser(language, cases)
    # Python's files name only the categories that are not "other".
    assert ours == theirs


@pytest.mark.parametrize(
    "text",
    ["{", "}", "{name", "{n, plural, one {#}}", "{n, plural, other {#}", "{n, choice, other {}}"],
)
def test_a_malformed_message_is_refused(text: str) -> None:
    with pytest.raises(MalformedMessage):
        parse(text)
