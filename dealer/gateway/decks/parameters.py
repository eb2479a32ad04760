"""Parameters of a request: from its query, and with POST also from a form or a JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from websockets.http11 import Request

from dealer.errors import BadRequest
from dealer.game.cards import SHOE_MAX

FIELDS = 64
"""The most parameters of one request."""

_WHOLE = re.compile("[+-]?[0-9]{1,9}")


class OriginalError(BadRequest):
    """An error that the original answers with the status 200."""


class Parameters:
    """The parameters of one request, by name; of one that occurs twice, the last."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    @classmethod
    def read(cls, request: Request, body: bytes) -> Parameters:
        """Those of a request; a parameter in the body replaces one in the query.

        Raises BadRequest for more than `FIELDS` in the query or in the body.
        """
        _, _, query = request.path.partition("?")
        try:
            given = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS))
            return cls(given | _in_body(request, body))
        except (ValueError, RecursionError):
            raise BadRequest("The parameters of this request cannot be read.") from None

    def text(self, name: str) -> str | None:
        """The text of a parameter; None if it was not given."""
        return self._given.get(name)

    def flag(self, name: str) -> bool | None:
        """Whether it is true; None if it is neither `true` nor `false`, in any case."""
        return {"true": True, "false": False}.get(self._given.get(name, "").lower())

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
    """The fields of a form or of a JSON object; no others, as with the original."""
    kind = "".join(request.headers.get_all("Content-Type")[-1:])
    name = kind.partition(";")[0].strip().lower()
    if not body or request.method != "POST":
        return {}
    if name == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS))
    if name == "multipart/form-data":
        return _multipart(kind, body)
    if name == "application/json":
        given = json.loads(body)
        if not isinstance(given, dict):
            return {}
        _require_few(len(given))
        return {name: _text(value) for name, value in given.items()}
    return {}


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
    found: dict[str, str] = {}
    for number, part in enumerate(parts.iter_parts(), 1):
        _require_few(number)
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            found[name] = content.decode()
    return found
