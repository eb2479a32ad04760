"""Messages with placeholders, plurals and choices: the part of ICU MessageFormat that is used.

`dealer/web/messages.js` describes the same and does the same in browsers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_NAME = re.compile(r"\s*(\w+)\s*")
_KIND = re.compile(r",\s*(plural|select)\s*,\s*")
_FORM = re.compile(r"\s*(=\d+|[^\s{}]+)\s*\{")
_CLOSE = re.compile(r"\s*(\})")
_TEXT = re.compile(r"[^{}]+")
_TEXT_OF_PLURAL = re.compile(r"[^{}#]+")


class MalformedMessage(ValueError):
    """A message that cannot be parsed."""


@dataclass(frozen=True)
class Choice:
    """A placeholder: `kind` is plural or select, with forms by key, or None for a plain one."""

    name: str
    kind: str | None = None
    forms: Mapping[str, list[Part]] = field(default_factory=dict)


Part = str | Choice
"""Text, in which `#` alone is the number of the plural around it, or a placeholder."""


def parse(message: str) -> list[Part]:
    """The parts of a message. Raises MalformedMessage."""
    reader = _Reader(message)
    parts = list(reader.parts(in_plural=False))
    if reader.at < len(message):
        raise MalformedMessage(f"unexpected }} in the message {message}")
    return parts


class _Reader:
    def __init__(self, message: str) -> None:
        self.message = message
        self.at = 0

    def parts(self, *, in_plural: bool) -> Iterator[Part]:
        while self.at < len(self.message) and (sign := self.message[self.at]) != "}":
            if sign == "{":
                self.at += 1
                yield self._choice()
            elif in_plural and sign == "#":
                self.at += 1
                yield "#"
            else:
                found = (_TEXT_OF_PLURAL if in_plural else _TEXT).match(self.message, self.at)
                assert found is not None
                self.at = found.end()
                yield found[0]

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.message, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def _choice(self) -> Choice:
        name, kind = self._take(_NAME), self._take(_KIND)
        forms: dict[str, list[Part]] = {}
        while kind is not None and (form := self._take(_FORM)) is not None:
            forms[form] = list(self.parts(in_plural=kind == "plural"))
            if self._take(_CLOSE) is None:
                raise MalformedMessage(f"{{{name}}} is not closed: {self.message}")
        if (
            name is None
            or self._take(_CLOSE) is None
            or (kind is not None and "other" not in forms)
        ):
            raise MalformedMessage(f"{{{name}}} is malformed: {self.message}")
        return Choice(name, kind, forms)


@dataclass(frozen=True)
class Formatter:
    """Formats messages: `category` is the plural category of a number, `shown` writes a value."""

    category: Callable[[int], str]
    shown: Callable[[Any], str]

    def format(self, parts: list[Part], values: Mapping[str, Any], count: int | None = None) -> str:
        """The text of `parts`; `count` is the number of the plural around them."""
        return "".join(self._part(part, values, count) for part in parts)

    def _part(self, part: Part, values: Mapping[str, Any], count: int | None) -> str:
        if isinstance(part, str):
            return str(count) if part == "#" and count is not None else part
        name, forms = part.name, part.forms
        if part.kind == "plural":
            number = int(values[name])
            keys = (f"={number}", self.category(number), "other")
            return self.format(next(forms[key] for key in keys if key in forms), values, number)
        if part.kind == "select":
            return self.format(forms.get(str(values[name]), forms["other"]), values, count)
        if name in values:
            return self.shown(values[name])
        text = self.shown(values[name[0].lower() + name[1:]])
        return text[:1].upper() + text[1:]
