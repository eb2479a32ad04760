"""Cards as deckofcardsapi names them: `AS`, `0D` for the ten of diamonds, jokers `X1` and `X2`.

The log has this server's codes, bottom first: `As`, `Td`, and `As.2` where a deck has a card more
than once. The original lists a deck top first. Pictures of cards are files of the pages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dealer.errors import BadRequest
from dealer.game.cards import DECK_MAX

CARDS: tuple[str, ...] = tuple(rank + suit for suit in "SDCH" for rank in "A234567890JQK")
JOKERS: tuple[str, ...] = ("X1", "X2")

_SUITS = {"S": "SPADES", "D": "DIAMONDS", "C": "CLUBS", "H": "HEARTS", "1": "BLACK", "2": "RED"}
_VALUES = {"A": "ACE", "0": "10", "J": "JACK", "Q": "QUEEN", "K": "KING", "X": "JOKER"}
_OWN = {code: code[0].replace("0", "T") + code[1].lower() for code in CARDS + JOKERS}
_SHOWN = {own: code for code, own in _OWN.items()}

_ACE_OF_DIAMONDS = "aceDiamonds"
"""The name of its picture, as in the original: blockers of advertisements block `AD.png`."""

_TEN = re.compile("^(10|T)(?=.$)")
"""How clients write it, too."""

_PICTURES = {"BACK": "back", _ACE_OF_DIAMONDS.upper(): "Ad"}
_PICTURE = re.compile(r"(?P<name>\w+)(?P<kind>\.svg|\.png)", re.IGNORECASE)


def codes_in(text: str) -> list[str]:
    """The codes of cards in a list like `as,10D`, in order, without its empty items.

    Raises BadRequest for an item that is no card: without it the answer would be of other cards.
    """
    found = []
    for item in filter(str.strip, text.split(",")):
        found.append(_TEN.sub("0", item.strip().upper()))
        if found[-1] not in _OWN:
            raise BadRequest(f"{json.dumps(item[:32])} is no card: name cards like AS,0D,KH,X1.")
    return found


def standard(*, jokers: bool) -> list[str]:
    """The codes of one whole deck, top first."""
    return [*CARDS, *JOKERS] if jokers else list(CARDS)


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
    codes = [_OWN[code] for code in (*contents,) * decks]
    most = max(Counter(codes).values())
    if most > 1:
        numbers = Counter[str]()
        for place, code in enumerate(codes):
            numbers[code] += 1
            codes[place] = f"{code}.{numbers[code]:0{len(str(most))}}"
    return tuple(reversed(codes))


def contents_of(opened: Sequence[str], decks: int) -> list[str]:
    """The codes of one of the `decks` decks that a round was opened with, top first."""
    return [shown(code) for code in opened[: -len(opened) // decks - 1 : -1]]


def shown(code: str) -> str:
    """The original's code of a card in the log."""
    return _SHOWN[code[:2]]


def described(code: str, images: str) -> dict[str, Any]:
    """A card as a member of an answer; its pictures are below the address `images`."""
    name = f"{images}/{_ACE_OF_DIAMONDS if code == 'AD' else code}"
    return {
        "code": code,
        "image": f"{name}.png",
        "images": {"svg": f"{name}.svg", "png": f"{name}.png"},
        "value": _VALUES.get(code[0], code[0]),
        "suit": _SUITS[code[1]],
    }


def picture(file: str) -> str:
    """The file of the pages with the picture of this name, such as `10h.png`; "" for no card's."""
    found = _PICTURE.fullmatch(file)
    name = _TEN.sub("0", found["name"].upper()) if found else ""
    own = _PICTURES.get(name) or _OWN.get(name)
    return f"cards/{own}{found['kind'].lower()}" if found and own else ""
