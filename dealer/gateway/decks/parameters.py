"""Parameters of a request: from its query, and with POST also from a form or a JSON object.

What an operation does not know might ask for other cards, so it is refused. Only what browsers and
sites add to addresses is ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from difflib import get_close_matches
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest
from dealer.game.cards import SHOE_MAX
from dealer.gateway.decks.cards import codes_in
from dealer.gateway.net.forms import fields_of

FIELDS = 64
"""The most parameters in the query, and in the body."""

_IGNORED = re.compile("_.*|utm_.*|t|ts|timestamp|nocache|fbclid|gclid", re.DOTALL)
"""What pages add against caches, and sites to links."""

_WHOLE = re.compile("[+-]?[0-9]{1,9}")
_DECK_TYPE = (
    "deck_type has no meaning here: every deck is of 52 French cards, with jokers_enabled=true of "
    "54, and with cards=AS,0D,KH of these."
)


class OriginalError(BadRequest):
    """An error that the original answers with the status 200."""


class Parameters:
    """The parameters of one request, by name.

    Raises BadRequest for more than `FIELDS` in the query or in the body, for one that has two
    values, and for a body of another type.
    """

    def __init__(self, request: Request, body: bytes) -> None:
        try:
            in_query = _once(parse_qsl(request.path.partition("?")[2], keep_blank_values=True))
            in_body = _once(fields_of(request, body))
        except (ValueError, RecursionError):
            raise BadRequest("The parameters of this request cannot be read.") from None
        for name in in_query.keys() & in_body.keys():
            if in_query[name] != in_body[name]:
                raise BadRequest(
                    f"{json.dumps(name[:32])} has two values, in the query and in the body."
                )
        self._given = in_query | in_body

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
            raise OriginalError(f"The max number of Decks is {SHOE_MAX}.")
        if number < 1:
            raise OriginalError("The min number of Decks is 1.")
        return number

    def _number(self, name: str) -> int:
        text = self._given.get(name, "1").strip()
        if not _WHOLE.fullmatch(text):
            raise BadRequest(f"{name} is a whole number, like {name}=2.")
        return int(text)


def _once(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The parameters by name; BadRequest for one with two values, of which one would not count."""
    if len(pairs) > FIELDS:
        raise ValueError(f"{len(pairs)} parameters")
    values = set(pairs)
    for name, times in Counter(name for name, _ in values).items():
        if times > 1:
            raise BadRequest(f"{json.dumps(name[:32])} is given twice, with different values.")
    return dict(values)
