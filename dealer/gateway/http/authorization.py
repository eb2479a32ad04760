"""Bearer credentials in the header `Authorization`: tokens of tables, and service keys."""

from __future__ import annotations

import re
from http import HTTPStatus

from websockets.datastructures import Headers
from websockets.http11 import Response

from dealer.gateway.http.responses import response

_BEARER = re.compile(r"Bearer +(?P<token>[!-~]+)", re.IGNORECASE)
_SERVICE_KEY = "dk_"


def bearer_of(headers: Headers) -> str | None:
    """The bearer credential of a request; None without one, or with another scheme.

    Raises MultipleValuesError where the header occurs twice.
    """
    found = _BEARER.fullmatch(headers.get("Authorization", "").strip())
    return None if found is None else found["token"]


def service_key_of(headers: Headers) -> str | None:
    """The credential if it is meant to be a service key; None for any other."""
    given = bearer_of(headers)
    return given if given is not None and given.startswith(_SERVICE_KEY) else None


def unauthorized(sentence: str) -> Response:
    """401 with the sentence."""
    return response(HTTPStatus.UNAUTHORIZED, f"{sentence}\n", WWW_Authenticate="Bearer")
