"""Parameters of a request: from its query, and with POST also from a form or a JSON object.

What an operation does not know might ask for other cards, so it is refused. Only what browsers and
sites add to addresses is ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest
from dealer.game.cards import SHOE_MAX

FIELDS = 64
"""The most parameters of one request."""

IGNORED = frozenset(("t", "ts", "timestamp", "nocache", "fbclid", "gclid"))
"""What pages add against caches, and sites to links, besides names that begin with these:"""

IGNORED_STARTS = ("_", "utm_")

_WHOLE = re.compile("[+-]?[0-9]{1,9}")
_DECK_TYPE = (
    "deck_type has no meaning here: every deck is of 52 French cards, with jokers_enabled=true of "
    "54, and with cards=AS,0D,KH of these."
)


class OriginalError(BadRequest):
    """An error that the original answers with the status 200."""


class Parameters:
    """The parameters of one request, by name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    @classmethod
    def read(cls, request: Request, body: bytes) -> Parameters:
        """Those of a request, in the query and in the body.

        Raises BadRequest for more than `FIELDS` in either, for one that has two values, and for a
        body of another type.
        """
        _, _, query = request.path.partition("?")
        try:
            in_query, in_body = _form(query), _in_body(request, body)
        except (ValueError, RecursionError):
            raise BadRequest("The parameters of this request cannot be read.") from None
        for name in in_query.keys() & in_body.keys():
            if in_query[name] != in_body[name]:
                raise BadRequest(
                    f"{json.dumps(name[:32])} has two values, in the query and in the body."
                )
        return cls(in_query | in_body)

    def require(self, known: Collection[str], deck: str) -> None:
        """Refuse what an operation on this deck does not know; `known` are its parameters."""
        for name, value in self._given.items():
            if name in known or name in IGNORED or name.startswith(IGNORED_STARTS):
                continue
            if name == "deck_id" and value == deck:
                continue
            if name == "deck_type":
                raise BadRequest(_DECK_TYPE)
            raise BadRequest(f"{json.dumps(name[:32])} is no parameter here{_advice(name, known)}")

    def text(self, name: str) -> str | None:
        """The text of a parameter; None if it was not given."""
        return self._given.get(name)

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


def _in_body(request: Request, body: bytes) -> dict[str, str]:
    """The fields of a form or of a JSON object."""
    kind = "".join(request.headers.get_all("Content-Type")[-1:])
    name = kind.partition(";")[0].strip().lower()
    if not body or request.method != "POST":
        return {}
    if name == "application/x-www-form-urlencoded":
        return _form(body.decode())
    if name == "multipart/form-data":
        return _multipart(kind, body)
    if name == "application/json":
        given = json.loads(body, object_pairs_hook=_members)
        if given is None:
            return {}
        if isinstance(given, dict):
            return given
    raise BadRequest(
        "The body is neither a form nor a JSON object with its Content-Type: put the parameters "
        "into the query, like ?count=2."
    )


def _advice(name: str, known: Collection[str]) -> str:
    if not known:
        return ": there are none."
    similar = get_close_matches(name.strip("[]").lower(), known, n=1)
    return f": did you mean {similar[0]}?" if similar else f": use {', '.join(known)}."


def _form(text: str) -> dict[str, str]:
    return _once(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS))


def _members(pairs: list[tuple[str, object]]) -> dict[str, str]:
    _require_few(len(pairs))
    return _once((name, _text(value)) for name, value in pairs if value is not None)


def _once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters by name; BadRequest for one with two values, of which one would not count."""
    values = set(pairs)
    for name, times in Counter(name for name, _ in values).items():
        if times > 1:
            raise BadRequest(f"{json.dumps(name[:32])} is given twice, with different values.")
    return dict(values)


def _require_few(number: int) -> None:
    if number > FIELDS:
        raise ValueError(f"{number} parameters")


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _multipart(kind: str, body: bytes) -> dict[str, str]:
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    parts = BytesParser(policy=HTTP).parsebytes(head + body)
    found: list[tuple[str, str]] = []
    for number, part in enumerate(parts.iter_parts(), 1):
        _require_few(number)
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            found.append((name, content.decode()))
    return _once(found)
