"""Names of stacks: the deck, one hand for each seat, and any number of named piles.

A stack has the same name on the wire and in the log: `deck`, `hand:<seat>` or `pile:<name>`. A
place is an index in a stack; 0 is the bottom, the last index the top.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dealer.errors import BadRequest

DECK = "deck"
BURN = "pile:burn"
DISCARD = "pile:discard"

_STACK = re.compile(r"deck|hand:(?P<seat>[1-9][0-9]{0,9})|pile:[!-~]{1,32}")
_PASS_PILE = re.compile(r"pile:pass:[1-9][0-9]{0,9}")
_PILE_NAME = re.compile(r"[!-~]{1,32}")
SEAT_MAX = 2**32 - 1


hand: Callable[[int], str] = "hand:{}".format
"""The name of a seat's hand. (A bound method: every draw asks for it several times.)"""


def pile(name: str) -> str:
    """The stack of the pile `name`, 1–32 printable ASCII characters; else raises BadRequest."""
    if not _PILE_NAME.fullmatch(name):
        raise BadRequest("A pile's name is 1 to 32 printable ASCII characters without spaces.")
    return f"pile:{name}"


def pass_pile(seat: int) -> str:
    """The pile of cards that wait to be passed to a seat."""
    # With a colon, so that piles that games already have, such as `pass-2`, stay ordinary ones.
    return f"pile:pass:{seat}"


def is_pass_pile(stack: str) -> bool:
    """Whether `stack` is the name of such a pile."""
    return _PASS_PILE.fullmatch(stack) is not None


def passed_to(stack: str) -> int:
    """The seat that the cards of such a pile wait for."""
    return int(stack.rpartition(":")[2])


def is_stack(text: str) -> bool:
    """Whether `text` is the name of a stack; a seat is 1 to 2^32 - 1."""
    match = _STACK.fullmatch(text)
    return match is not None and int(match["seat"] or 1) <= SEAT_MAX


def seat_of(stack: str) -> int | None:
    """The seat that owns this hand; None for the deck and for piles. `stack` must be valid."""
    return int(stack[5:]) if stack.startswith("hand:") else None
