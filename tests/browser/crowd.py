"""A table full of players: some in browsers, the others Python clients, which need no clicks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from playwright.async_api import Page, expect

from dealer.client import RemoteTable, RetryPolicy, connect
from tests.browser.table_page import own_cards
from tests.harness.server_process import PATIENT, ServerProcess

QUICK = RetryPolicy(backoff=0.02, backoff_max=0.25, attempts=1000)
NAMES = (
    "Bo",
    "Maximiliane-Josephine",
    "Wolfeschlegelsteinhausenbergerdorff",
    "欧阳慕容上官司马诸葛夏侯",
    "عبد الرحمن بن عبد العزيز",
    "Ann-Sophie van der Valk",
    "Zoë",
    "WWWWWWWWWWWWWWWW",
    "Jean-Baptiste",
    "Kim",
)


@dataclass
class Crowd:
    """`host` is a Python client in seat 1, and `players` are all Python clients by seat."""

    id: str
    host: RemoteTable
    players: dict[int, RemoteTable] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/tables/{self.id}"

    async def start(self, **options: Any) -> None:
        """Open and shuffle a round."""
        await self.host.round_open(**options)
        await self.host.shuffle()

    async def pile(self, name: str, cards: int = 1, face: Literal["up", "down"] = "up") -> None:
        """Put cards from the deck onto a pile."""
        await self.host.move("deck", to=f"pile:{name}", count=cards, face=face)


async def has_cards(page: Page, count: int) -> None:
    """Wait until a page shows this many cards of its own."""
    await expect(own_cards(page)).to_have_count(count)


@asynccontextmanager
async def crowd(server: ServerProcess, python_players: int) -> AsyncIterator[Crowd]:
    """A table of ten seats, at which this many Python clients sit from seat 1 on."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [
            await stack.enter_async_context(connect(server.url, name=name, patience=QUICK))
            for name in NAMES[:python_players]
        ]
        opened = await houses[0].open(name="Friday", seats=10)
        tables = [await house.join(opened.id) for house in houses]
        yield Crowd(opened.id, tables[0], {table.seat or 0: table for table in tables})
