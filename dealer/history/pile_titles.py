"""Titles of piles: those of a game's file, and those that players wrote in any script.

The log has plain names, such as `board` or `won:2`. A game's file has a title for some of them, of
which `won:{seat}` stands for one of each seat; a name that a player typed in another script is
`~` and the base64url of its UTF-8.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from types import MappingProxyType

from dealer.game.names import safe_text
from dealer.game.state import Table

SEAT = "{seat}"

Titles = Mapping[str, str]
"""Titles of piles in one language, by plain name."""

GameTitles = Mapping[str, Titles]
"""Titles of piles in one language, by game."""

NO_TITLES: Titles = MappingProxyType({})
NO_GAMES: GameTitles = MappingProxyType({})

_SEAT = re.compile(r"[1-9][0-9]{0,9}")
_WRITTEN = re.compile(r"~(?P<base64>[A-Za-z0-9_-]{1,31})")
_PLAIN = re.compile(r"[!-~]{1,32}")


def titles_at(table: Table, games: GameTitles) -> Titles:
    """The titles of the game that the table's rules name."""
    game = table.rules.given.get("game")
    return games.get(game, NO_TITLES) if isinstance(game, str) else NO_TITLES


def title_of(name: str, titles: Titles) -> str | None:
    """The title of a pile by its plain name; None if it has none.

    `titles` are from the game's file, by plain names.
    """
    if name in titles:
        return titles[name]
    for pattern, title in titles.items():
        before, mark, after = pattern.partition(SEAT)
        if mark and name.startswith(before) and name.endswith(after):
            seat = name[len(before) : len(name) - len(after)]
            if _SEAT.fullmatch(seat):
                return title.replace(SEAT, seat)
    return _written(name)


def _written(name: str) -> str | None:
    found = _WRITTEN.fullmatch(name)
    if found is None:
        return None
    base64 = found["base64"]
    try:
        title = urlsafe_b64decode(base64 + "=" * (-len(base64) % 4)).decode()
    except ValueError:
        return None
    return None if _PLAIN.fullmatch(title) else safe_text(title)
