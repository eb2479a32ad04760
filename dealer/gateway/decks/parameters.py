"""Parameters of a request: from its query, and with POST also from a form or a JSON object.

What an operation does not know might ask for other cards, so it is refused. Only what browsers and
sites add to addresses is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from difflib import get_close_matches
from email.parser import BytesParser
from email.policy import HTTP
from http import HTTPStatus
from itertools import chain
from typing import cast
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest
from dealer.game.cards import SHOE_MAX
from dealer.gateway.decks.cards import JOKERS, codes_in, logged, standard

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
        number = self._number("count")
        if number < 0:
            raise BadRequest(f"count is the number of cards to draw, 0 or more, and not {number}.")
        return number

    def decks(self) -> int:
        """How many decks a new deck has, 1 if that was not given."""
        number = self._number("deck_count")
        if number > SHOE_MAX:
            raise OriginalError(f"The max number of Decks is {SHOE_MAX}.", HTTPStatus.OK)
        if number < 1:
            raise OriginalError("The min number of Decks is 1.", HTTPStatus.OK)
        return number

    def _number(self, name: str) -> int:
        text = self._given.get(name, "1").strip()
        if not _WHOLE.fullmatch(text):
            raise BadRequest(f"{name} is a whole number, like {name}=2.")
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
