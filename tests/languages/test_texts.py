"""Every language has every text with fitting placeholders and plurals; every text is used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway.pages.page_files import SECTIONS
from dealer.languages.language import languages
from dealer.languages.messages import Choice, Formatter, Part, parse
from tests.harness.programs import output_of
from tests.web.js_verifier import node

WEB = Path(__file__).parents[2] / "dealer" / "web"
TAGS = sorted(languages())
OTHERS = [tag for tag in TAGS if tag != "en"]
PAGES = sorted({name for sections in SECTIONS.values() for name in sections} - {"language"})


def leaves(texts: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every message with its key."""
    items = texts.items() if isinstance(texts, dict) else enumerate(texts)
    for name, value in items:
        key = f"{path}.{name}" if path else str(name)
        if isinstance(value, str):
            yield key, value
        else:
            yield from leaves(value, key)


def messages(tag: str) -> dict[str, str]:
    texts = {name: value for name, value in languages()[tag].texts.items() if name != "language"}
    return dict(leaves(texts))


def choices(parts: list[Part]) -> Iterator[Choice]:
    for part in parts:
        if isinstance(part, Choice):
            yield part
            for form in part.forms.values():
                yield from choices(form)


def placeholders(text: str, *, shown: bool = False) -> set[str]:
    """The names of its values; with `shown` those that only choose a form are left out."""
    found = (one for one in choices(parse(text)) if one.kind is None or not shown)
    return {one.name[0].lower() + one.name[1:] for one in found}


@cache
def plural_categories() -> dict[str, set[str]]:
    """By language, the plural categories of the numbers up to 1000, by the browser's rules."""
    program = """
      const given = JSON.parse(process.argv[1]);
      const found = (tag) => Array.from({ length: 1001 }, (_, n) =>
        new Intl.PluralRules(tag).select(n));
      console.log(JSON.stringify(given.map((tag) => [tag, [...new Set(found(tag))]])));"""
    command = [node(), "-e", program, json.dumps(TAGS)]
    return {tag: set(names) for tag, names in json.loads(output_of(*command))}


@pytest.mark.parametrize("tag", OTHERS)
def test_a_language_has_the_keys_of_english_in_the_same_order(tag: str) -> None:
    assert list(messages(tag)) == list(messages("en"))
    assert set(languages()[tag].texts["language"]) == set(languages()["en"].texts["language"])


@pytest.mark.parametrize("tag", TAGS)
def test_no_text_is_empty_or_has_markup(tag: str) -> None:
    for key, text in messages(tag).items():
        assert text.strip() == text != "", key
        assert not re.search(r"[<>\n]|&\w+;|  ", text), key


@pytest.mark.parametrize("tag", OTHERS)
def test_placeholders_are_those_of_english(tag: str) -> None:
    """A number that only chooses a form may be left out, or be shown instead."""
    english = messages("en")
    for key, text in messages(tag).items():
        assert placeholders(text) <= placeholders(english[key]), key
        assert placeholders(english[key], shown=True) <= placeholders(text), key


@pytest.mark.parametrize("tag", TAGS)
def test_plurals_have_the_forms_of_the_language(tag: str) -> None:
    """Categories like those of `other` may be left out: "many" of Polish, "zero" of Arabic."""
    known = plural_categories()[tag]
    needed = {"one", "two", "few"} & known
    for key, text in messages(tag).items():
        for choice in choices(parse(text)):
            if choice.kind != "plural":
                continue
            forms = {form for form in choice.forms if not form.startswith("=")}
            assert forms <= known | {"other"}, key
            exact = set(choice.forms) - forms
            counted = any("#" in form for form in choice.forms.values()) and forms != {"other"}
            assert forms >= needed or not counted or key in SAME_FORMS.get(tag, ()), key
            assert exact <= {"=0"}, key


# Plurals whose word has no other form for few: "razy", "kart".
SAME_FORMS = {
    "pl": {
        "table.checkedTimes", "table.disabled.tooFewForAll", "audit.counts.cosigner",
        "explanation.reused",
    },
}  # fmt: skip


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rounds", {"rounds": 1, "open": 0}),
        ("shuffles", {"shuffles": 1, "voided": 0, "houseOnly": 0}),
        ("seats", {"leftOut": 0, "withheld": 0, "silent": 0}),
        ("reused", {"reused": 0}),
        ("notTop", {"draws": 0}),
        ("cosigned", {"cosigned": 0}),
    ],
)
def test_a_count_of_zero_is_not_explained(tag: str, name: str, values: dict[str, int]) -> None:
    """By the number of its sentences, where a colon or semicolon begins one, too."""
    formatter = Formatter(lambda number: "one" if number == 1 else "other", str)
    parts = parse(messages(tag)[f"audit.counts.{name}"])
    of_zero = formatter.format(parts, values)
    assert len(re.findall(r"[.。]", of_zero)) == 1, of_zero
    assert re.search(r"\d( [^\d:：;；]*)?[^\d:：;；]*$", of_zero), of_zero
    if name not in ("notTop", "cosigned"):  # they have nothing to explain
        assert len(formatter.format(parts, dict.fromkeys(values, 1))) > len(of_zero) + 5


def sources() -> str:
    return "\n".join(
        path.read_text("utf-8") for suffix in ("js", "html") for path in WEB.rglob(f"*.{suffix}")
    )


def page_messages() -> dict[str, str]:
    english = languages()["en"].texts
    return dict(leaves({name: english[name] for name in PAGES}))


def test_every_text_of_the_pages_is_used() -> None:
    """By its name, or because its group is used by computed names."""
    text = sources()
    direct = set(re.findall(r"\.(\w+)\b", text)) | set(re.findall(r'data-\w+="(\w+)"', text))
    direct |= {
        name for found in re.findall(r"const \{([^}]*)\} = (?:texts|counts)", text)
        for name in re.findall(r"\w+", found)
    }  # fmt: skip
    aliases = dict(re.findall(r"const (\w+) = (?:\w+\.)+(\w+);", text))
    computed = set(re.findall(r"\b(\w+)(?:\?\.)?\[", text))
    computed |= set(re.findall(r"(?:entries|hasOwn)\((?:\w+\.)*(\w+)", text))
    computed |= {aliases[name] for name in computed if name in aliases} | {"limitsWords"}
    unused = [
        key
        for key in page_messages()
        if key.split(".")[-1] not in direct and not computed & set(key.split(".")[:-1])
    ]
    assert unused == []


def test_every_call_gives_the_values_of_its_text() -> None:
    """Calls whose values are written out: `texts.seat({ seat })`."""
    by_name: dict[str, list[set[str]]] = {}
    for key, text in page_messages().items():
        by_name.setdefault(key.split(".")[-1], []).append(placeholders(text))
    checked = 0
    for name, given in re.findall(r"\b(?:texts|lines|labels|reasons|counts)(?:\.\w+)*\.(\w+)"
                                  r"\(\{([^{}]*)\}\)", sources()):  # fmt: skip
        if "..." in given or name not in by_name:
            continue
        depth = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\]", "", given)
        values = {re.split(r"[:\s]", one.strip())[0] for one in depth.split(",") if one.strip()}
        assert any(values == wanted for wanted in by_name[name]), (name, values)
        checked += 1
    assert checked > 60


def test_every_sentence_of_histories_is_used_and_exists() -> None:
    folder = WEB.parent / "history"
    text = "\n".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    used = set(re.findall(r'_text\(\s*"(\w+)"', text)) | set(re.findall(r'"history\.(\w+)"', text))
    assert used == set(languages()["en"].texts["history"])
