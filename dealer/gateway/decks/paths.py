"""The paths of the original, the slash at the end optional, and `close`, which it does not have."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Where = Literal["top", "bottom", "random"]
_WHERE: dict[str, Where] = {"": "top", "top": "top", "bottom": "bottom", "random": "random"}
"""The end that a word in a path names, in any case; of another word there is no path."""

_SLUG = r"[A-Za-z0-9_-]+"
_DECK = rf"/api/deck/(?P<deck>{_SLUG})"
_PATHS = tuple(
    (re.compile(f"(?:{path})/?"), operation)
    for path, operation in (
        (r"/api/(?:deck/)?new", "new"),
        (r"/api/(?:deck/new/)?shuffle", "new.shuffle"),
        (r"/api/deck/new/draw", "new.draw"),
        (_DECK, "info"),
        (rf"{_DECK}/shuffle|/api/shuffle/(?P<old>{_SLUG})", "shuffle"),
        (rf"{_DECK}/draw(?:/(?P<where>{_SLUG}))?|/api/draw/(?P<old>{_SLUG})", "draw"),
        (rf"{_DECK}/return", "return"),
        (rf"{_DECK}/close", "close"),
        (rf"{_DECK}/pile/(?P<pile>{_SLUG})/add", "pile.add"),
        (rf"{_DECK}/pile/(?P<pile>{_SLUG})/list", "pile.list"),
        (rf"{_DECK}/pile/(?P<pile>{_SLUG})/shuffle", "pile.shuffle"),
        (rf"{_DECK}/pile/(?P<pile>{_SLUG})/return", "pile.return"),
        (rf"{_DECK}/pile/(?P<pile>{_SLUG})/draw(?:/(?P<where>{_SLUG}))?", "pile.draw"),
    )
)


class Target(NamedTuple):
    """What a path names: an operation, and where it has them a deck's id, a pile and an end."""

    operation: str
    deck: str = ""
    pile: str = ""
    where: Where = "top"


def target_of(path: str) -> Target | None:
    """What a path names, without its query; None if there is nothing."""
    for pattern, operation in _PATHS:
        if found := pattern.fullmatch(path):
            parts = found.groupdict(default="")
            deck = parts.get("deck") or parts.get("old") or ""
            where = _WHERE.get(parts.get("where", "").lower())
            return where and Target(operation, deck, parts.get("pile", ""), where)
    return None
