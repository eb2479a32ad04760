"""Access to the feed: what a service key may follow."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dealer.errors import BadRequest, NotEntitled, UnknownTable
from dealer.eventlog.owners import owner_of
from dealer.feed.reader import FeedFilter
from dealer.game.events import TYPES
from dealer.service.service import Service
from dealer.service.service_keys import ServiceKey

_TABLE = re.compile(r"[0-9a-f]{32}")


async def feed_filter(
    service: Service, key: ServiceKey, *, table: str | None, types: Sequence[str]
) -> FeedFilter:
    """What a key may follow of a table, or of all its tables.

    Raises NotEntitled without the right `read`, BadRequest for an unknown type, UnknownTable for a
    table that is none of the key's.
    """
    if not key.may("read"):
        raise NotEntitled("This key has not the right `read`.")
    unknown = sorted(set(types) - TYPES.keys())
    if unknown:
        raise BadRequest(
            f"There is no event type {unknown[0]!r}; there are {', '.join(sorted(TYPES))}."
        )
    everything = "admin" in key.rights
    wanted: bytes | None = None
    if table is not None:
        wanted = bytes.fromhex(table) if _TABLE.fullmatch(table) else b""
        known = len(wanted) == 16 and (
            await service.log.head(wanted) is not None
            if everything
            else await owner_of(service.log, wanted) == key.id
        )
        if not known:
            raise UnknownTable("This key has no such table.")
    return FeedFilter(None if everything else key.id, wanted, frozenset(types))
