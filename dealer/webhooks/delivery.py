"""Delivery: sends one page of the feed to a webhook, each table's events in their order.

Events of several tables are sent at the same time, at most `CONCURRENT` of them. If a request
fails, the page is sent again later, without what was delivered before.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from dealer.feed.reader import Entry
from dealer.webhooks.addresses import AddressRefused
from dealer.webhooks.cloud_events import CONTENT_TYPE, body_of, id_of
from dealer.webhooks.requests import RequestFailed
from dealer.webhooks.signing import WebhookSigner

CONCURRENT = 8
"""Requests to one webhook at the same time."""

_GONE = 410


class Poster(Protocol):
    """Sends requests to one webhook."""

    async def post(self, headers: dict[str, str], body: bytes) -> int:
        """The status of the answer; raises RequestFailed or AddressRefused."""


class DeliveryFailed(Exception):
    """An event was not accepted; `gone` if the receiver wants no more."""

    def __init__(self, problem: str, *, gone: bool = False) -> None:
        super().__init__(problem)
        self.gone = gone


class Delivery:
    """Delivers the events of one page; `seconds` gives the time since 1970.

    `delivered` counts the accepted requests, `failed` those that were not.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        poster: Poster,
        signer: WebhookSigner,
        *,
        house: str,
        seconds: Callable[[], float],
    ) -> None:
        in_order = sorted(entries, key=attrgetter("table"))  # stable: versions stay in order
        self._tables = {
            table: list(group) for table, group in groupby(in_order, key=attrgetter("table"))
        }
        self._done: Counter[bytes] = Counter()
        self._poster = poster
        self._signer = signer
        self._house = house
        self._seconds = seconds
        self.delivered = 0
        self.failed = 0

    async def attempt(self) -> None:
        """Send what was not delivered yet; raises DeliveryFailed for the first failure."""
        turns = asyncio.Semaphore(CONCURRENT)
        left = [table for table, each in self._tables.items() if self._done[table] < len(each)]
        tasks = [asyncio.create_task(self._table(table, turns)) for table in left]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _table(self, table: bytes, turns: asyncio.Semaphore) -> None:
        async with turns:
            for entry in self._tables[table][self._done[table] :]:
                try:
                    await self._send(entry)
                except DeliveryFailed:
                    self.failed += 1
                    raise
                self.delivered += 1
                self._done[table] += 1

    async def _send(self, entry: Entry) -> None:
        body, id, timestamp = body_of(entry, house=self._house), id_of(entry), int(self._seconds())
        headers = {
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "dealer",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": self._signer.sign(id, timestamp, body),
        }
        try:
            status = await self._poster.post(headers, body)
        except (RequestFailed, AddressRefused) as error:
            raise DeliveryFailed(str(error)) from None
        if not 200 <= status < 300:
            redirected = ", and no redirect is followed" if 300 <= status < 400 else ""
            raise DeliveryFailed(f"the answer was {status}{redirected}", gone=status == _GONE)
