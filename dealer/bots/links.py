"""Addresses of tables: an id, or a link as the pages give it.

0123…                                              an id, at the server that is named elsewhere
http://localhost:8080/tables/0123…#invite=…        a link for players
https://cards.example.org/tables/0123…#ticket=…    a link for one player
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from dealer.errors import BadRequest

_ID = re.compile(r"[0-9a-f]{32}")
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_PATH = re.compile(
    r"(?P<base>.*?)/+(?:tables|ws)/(?P<table>[0-9a-f]{32})(?:[^0-9A-Za-z/].*|/[^0-9A-Za-z]*)?",
    re.DOTALL,
)
"""The path of a table's page, and what the text around a link left at its end."""


class TableLink(NamedTuple):
    """A table: the server's address (`ws://…/ws`), the table's id, and what the link gives.

    `invite` admits any player; a `ticket` and a `token` are for the seat of one player.
    """

    server: str
    table: str
    invite: str | None = None
    ticket: str | None = None
    token: str | None = None


def read_link(text: str, *, server: str) -> TableLink:
    """The table that `text` means, an id at `server` or a link; BadRequest if it is neither."""
    if _ID.fullmatch(digits := text.strip().lower().replace("-", "")):
        return TableLink(socket_address(server), digits)
    parts = urlsplit(text.strip())
    found = _PATH.fullmatch(unquote(parts.path))
    if parts.scheme not in _SCHEMES or not parts.netloc or found is None:
        raise BadRequest(
            "Give a table as its id, 32 hexadecimal digits, or as a link like "
            "http://localhost:8080/tables/… that the table's page shows under Invite."
        )
    given = {name: values[-1] for name, values in parse_qs(parts.fragment).items()}
    address = (_SCHEMES[parts.scheme], parts.netloc, f"{found['base']}/ws", "", "")
    return TableLink(
        urlunsplit(address),
        found["table"],
        *(_secret(given.get(name)) for name in ("invite", "ticket", "seat")),
    )


def _secret(text: str | None) -> str | None:
    """A secret of a link, without what the text around the link left at its end."""
    return None if text is None else re.sub(r"[^0-9A-Za-z_-]+\Z", "", text)


def socket_address(server: str) -> str:
    """The WebSocket address of a server that is given as such, or as the address of its pages."""
    parts = urlsplit(server)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise BadRequest(f"{server} is no address of a server, like ws://localhost:8080/ws.")
    path = parts.path.rstrip("/")
    if parts.scheme in ("http", "https"):
        path = f"{path.removesuffix('/ws')}/ws"
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path or "/ws", "", ""))


def page_address(server: str) -> str:
    """The address of the pages of a server, without a slash at the end.

    `server` is an address as `socket_address` returns it.
    """
    parts = urlsplit(server)
    scheme = "https" if parts.scheme == "wss" else "http"
    return urlunsplit((scheme, parts.netloc, parts.path.removesuffix("/ws"), "", ""))
