"""Evidence: what the agent can prove about a table, by its own verification of the whole log."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request

from dealer.bots.links import page_address
from dealer.client import RemoteTable
from dealer.errors import HouseUnreachable
from dealer.outgoing import opener
from dealer.proof import bundle
from dealer.proof.verify import verify

FETCH_SECONDS = 60.0

LONGEST = 256 * 1024 * 1024
"""Bytes of a bundle that are read; a longer one does not verify."""


class _NoRedirects(HTTPRedirectHandler):
    """The token is for this server only."""

    def redirect_request(self, *_: Any) -> None:
        return None


async def evidence_of(table: RemoteTable, server: str) -> dict[str, Any]:
    """The verification of the table's bundle.

    It is under the table's key that the client has pinned and the signed heads that it stored.

    `verified` is whether no check failed; `report` has a line for each check. `bundle` and `audit`
    are addresses at which others check it. `fraud` is evidence against the house, if there is any.
    """
    pages = page_address(server)
    path = (await table.bundle())["url"]
    if not path.startswith("/"):  # it might name another host
        raise HouseUnreachable("The server gave no path for the bundle.")
    address = f"{pages}{path}"
    lines = bundle.read(await asyncio.to_thread(_fetch, address, table.token))
    report = await asyncio.to_thread(lambda: verify(lines, key=table.key, saved=table.checkpoints))
    found = {
        "verified": report.ok,
        "report": report.lines(),
        "bundle": address,
        "audit": f"{pages}/tables/{table.id}/audit",
        "open_round": table.round,
    }
    return found if table.evidence is None else found | {"fraud": table.evidence.to_json()}


def _fetch(address: str, token: str | None) -> bytes:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        request = Request(address, headers=headers)
        with opener(_NoRedirects).open(request, timeout=FETCH_SECONDS) as answer:
            body: bytes = answer.read(LONGEST)
            return body
    except (OSError, URLError) as error:
        raise HouseUnreachable(f"The bundle at {address} could not be read: {error}") from error
