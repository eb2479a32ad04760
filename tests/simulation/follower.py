"""A follower of the feed, as another server is: it asks for pages, and keeps its position."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tests.simulation.loop import Domain

if TYPE_CHECKING:
    from tests.simulation.world import World


class Follower:
    """Asks any node for what comes after its position; `found` has the versions of each table."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.domain = Domain("follower")
        world.domains.append(self.domain)
        self.position = "start"
        self.found: dict[str, list[str]] = {}
        self.skipped: set[str] = set()
        self.lost = 0
        self.key = ""

    def start(self, key: str) -> None:
        self.key = key
        self.world.loop.create_task(self._run(), context=self.domain.context)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(4.0):
                    await self._page()
            except (OSError, TimeoutError, EOFError, ValueError, IndexError):
                pass
            await asyncio.sleep(0.7)

    async def _page(self) -> None:
        reader, writer = await asyncio.open_connection("house", 80)
        try:
            request = (
                f"GET /feed?after={self.position}&wait=0 HTTP/1.1\r\nHost: house\r\n"
                f"Authorization: Bearer {self.key}\r\nConnection: close\r\n\r\n"
            )
            writer.write(request.encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            if " 410 " in head.split("\r\n")[0]:
                self.lost += 1
                self.position = "start"
                self.found.clear()
                self.skipped.clear()
                return
            if " 200 " not in head.split("\r\n")[0]:
                return
            if "transfer-encoding: chunked" in head:
                while size := int(await reader.readline(), 16):
                    self._take(await reader.readexactly(size))
                    await reader.readline()
            else:
                self._take(await reader.read())
        finally:
            writer.close()

    def _take(self, data: bytes) -> None:
        for line in data.splitlines():
            if not line.strip():
                continue
            entry = json.loads(line)
            self.position = entry["position"]
            self._entry(entry, line)

    def _entry(self, entry: dict[str, object], line: bytes) -> None:
        table = str(entry["table"])
        if "skipped" in entry:
            self.skipped.add(table)
            return
        found, version = self.found.setdefault(table, []), int(str(entry["version"]))
        if table in self.skipped:
            return
        if self.world.restored_while_running:
            return  # the operator restarts the nodes after a restore, and positions are lost
        if version != len(found) + 1:
            self.world.fault(f"the feed has version {version} of {table[:8]} after {len(found)}")
            return
        leaf = line[line.index(b'"event":') + 8 : -1].decode()
        found.append(leaf)
        if leaf not in self.world.witness.ever.get((table, version), ()):
            self.world.fault(f"the feed has a version {version} that is not in the log")
