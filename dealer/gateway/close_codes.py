"""Close codes of the WebSocket connections, and what each means for the client."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Code(IntEnum):
    """Codes with a `meaning`, which is a sentence."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


RESTART = "the server restarts: reconnect and resume"
"""The reason of `CloseCode.SERVICE_RESTART`."""


class CloseCode(Code):
    """Codes of RFC 6455, section 7.4, and private ones from 4400.

    A client reconnects after each of them except 1009, 4401, 4408 and 4409, which are final.
    """

    SERVICE_RESTART = (
        1012,
        "The server restarts: reconnect, not before the time given in `session.drain`, and resume.",
    )
    INVALID_DATA = 1007, "A text message was not UTF-8."
    UNSUPPORTED_DATA = 1003, "Binary frames are not accepted."
    MESSAGE_TOO_BIG = 1009, "The message is longer than the limit; final, do not send it again."
    TRY_AGAIN_LATER = (
        1013,
        "The log cannot be read, or the table was archived: reconnect later, and resume.",
    )
    KEY_REVOKED = 4401, "The service key or broadcast link of the connection was revoked; final."
    NO_REQUEST = 4408, "No request arrived in time; final."
    SUPERSEDED = 4409, "A newer connection took the same seat; final."
    TOO_SLOW = 4508, "The client did not read, or answer pings, in time: reconnect, and resume."
    RATE_LIMITED = 4529, "Too many requests: reconnect later, and resume."
