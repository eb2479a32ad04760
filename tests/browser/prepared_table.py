"""Tables that Python clients have prepared: pages come to seats there by the players' own links.

For tests whose subject is neither the lobby nor the joining nor the shuffle in the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from dealer.client import RemoteTable, connect
from tests.harness.malicious_server import MaliciousServer
from tests.harness.server_process import PATIENT, ServerProcess


async def prepared_table(
    server: ServerProcess | MaliciousServer,
    names: Sequence[str],
    *,
    deal: int | None,
    rules: Mapping[str, Any] | None = None,
) -> list[str]:
    """The paths by which pages continue as these players, the first of whom is the host.

    They sit from seat 1 on, as at a table that the lobby opens. A round is shuffled, with `deal`
    cards for each; with None there is no round.
    The pages cannot shuffle again in that round: the clients have committed to the bytes for it.
    """
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [await stack.enter_async_context(connect(server.url, name=name)) for name in names]
        opened = await houses[0].open(name=f"{names[0]}’s table", seats=6, rules=dict(rules or {}))
        tables: list[RemoteTable] = [await house.join(opened.id) for house in houses]
        await tables[0].until(lambda table: len(table.seats) == len(names))
        # Who has opened a table is its host by another token than that of the seat.
        await tables[0].transfer_host(1)
        if deal is not None:
            await tables[0].round_open()
            await tables[0].shuffle()
            await tables[0].deal(deal)
        return [f"/tables/{table.id}#seat={table.token}" for table in tables]
