"""The answers to requests that are refused or cannot be carried out."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Response

from dealer.errors import (
    BadRequest,
    BadToken,
    DealerError,
    Overloaded,
    RateLimited,
    Refused,
    TableArchived,
    Unavailable,
)
from dealer.gateway.http.responses import response


def refusal_of(error: MultipleValuesError | DealerError) -> Response:
    """The answer that an error of a request has: its sentence, and when to try again."""
    match error:
        case MultipleValuesError():
            return response(HTTPStatus.BAD_REQUEST, "A header occurs twice in the request.\n")
        case BadToken():
            return response(HTTPStatus.UNAUTHORIZED, f"{error}\n", WWW_Authenticate="Bearer")
        case TableArchived():
            return response(HTTPStatus.GONE, f"{error}\n")
        case RateLimited():
            seconds = str(ceil(error.retry_after_ms / 1000))
            status = HTTPStatus.SERVICE_UNAVAILABLE
            return response(status, f"{error}\n", Retry_After=seconds)
        case Overloaded() | Unavailable():
            return response(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n", Retry_After="5")
        case BadRequest():
            return response(HTTPStatus.BAD_REQUEST, f"{error}\n")
        case Refused():
            return response(HTTPStatus.NOT_FOUND, f"{error}\n")
        case _:
            sentence = "The log cannot be read at the moment; try again later.\n"
            return response(HTTPStatus.SERVICE_UNAVAILABLE, sentence)
