"""Cards as deckofcardsapi names them: `AS`, `0D` for the ten of diamonds, jokers `X1` and `X2`.

The log has this server's codes, bottom first: `As`, `Td`, and `As.2` where a deck has a card more
than once. The original lists a deck top first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dealer.errors import BadRequest
from dealer.game.cards import DECK_MAX

CARDS: tuple[str, ...] = tuple(rank + suit for suit in "SDCH" for rank in "A234567890JQK")
JOKERS: tuple[str, ...] = ("X1", "X2")
ALL = frozenset(CARDS + JOKERS)
BACK = "back"

_SUITS = {"S": "SPADES", "D": "DIAMONDS", "C": "CLUBS", "H": "HEARTS", "1": "BLACK", "2": "RED"}
_VALUES = {"A": "ACE", "0": "10", "J": "JACK", "Q": "QUEEN", "K": "KING", "X": "JOKER"}

ACE_OF_DIAMONDS = "aceDiamonds"
"""The name of its picture, as in the original: blockers of advertisements block `AD.png`."""


def code_of(text: str) -> str | None:
    """The code of a card as clients write it: in any case, its ten `0S`, `10S` or `TS`."""
    code = text.strip().upper()
    if code[:-1] in ("10", "T"):
        code = f"0{code[-1]}"
    return code if code in ALL else None


def codes_in(text: str) -> list[str]:
    """The codes of cards in a list like `as,10D`, in order, without its empty items.

    Raises BadRequest for an item that is no card: without it the answer would be of other cards.
    """
    found = []
    for item in filter(str.strip, text.split(",")):
        code = code_of(item)
        if code is None:
            raise BadRequest(f"{json.dumps(item[:32])} is no card: name cards like AS,0D,KH,X1.")
        found.append(code)
    return found


def standard(*, jokers: bool) -> list[str]:
    """The codes of one whole deck, top first."""
    return [*CARDS, *JOKERS] if jokers else list(CARDS)


def is_standard(contents: Sequence[str]) -> bool:
    """Whether these are the codes of one whole deck, with jokers or without."""
    return list(contents) in (standard(jokers=False), standard(jokers=True))


def logged(contents: Sequence[str], decks: int) -> tuple[str, ...]:
    """The deck as a round is opened with it: `decks` times the codes in `contents`.

    Raises BadRequest for no card, and for more than the log's limit.
    """
    if not contents:
        raise BadRequest("A deck has a card at least: name cards like AS,0D,KH,X1.")
    total = len(contents) * decks
    if total > DECK_MAX:
        raise BadRequest(
            f"A deck has at most {DECK_MAX} cards; {decks} x {len(contents)} are {total}."
        )
    codes = [_own(code) for code in (*contents,) * decks]
    most = max(Counter(codes).values())
    if most > 1:
        width, numbers = len(str(most)), Counter[str]()
        for place, code in enumerate(codes):
            numbers[code] += 1
            codes[place] = f"{code}.{numbers[code]:0{width}}"
    return tuple(reversed(codes))


def contents_of(opened: Sequence[str], decks: int) -> list[str]:
    """The codes of one of the `decks` decks that a round was opened with, top first."""
    return [shown(code) for code in opened[: -len(opened) // decks - 1 : -1]]


def shown(code: str) -> str:
    """The original's code of a card in the log."""
    value, suit = code[0], code[1]
    return code[:2] if value == "X" else ("0" if value == "T" else value) + suit.upper()


def described(codes: Iterable[str], images: str) -> list[dict[str, Any]]:
    """Cards as members of an answer; their pictures are below the address `images`."""
    return [_described(code, images) for code in codes]


def _described(code: str, images: str) -> dict[str, Any]:
    name = f"{images}/{ACE_OF_DIAMONDS if code == 'AD' else code}"
    value, suit = code[0], code[1]
    return {
        "code": code,
        "image": f"{name}.png",
        "images": {"svg": f"{name}.svg", "png": f"{name}.png"},
        "value": _VALUES.get(value, value),
        "suit": _SUITS[suit],
    }


def _own(code: str) -> str:
    value, suit = code[0], code[1]
    return code if value == "X" else ("T" if value == "0" else value) + suit.lower()
