"""What requests about decks say: their parameters, and the names of cards.

Parameters come from the query, and with POST also from a form or a JSON object. What an operation
does not know might ask for other cards, so it is refused. Only what browsers and sites add to
addresses is ignored.

Cards are named as deckofcardsapi does: `AS`, `0D` for the ten of diamonds, jokers `X1` and `X2`.
The log has this server's codes, bottom first: `As`, `Td`, and `As.2` if a deck has a card more
than once. The original lists a deck top first. Pictures of cards are files of the pages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from difflib import get_close_matches
from http import HTTPStatus
from itertools import chain
from typing import Any, cast
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest
from dealer.game.cards import DECK_MAX, SHOE_MAX

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


FIELDS = 64
"""The most parameters in the query, and in the body."""

_IGNORED = re.compile("_.*|utm_.*|t|ts|timestamp|nocache|fbclid|gclid", re.DOTALL)
"""What pages add against caches, and sites to links."""

_WHOLE = re.compile("[+-]?[0-9]{1,9}")
_DECK_TYPE = (
    "deck_type has no meaning here: every deck is of 52 French cards, with jokers_enabled=true of "
    "54, and with cards=AS,0D,KH of these."
)

Fields = list[tuple[str, str]]
"""Names and values, in order."""


class OriginalError(BadRequest):
    """An error that the original answers with this status."""

    def __init__(self, sentence: str, status: HTTPStatus = HTTPStatus.NOT_FOUND) -> None:
        super().__init__(sentence)
        self.status = status


class Parameters:
    """The parameters of one request, by name.

    Raises BadRequest for more than `FIELDS` in the query or in the body, for one that has two
    values, and for a body of another type.
    """

    def __init__(self, request: Request, body: bytes) -> None:
        found: list[Fields] = []
        with suppress(ValueError, RecursionError):
            query = request.path.partition("?")[2]
            found = [parse_qsl(query, keep_blank_values=True), _fields_of(request, body)]
        if not found or max(map(len, found)) > FIELDS:
            raise BadRequest("The parameters of this request cannot be read.")
        self._given: dict[str, str] = {}
        for name, value in chain(*found):
            if self._given.setdefault(name, value) != value:
                twice = f"{json.dumps(name[:32])} is given twice, with different values."
                raise BadRequest(twice)

    def require(self, known: Collection[str], deck: str) -> None:
        """Refuse what an operation on this deck does not know; `known` are its parameters."""
        for name, value in self._given.items():
            if name in known or _IGNORED.fullmatch(name) or (name == "deck_id" and value == deck):
                continue
            if name == "deck_type":
                raise BadRequest(_DECK_TYPE)
            advice = f": use {', '.join(known)}." if known else ": there are none."
            for similar in get_close_matches(name.strip("[]").lower(), known, n=1):
                advice = f": did you mean {similar}?"
            raise BadRequest(f"{json.dumps(name[:32])} is no parameter here{advice}")

    def has(self, name: str) -> bool:
        """Whether it was given."""
        return name in self._given

    def cards(self) -> list[str] | None:
        """The codes that it names; None if it names none at all."""
        return codes_in(self._given["cards"]) if "cards" in self._given else None

    def contents(self) -> list[str] | None:
        """The codes for a deck, which may be jokers unless jokers are ruled out."""
        named = self.cards()
        if named is not None and self.flag("jokers_enabled") is False and {*JOKERS} & {*named}:
            raise BadRequest(
                "cards names jokers, but jokers_enabled is false: leave one of them out."
            )
        return named

    def opened_with(self) -> tuple[str, ...]:
        """The cards that a new deck is opened with, bottom first, as `logged` returns them."""
        self.count()  # refused before a deck is opened
        named, whole = self.contents(), standard(jokers=bool(self.flag("jokers_enabled")))
        return logged(whole if named is None else named, self.decks())

    def flag(self, name: str) -> bool | None:
        """Whether it is true; None if it was not given, or is empty."""
        text = self._given.get(name, "").strip().lower()
        if text not in ("true", "false", ""):
            raise BadRequest(f"{name} is true or false.")
        return text == "true" if text else None

    def count(self) -> int:
        """How many cards to draw, 1 if that was not given."""
        number = self._number("count", f"a whole number of cards, 0 to {DECK_MAX}")
        if number < 0:
            raise BadRequest(f"count is the number of cards to draw, 0 or more, and not {number}.")
        return number

    def decks(self) -> int:
        """How many decks a new deck has, 1 if that was not given."""
        number = self._number("deck_count", f"a whole number of decks, 1 to {SHOE_MAX}")
        if number > SHOE_MAX:
            raise OriginalError(f"The max number of Decks is {SHOE_MAX}.", HTTPStatus.OK)
        if number < 1:
            raise OriginalError("The min number of Decks is 1.", HTTPStatus.OK)
        return number

    def _number(self, name: str, meaning: str) -> int:
        text = self._given.get(name, "1").strip()
        if not _WHOLE.fullmatch(text):
            raise BadRequest(f"{name} is {meaning}, like {name}=2.")
        return int(text)


def _fields_of(request: Request, body: bytes) -> Fields:
    """The fields of a form, of either type, or of a JSON object; none without a POST's body.

    Members of JSON that are null are left out, and lists are texts with commas. Raises BadRequest
    for another type of body, and ValueError or RecursionError for one that cannot be read.
    """
    if not body or request.method != "POST":
        return []
    kind = "".join(request.headers.get_all("Content-Type")[-1:])
    match kind.partition(";")[0].strip().lower():
        case "application/x-www-form-urlencoded":
            return parse_qsl(body.decode(), keep_blank_values=True)
        case "multipart/form-data":
            from email.parser import BytesParser
            from email.policy import HTTP

            head = f"Content-Type: {kind}\r\n\r\n".encode()
            parts = BytesParser(policy=HTTP).parsebytes(head + body).iter_parts()
            named = [(part.get_param("name", header="content-disposition"), part) for part in parts]
            return [
                (name, cast("bytes", part.get_payload(decode=True)).decode())
                for name, part in named
                if isinstance(name, str) and not part.is_multipart()
            ]
        case "application/json":
            members = json.loads(body, object_pairs_hook=tuple)
            if members is None or isinstance(members, tuple):
                return [(name, _text(value)) for name, value in members or () if value is not None]
    raise BadRequest(
        "The body is neither a form nor a JSON object with its Content-Type: put the parameters "
        "into the query, like ?count=2."
    )


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
