"""Followers for the tests: read the feed to its end, and check what they got."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Any

from dealer.feed.pages import FeedFilter
from dealer.feed.positions import Place
from dealer.service import LiveTable, Service

EVERYTHING = FeedFilter()


async def read_all(
    service: Service,
    filter: FeedFilter = EVERYTHING,
    *,
    after: str = "start",
    limit: int = 512,
) -> list[dict[str, Any]]:
    """All objects after a position, once everything committed is sequenced."""
    feed = service.feed
    await feed.scheduler.up_to_date()
    place = await feed.place(after)
    found: list[dict[str, Any]] = []
    more = True
    while more:
        page = await feed.reader.read(place, filter, limit=limit)
        place, more = page.place, page.more
        found += [json.loads(entry.text) for entry in page.entries]
    return found


async def next_page(service: Service, place: Place, filter: FeedFilter = EVERYTHING) -> Any:
    """The first page after a place that has objects."""
    async with asyncio.timeout(30):
        while True:
            page = await service.feed.reader.read(place, filter)
            if page.entries:
                return page
            place = page.place
            if not page.more:
                await service.feed.head.wait(place.seq - 1, seconds=1)


def versions(objects: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The versions of each table, in the order in which they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for each in objects:
        found[each["table"]].append(each["version"])
    return dict(found)


def complete(live_table: LiveTable) -> list[int]:
    """Every version of a table."""
    return list(range(1, live_table.committed + 1))
