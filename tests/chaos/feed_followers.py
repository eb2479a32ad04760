"""Followers of `GET /feed` through a link that breaks their connections, one for each library.

A raw connection reads NDJSON; httpx-sse, and the npm package eventsource in a process of node, read
server-sent events. Each goes on after the last object that it read whole.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

from tests.harness.npm import BUILD, command
from tests.harness.relay import CHUNK, Relay, pass_on
from tests.harness.server_process import PATIENT

BYTES_MAX = 60_000
"""Of an answer, before its connection is cut."""

SECONDS_MIN, SECONDS_MAX = 0.5, 1.5
"""After which a connection is cut that got fewer bytes."""

LINE_MAX = 2**20

Leaves = dict[str, dict[int, str]]
"""The leaves of each table by version, as texts."""


@dataclass
class Followed:
    """One follower's figures: cuts of its connections, objects that came again, and its faults."""

    cuts: int = 0
    again: int = 0
    gaps: int = 0
    out_of_order: int = 0
    changed: int = 0
    missing: int = 0

    @property
    def faults(self) -> int:
        return self.gaps + self.out_of_order + self.changed + self.missing


class Collected:
    """What one follower received; versions of a table have to come in order, or again."""

    def __init__(self, figures: Followed) -> None:
        self.leaves: Leaves = defaultdict(dict)
        self.figures = figures

    def add(self, text: str) -> dict[str, Any]:
        """Add the text of an object of the feed; returns the object."""
        found: dict[str, Any] = json.loads(text)
        # The text of the leaf, not what a parser makes of it.
        leaf = text[text.index('"event":') + len('"event":') : -1]
        known, version = self.leaves[found["table"]], found["version"]
        due = max(known, default=0) + 1
        if version in known:
            self.figures.again += 1
            self.figures.changed += known[version] != leaf
            return found
        self.figures.gaps += version > due
        self.figures.out_of_order += version < due
        known[version] = leaf
        return found

    def has(self, leaves: Leaves) -> bool:
        return all(len(self.leaves[table]) >= len(known) for table, known in leaves.items())

    def compare(self, leaves: Leaves) -> None:
        """Count what the log has and the follower has not, or has otherwise."""
        for table, known in leaves.items():
            found = self.leaves.get(table, {})
            self.figures.missing += len(known.keys() - found.keys())
            self.figures.changed += sum(found.get(one, leaf) != leaf for one, leaf in known.items())


class CuttingLink(Relay):
    """Relays to the port `to()`; breaks connections in mid-answer until `cuts` are made."""

    def __init__(
        self, to: Callable[[], int], figures: Followed, *, cuts: int, chance: random.Random
    ) -> None:
        super().__init__()
        self._to = to
        self._figures = figures
        self._cuts = cuts
        self._chance = chance

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self.reach(self._to())
        request = asyncio.create_task(pass_on(reader, server_writer))
        try:
            if self._figures.cuts >= self._cuts:
                await pass_on(server_reader, writer)
            elif await self._begins(server_reader, writer):
                self._figures.cuts += 1
        finally:
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)

    async def _begins(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Relay some bytes of an answer; False if the server ended it first."""
        left = self._chance.randrange(BYTES_MAX)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._chance.uniform(SECONDS_MIN, SECONDS_MAX)):
                while left > 0:
                    data = await reader.read(min(left, CHUNK))
                    if not data:
                        return False
                    left -= len(data)
                    writer.write(data)
                    await writer.drain()
        return True


class Follower(ABC):
    """Follows the feed at the port of `link` with a service key, until its task is cancelled."""

    def __init__(self, link: CuttingLink, key: str, figures: Followed) -> None:
        self.link = link
        self.collected = Collected(figures)
        self.headers = {"Authorization": f"Bearer {key}"}
        self.position = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.link.port}/feed"

    async def run(self) -> None:
        while True:
            with suppress(OSError, EOFError, ValueError, httpx.HTTPError, SSEError):
                await self.connection()
            await asyncio.sleep(0.02)

    @abstractmethod
    async def connection(self) -> None:
        """Follow until the connection is lost, from `position` on."""

    def add(self, text: str) -> None:
        self.position = self.collected.add(text)["position"]


class NdjsonFollower(Follower):
    """Reads lines from a connection of its own."""

    async def connection(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.link.port)
        request = (
            f"GET /feed?after={self.position or 'start'} HTTP/1.0\r\nHost: localhost\r\n"
            f"Authorization: {self.headers['Authorization']}\r\n\r\n"
        )
        try:
            writer.write(request.encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENT)
            rest = b""
            while b" 200 " in head.split(b"\r\n")[0]:
                data = await asyncio.wait_for(reader.read(CHUNK), PATIENT)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in filter(None, lines):
                    self.add(line.decode())
        finally:
            writer.transport.abort()


class HttpxFollower(Follower):
    """Reads server-sent events with httpx-sse, and sends the last id itself."""

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=PATIENT, headers=self.headers) as self._client:
            await super().run()

    async def connection(self) -> None:
        last = {"Last-Event-ID": self.position} if self.position else {}
        async with aconnect_sse(self._client, "GET", self.url, headers=last) as source:
            async for event in source.aiter_sse():
                self.add(event.data)
                if self.position != event.id:
                    raise AssertionError(f"the id {event.id} is not {self.position}")


EVENT_SOURCE = """
import { EventSource } from "eventsource";
const [url, key] = process.argv.slice(1);
// It waits 2 s between connections, as the server asks, or else 3 s: too long for many cuts.
const later = globalThis.setTimeout;
globalThis.setTimeout = (run, ms) => later(run, ms === 2000 || ms === 3000 ? 20 : ms);
const withKey = (input, init) =>
  fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } });
let last = "start";
function follow() {
  const source = new EventSource(`${url}?after=${last}`, { fetch: withKey });
  source.onmessage = ({ data, lastEventId }) => {
    last = lastEventId;
    console.log(`${last} ${data}`);
  };
  // A status other than 200 closes it.
  source.onerror = () => source.readyState === EventSource.CLOSED && later(follow, 100);
}
follow();
"""


class EventSourceFollower(Follower):
    """Reads the output of a process of node, where `eventsource` follows and connects again."""

    async def connection(self) -> None:
        key = self.headers["Authorization"].partition(" ")[2]
        process = await asyncio.create_subprocess_exec(
            *command(EVENT_SOURCE, self.url, key, packages=("eventsource",)),
            cwd=BUILD,
            stdout=PIPE,
            stderr=sys.stderr,
            limit=LINE_MAX,
        )
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                id, _, text = line.decode().rstrip("\n").partition(" ")
                self.add(text)
                if self.position != id:
                    raise AssertionError(f"the id {id} is not {self.position}")
            raise AssertionError("node ended")
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
