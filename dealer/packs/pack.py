"""A pack: how each code of a deck is named and drawn. README.md describes its members."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dealer.errors import BadRequest, ConfigurationError
from dealer.game.cards import UNKNOWN, check_deck
from dealer.packs import members
from dealer.packs.members import Text

CARDS_MAX = 1024
_PACK = ("pack", "title", "licence", "source", "back", "suits", "ranks", "named", "cards")
_SUIT = ("suit", "name", "sign", "svg", "colour")
_RANK = ("rank", "name", "corner", "text", "svg")
_CARD = ("name", "suit", "rank", "colour", "ground", "corner", "text", "svg", "count")
_BACK = ("colour", "svg")
_CORNER_MAX = 6

_PLAIN = re.compile(r"[!#-\[\]-~]{1,16}")
FILL = "_"

_READERS: dict[str, Callable[[Any, str], Any]] = {
    "name": members.text,
    "colour": members.colour,
    "ground": members.colour,
    "svg": members.svg,
    "text": members.text,
    "sign": lambda value, at: members.string(value, at, most=_CORNER_MAX),
    "corner": lambda value, at: members.string(value, at, most=_CORNER_MAX),
}


def read(given: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """The pack for the pages; ConfigurationError for a fault.

    `cards` of the result are by their codes on the wire, `width` characters long without the number
    of a copy; `deck` has the codes of the whole deck. A card keeps its author's `code` if it is
    another one.
    """
    members.only(given, _PACK, "")
    if members.name(given.get("pack", name), "pack") != name:
        raise ConfigurationError(f'pack must be "{name}", like the name of the file.')
    suits = _by_key(given.get("suits", []), "suits", "suit", _SUIT)
    ranks = _by_key(given.get("ranks", []), "ranks", "rank", _RANK)
    pattern = members.text(given["named"], "named") if "named" in given else None
    cards = _cards(given.get("cards"), suits, ranks, pattern)
    bases = base_codes([card["code"] for card in cards])
    deck = deck_of(bases, [card.pop("count") for card in cards])
    by_code = {}
    for base, card in zip(bases, cards, strict=True):
        written = card.pop("code")
        by_code[base] = card if written == base else {"code": written, **card}
    pack: dict[str, Any] = {"pack": name, "title": members.text(given.get("title"), "title")}
    for member in ("licence", "source"):
        if member in given:
            pack[member] = members.string(given[member], member)
    if "back" in given:
        pack["back"] = _members(given["back"], _BACK, "back")
    if pattern is not None:
        pack["named"] = pattern
    lists = {"suits": list(suits.values()), "ranks": list(ranks.values())}
    return {**pack, **lists, "width": len(bases[0]), "cards": by_code, "deck": deck}


def _members(value: Any, names: tuple[str, ...], at: str) -> dict[str, Any]:
    """An object whose members have readers; others are left to the caller."""
    given = members.mapping(value, at, names)
    return {
        member: _READERS[member](value, f"{at}: {member}") if member in _READERS else value
        for member, value in given.items()
    }


def _by_key(value: Any, at: str, key: str, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(members.items(value, at, most=100), 1):
        entry = _members(item, names, f"{at}, {number}")
        word = members.string(entry.get(key), f"{at}, {number}: {key}", most=16)
        if "name" not in entry:
            raise ConfigurationError(f"{at}, {number}: name is missing.")
        if word in found:
            raise ConfigurationError(f"{at}: {json.dumps(word)} occurs twice.")
        found[word] = entry
    return found


def _cards(
    value: Any, suits: Mapping[str, Any], ranks: Mapping[str, Any], pattern: Text | None
) -> list[dict[str, Any]]:
    given = members.mapping(value, "cards")
    if not 1 <= len(given) <= CARDS_MAX:
        raise ConfigurationError(f"cards must have 1 to {CARDS_MAX} members.")
    cards = []
    for code, described in given.items():
        at = f"cards, {json.dumps(code, ensure_ascii=False)}"
        members.string(code, at, most=64)
        card = _members(described, _CARD, at)
        for member, known in (("suit", suits), ("rank", ranks)):
            if member in card and card[member] not in known:
                raise ConfigurationError(f"{at}: {member} is none of the {member}s of the pack.")
        if "name" not in card and not (pattern and {"suit", "rank"} <= set(card)):
            raise ConfigurationError(
                f"{at}: name is missing; a card without one needs suit, rank and the pack's named."
            )
        count = members.whole(card.get("count", 1), f"{at}: count", least=1, most=CARDS_MAX)
        cards.append({**card, "code": code, "count": count})
    return cards


# Codes on the wire, from those that the author wrote. README.md has the mapping, which depends only
# on the file.


def base_codes(written: Sequence[str]) -> list[str]:
    """The code of each card without the number of its copy; all have one length."""
    if all(_PLAIN.fullmatch(code) and code != UNKNOWN for code in written):
        width = max(map(len, written))
        filled = [code.ljust(width, FILL) for code in written]
        for index, code in enumerate(filled):
            if code in filled[:index]:
                other = written[filled.index(code)]
                raise ConfigurationError(
                    f"cards: {json.dumps(written[index])} and {json.dumps(other)} would both get "
                    f"the code {code}; rename one of them."
                )
        return filled
    width = len(str(len(written)))
    return [f"{number:0{width}}" for number in range(1, len(written) + 1)]


def deck_of(bases: Sequence[str], counts: Sequence[int]) -> list[str]:
    """The codes of the whole deck, in the order of the file; `counts` are the copies of each."""
    most = max(counts)
    width = len(str(most))
    deck = [
        base if most == 1 else f"{base}.{copy:0{width}}"
        for base, count in zip(bases, counts, strict=True)
        for copy in range(1, count + 1)
    ]
    try:
        check_deck(deck)
    except BadRequest as error:
        raise ConfigurationError(f"cards: {error}") from None
    return deck
