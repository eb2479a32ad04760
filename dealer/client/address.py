"""The address of a server's WebSocket: `…/ws`, or `…/ws/<table>` for a load balancer to hash on."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from dealer.errors import BadRequest

_TABLE_ID = re.compile(r"[0-9a-f]{32}")


def require_table_id(table: str) -> str:
    """The id itself; BadRequest if it cannot be a table's."""
    if not _TABLE_ID.fullmatch(table):
        raise BadRequest("A table's id has 32 hexadecimal digits (0-9, a-f): copy it whole.")
    return table


class ServerAddress:
    """`server` is the URL that the user gave; an id that is no table's is never put into it."""

    def __init__(self, server: str, table: str | None = None) -> None:
        self._server = server
        self._table: str | None = None
        if table is not None:
            self.route_to(table)

    def route_to(self, table: str) -> bool:
        """Use this table's address from now on; whether that is another one than before."""
        if table == self._table or not _TABLE_ID.fullmatch(table):
            return False
        before, self._table = self.url, table
        return self.url != before

    @property
    def url(self) -> str:
        """The URL to connect to; the server's own if that does not end in `/ws`."""
        parts = urlsplit(self._server)
        path = parts.path.rstrip("/")
        if self._table is None or not path.endswith("/ws"):
            return self._server
        return urlunsplit(parts._replace(path=f"{path}/{self._table}"))
