"""Which texts have a person's name, for those who ask to be forgotten: every text that shows it.

Players write a name as their keyboard composes it, in any case, and in many scripts without spaces
around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from unicodedata import category, normalize

# Scripts that put no space between words, and Hangul, where particles follow a name at once.
_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u1aaf\u2e80-\u2fff\u3005-\u9fff\ua960-\ua97f"
    "\ua9e0-\ua9ff\uaa60-\uaadf\uac00-\ud7ff\uf900-\ufaff\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff"
    "\U00020000-\U0003ffff"
)
_LETTER = f"[^\\W{_UNSPACED}]"
"""A letter that belongs to the word of the letter next to it."""


class Mentions:
    """Names of one person, and the texts that contain one of them as a word."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {normalize("NFC", name) for name in names}
        words = "|".join(map(_pattern, sorted(filter(None, map(_folded, self._names)))))
        self._words = re.compile(words) if words else None

    def __contains__(self, name: object) -> bool:
        """Whether this is one of the names, however its letters are composed."""
        return isinstance(name, str) and normalize("NFC", name) in self._names

    def within(self, text: str) -> bool:
        """Whether a text contains one of the names."""
        return self._words is not None and self._words.search(_folded(text)) is not None

    def places(self, lines: Iterable[bytes]) -> dict[str, list[int]]:
        """Where lines of a bundle have one of the names: versions by `Type.member`, 0 without one.

        Signed heads, in which no person writes, are not searched.
        """
        places: dict[str, list[int]] = {}
        for line in lines:
            members: dict[str, Any] = json.loads(line)
            ((kind, inner), *more) = members.items()
            if kind == "checkpoint":
                continue
            if isinstance(inner, dict) and not more:
                members = {"type": kind} | inner
            for path in dict.fromkeys(self._paths(members.pop("public", members), "")):
                place = f"{members['type']}{path}" if "type" in members else path.lstrip(".")
                places.setdefault(place, []).append(members.get("version", 0))
        return places

    def _paths(self, value: Any, path: str) -> Iterator[str]:
        """The path of each text in a JSON value, and of each name of a member, that has a name."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if self.within(name):
                    yield f"{path}.{name}"
                yield from self._paths(inner, f"{path}.{name}")
        elif isinstance(value, list):
            for inner in value:
                yield from self._paths(inner, path)
        elif isinstance(value, str) and self.within(value):
            yield path


def _folded(text: str) -> str:
    """A text without its signs of format, in which case and composition do not matter."""
    plain = normalize("NFKC", normalize("NFKC", text).casefold())
    return "".join(each for each in plain if category(each) != "Cf")


def _pattern(name: str) -> str:
    """A name as a word; what is next to it matters only where its end is such a letter."""
    before, after = (
        f"(?{look}{_LETTER})" if re.match(_LETTER, end) else ""
        for end, look in ((name[0], "<!"), (name[-1], "!"))
    )
    return f"{before}{re.escape(name)}{after}"
