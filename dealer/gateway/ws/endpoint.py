"""The WebSocket endpoint: its path, with or without a table, and its subprotocol."""

from __future__ import annotations

import re
from collections.abc import Sequence

from websockets.exceptions import NegotiationError
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from dealer.gateway.wire.protocol import PROTOCOL

_WS = re.compile(r"/ws(?:/(?P<table>[0-9a-f]{32}))?/?")


def is_socket(path: str) -> bool:
    """Whether a request path is that of the WebSocket endpoint."""
    return _WS.fullmatch(path.partition("?")[0]) is not None


def table_in(path: str) -> str | None:
    """The table's id in `/ws/<table>`."""
    match = _WS.fullmatch(path.partition("?")[0])
    return None if match is None else match["table"]


def select_subprotocol(
    protocol: ServerProtocol, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    """`dealer.v1` if it is offered; none if none is; 400 if only others are."""
    if PROTOCOL in offered:
        return Subprotocol(PROTOCOL)
    if offered:
        raise NegotiationError(f"this server speaks {PROTOCOL}")
    return None
