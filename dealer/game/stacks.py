"""Where cards lie: the deck, a hand for each seat, and any number of named piles.

A stack is named by one string, on the wire and in the log alike: `deck`, `hand:<seat>` or
`pile:<name>`. A place is an index in a stack, 0 the bottom, the last one the top.
"""

from __future__ import annotations

import re

from dealer.errors import BadRequest

DECK = "deck"
BURN = "pile:burn"
DISCARD = "pile:discard"

_STACK = re.compile(r"deck|hand:(?P<seat>[1-9][0-9]{0,9})|pile:[!-~]{1,32}")
_PILE_NAME = re.compile(r"[!-~]{1,32}")
SEAT_MAX = 2**32 - 1


def hand(seat: int) -> str:
    return f"hand:{seat}"


def pile(name: str) -> str:
    """The stack called `name`: 1–32 printable ASCII characters without space."""
    if not _PILE_NAME.fullmatch(name):
        raise BadRequest("A pile's name is 1 to 32 printable ASCII characters without space.")
    return f"pile:{name}"


def is_stack(text: str) -> bool:
    match = _STACK.fullmatch(text)
    return match is not None and int(match["seat"] or 1) <= SEAT_MAX


def seat_of(stack: str) -> int | None:
    """The seat whose hand this stack is; None for the deck and for piles."""
    return int(stack[5:]) if stack.startswith("hand:") else None
