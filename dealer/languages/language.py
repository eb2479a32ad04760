"""A language: its messages by key, such as `history.drawn`, plurals, lists and direction."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from gettext import c2py
from importlib import resources
from typing import Any, cast

from dealer.languages.messages import Formatter, Part, parse

DEFAULT = "en"

_RANGE = re.compile(
    r"\s*(?P<tag>[A-Za-z]+|\*)(?:-[\w-]+)?\s*(?:;\s*q=(?P<weight>[01](?:\.\d{0,3})?))?\s*"
)
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


class Language:
    """The texts of one file, with methods that format them."""

    def __init__(self, tag: str, texts: Mapping[str, Any]) -> None:
        self.tag = tag
        self.texts = texts
        self._header = cast("dict[str, Any]", texts["language"])
        self._parsed: dict[str, list[Part]] = {}

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`."""
        return str(self._header["direction"])

    def text(self, key: str, /, **values: Any) -> str:
        """The message `key` with these values; those that are strings may come from players.

        Raises KeyError if there is no such message, or one of its values is missing.
        """
        if key not in self._parsed:
            self._parsed[key] = parse(self.message(key))
        return self._formatter.format(self._parsed[key], values)

    def message(self, key: str) -> str:
        """The message `key` as it is in the file. Raises KeyError."""
        found: Any = self.texts
        for name in key.split("."):
            found = found[name]
        if not isinstance(found, str):
            raise KeyError(key)
        return found

    def list(self, values: Sequence[str]) -> str:
        """The values as a list: "Ada, Bob and Cleo"."""
        patterns = self._header["list"]
        text = ""
        for number, value in enumerate(map(self._isolated, values)):
            pattern = patterns["last" if number == len(values) - 1 else "middle"]
            text = pattern.replace("{1}", value).replace("{0}", text, 1) if number else value
        return text

    def category(self, number: int) -> str:
        """The plural category of a number: zero, one, two, few, many or other."""
        return str(self._header["plurals"]["categories"][self._rule(number)])

    @cached_property
    def _rule(self) -> Callable[[int], int]:
        return c2py(self._header["plurals"]["rule"])

    @cached_property
    def _formatter(self) -> Formatter:
        return Formatter(self.category, self._shown)

    def _shown(self, value: object) -> str:
        return self.list(value) if isinstance(value, list) else self._isolated(str(value))

    def _isolated(self, text: str) -> str:
        """`text`, which does not change the order of the words around it."""
        if _RTL.search(text) or (self.direction == "rtl" and not text.isdecimal()):
            return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
        return text


@cache
def languages() -> dict[str, Language]:
    """Every language by its tag, the file's name; English first, then by tag."""
    folder = resources.files("dealer") / "web" / "texts"
    files = {file.name.removesuffix(".json"): file for file in folder.iterdir()}
    tags = sorted(files, key=lambda tag: (tag != DEFAULT, tag))
    return {tag: Language(tag, json.loads(files[tag].read_text("utf-8"))) for tag in tags}


def english() -> Language:
    """The language of the sources, and of readers whose languages have no file."""
    return languages()[DEFAULT]


def language_of(tag: str) -> Language | None:
    """The language of a tag such as `de` or `de-AT`; None if there is none."""
    return languages().get(tag.lower().split("-")[0])


def accepted(header: str | None) -> Language:
    """The language that a reader prefers, by the header Accept-Language (RFC 9110, 12.5.4)."""
    return next(_wanted(header or ""), english())


def _wanted(header: str) -> Iterator[Language]:
    ranges = []
    for text in header[:1000].split(","):
        if found := _RANGE.fullmatch(text):
            ranges.append((-float(found["weight"] or 1), found["tag"]))
    for weight, tag in sorted(ranges, key=lambda entry: entry[0]):
        if weight and (language := english() if tag == "*" else language_of(tag)):
            yield language
