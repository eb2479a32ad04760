"""The follower of the feed in the core world: reads pages of any node from its position on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dealer.errors import PositionLost
from dealer.feed.pages import FeedFilter
from dealer.feed.positions import START
from dealer.service import Service

if TYPE_CHECKING:
    from tests.simulation.core.world import CoreWorld


class FeedFollower:
    """`found` has the leaves of each table in the feed, `skipped` the tables that were archived."""

    def __init__(self, world: CoreWorld) -> None:
        self._world = world
        self._position = START
        self._turn = 0
        self.found: dict[str, list[str]] = {}
        self.skipped: set[str] = set()

    async def page(self, service: Service) -> bool:
        """Read one page; whether there is more.

        A newer call takes over from one that is still under way, perhaps at a node that died.
        """
        feed = service.feed
        if not feed.enabled():
            return False
        self._turn += 1
        turn = self._turn
        try:
            place = await feed.place(self._position)
        except PositionLost:
            if turn == self._turn:
                self._position = START
                self.found.clear()
                self.skipped.clear()
            return True
        page = await feed.reader.read(place, FeedFilter(), limit=7)
        if turn != self._turn:
            return True
        for entry in page.entries:
            self._position = entry.position
            self._take(entry.table.hex(), entry.version, entry.type, entry.text)
        return page.more

    def _take(self, table: str, version: int, type: str, text: str) -> None:
        if not type:
            self.skipped.add(table)
        if table in self.skipped or self._world.restored_while_running:
            return
        found = self.found.setdefault(table, [])
        if version != len(found) + 1:
            self._world.fault(f"the feed has version {version} of {table[:8]} after {len(found)}")
            return
        leaf = text[text.index('"event":') + 8 : -1]
        found.append(leaf)
        if leaf not in self._world.witness.ever.get((table, version), ()):
            self._world.fault(f"the feed has a version {version} that is not in the log")
