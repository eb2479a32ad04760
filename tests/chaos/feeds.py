"""The feed is cut and its server killed; followers and a webhook get every version, in order.

    python tests/chaos/feeds.py 1000 [--nodes 2]

Players open tables and play as long as it takes. Three followers of `GET /feed` break their
connection after some bytes, so many times in all, and go on after the last object that they read
whole. Meanwhile the server, or one of the nodes, is killed once for each 100 cuts, and a receiver
of webhooks once for each 5. At the end each follower's events, and the receiver's, are compared
with the log: no version is missing, of each table they came in order, and each is the log's leaf.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.exceptions import WebSocketException

from dealer.eventlog import Log
from dealer.eventlog import service_keys as stored
from dealer.eventlog.admin import AuditRow
from dealer.eventlog.readonly import open_readonly
from dealer.eventlog.rows import leaf_of
from dealer.service.service_keys import digest_of, new_key
from dealer.service.webhooks import WebhookAdmin, house_keys
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ServerProcess
from tests.webhooks.receiver import Receiver

FOLLOWERS = 3
PLAYERS = 4
CUTS_FOR_A_KILL = 100
CUTS_FOR_A_RECEIVER = 5

Leaves = dict[str, dict[int, str]]
"""The leaves of each table by version, as texts."""


@dataclass
class Figures:
    """`repeated` counts objects that came again, `again` those that the receiver got again."""

    cuts: int = 0
    kills: int = 0
    receiver_kills: int = 0
    events: int = 0
    tables: int = 0
    repeated: int = 0
    delivered: int = 0
    again: int = 0
    faults: list[str] = field(default_factory=list)


class Collected:
    """What one follower received; versions of a table have to come in order, or again."""

    def __init__(self, name: str, figures: Figures) -> None:
        self.leaves: Leaves = defaultdict(dict)
        self._name = name
        self._figures = figures

    def add(self, found: dict[str, Any], event: str) -> bool:
        """Add an object; False if it came before."""
        known, version = self.leaves[found["table"]], found["version"]
        if version in known:
            if known[version] != event:
                self._figures.faults.append(f"{self._name}: another event at {version}")
            return False
        if version != len(known) + 1:
            self._figures.faults.append(
                f"{self._name}: version {version} of {found['table']} after {len(known)}"
            )
        known[version] = event
        return True

    def has(self, leaves: Leaves) -> bool:
        return all(len(self.leaves[table]) >= len(known) for table, known in leaves.items())


class Follower:
    """Follows the feed, and breaks its connection after some bytes while `cutting()`."""

    def __init__(
        self,
        server: ServerProcess | Nodes,
        key: str,
        name: str,
        figures: Figures,
        *,
        chance: random.Random,
        cutting: Callable[[], bool],
    ) -> None:
        self.collected = Collected(name, figures)
        self._server = server
        self._key = key
        self._figures = figures
        self._chance = chance
        self._cutting = cutting
        self._position = "start"

    async def run(self) -> None:
        while True:
            with suppress(OSError, EOFError, ValueError):
                await self._connection()
            await asyncio.sleep(self._chance.uniform(0, 0.02))

    async def _connection(self) -> None:
        """Read until a cut, or until the server closes the connection."""
        left = self._chance.randrange(200_000) if self._cutting() else sys.maxsize
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        request = (
            f"GET /feed?after={self._position} HTTP/1.0\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self._key}\r\n\r\n"
        )
        try:
            writer.write(request.encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENT)
            if b" 200 " not in head.split(b"\r\n")[0]:
                return
            rest = b""
            while left > 0:
                data = await asyncio.wait_for(reader.read(min(left, 65536)), 1 + left % 2)
                if not data:
                    return
                left -= len(data)
                *lines, rest = (rest + data).split(b"\n")
                for line in filter(None, lines):
                    self._add(line.decode())
            self._figures.cuts += 1
        except TimeoutError:
            self._figures.cuts += self._cutting()
        finally:
            writer.transport.abort()

    def _add(self, line: str) -> None:
        found = json.loads(line)
        self._position = found["position"]
        # The text of the leaf, not what a parser makes of it.
        event = line[line.index('"event":') + len('"event":') : -1]
        if not self.collected.add(found, event):
            self._figures.repeated += 1


class Feeds:
    """Players, followers, a receiver, and their failures."""

    def __init__(self, server: ServerProcess | Nodes, figures: Figures, *, seed: int) -> None:
        self.server = server
        self.figures = figures
        self.chance = random.Random(seed)
        self.playing = True

    async def trial(self, cuts: int) -> None:
        key = await add_key(self.server.address)
        async with Receiver() as receiver:
            await add_webhook(self.server, receiver.url)
            followers = [
                Follower(
                    self.server,
                    key,
                    f"follower {number}",
                    self.figures,
                    chance=random.Random(self.chance.random()),
                    cutting=lambda: self.figures.cuts < cuts,
                )
                for number in range(FOLLOWERS)
            ]
            tasks = [asyncio.create_task(follower.run()) for follower in followers]
            players = [asyncio.create_task(self._play()) for _ in range(PLAYERS)]
            try:
                await self._fail(receiver, cuts)
                self.playing = False
                await asyncio.wait_for(asyncio.gather(*players), PATIENT)
                leaves = await read_leaves(self.server.address)
                await self._until_complete(followers, receiver, leaves)
            finally:
                for task in (*tasks, *players):
                    task.cancel()
                await asyncio.gather(*tasks, *players, return_exceptions=True)
        self.figures.events = sum(map(len, leaves.values()))
        self.figures.tables = len(leaves)
        for follower in followers:
            self._compare(follower.collected.leaves, leaves)
        self._compare(self._received(receiver), leaves)

    async def _fail(self, receiver: Receiver, cuts: int) -> None:
        """Kill the server and the receiver until the followers have been cut often enough."""
        while self.figures.cuts < cuts:
            done = self.figures.cuts
            if done >= (self.figures.receiver_kills + 1) * CUTS_FOR_A_RECEIVER:
                await receiver.stop()
                await asyncio.sleep(self.chance.uniform(0, 0.05))
                await receiver.start()
                self.figures.receiver_kills += 1
            if done >= (self.figures.kills + 1) * CUTS_FOR_A_KILL:
                await self.server.kill()
                await self.server.open()
                self.figures.kills += 1
            await asyncio.sleep(0.01)

    async def _play(self) -> None:
        """Open tables, shuffle and draw; after a failure at another table."""
        while self.playing:
            with suppress(
                OSError, WebSocketException, Refusal, TimeoutError, asyncio.CancelledError
            ):
                await asyncio.wait_for(self._game(), PATIENT)
            await asyncio.sleep(0.01)

    async def _game(self) -> None:
        client = await RpcClient.connect(self.server.port)
        try:
            opened = await client.call("table.open", rules={"preset": "free"})
            await client.call("table.join", table=opened["table"], name="player")
            await client.call("round.open", entropy="house")
            await client.call("deck.shuffle")
            for _ in range(self.chance.randrange(5, 40)):
                await client.call("deck.draw", count=1)
                await asyncio.sleep(self.chance.uniform(0, 0.02))
            await client.call("round.close")
        finally:
            await client.close()

    async def _until_complete(
        self, followers: list[Follower], receiver: Receiver, leaves: Leaves
    ) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENT):
                while not all(follower.collected.has(leaves) for follower in followers):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        # After its last kill the webhook may wait for its next attempt.
        with suppress(TimeoutError):
            async with asyncio.timeout(6 * PATIENT):
                while len({event["id"] for event in receiver.events}) < sum(  # noqa: ASYNC110
                    map(len, leaves.values())
                ):
                    await asyncio.sleep(0.2)

    def _received(self, receiver: Receiver) -> Leaves:
        collected = Collected("receiver", self.figures)
        for request in receiver.requests:
            text = request.body.decode()
            event = text[text.index('"event":') + len('"event":') : -2]
            if collected.add(request.event["data"], event):
                self.figures.delivered += 1
            else:
                self.figures.again += 1
        return collected.leaves

    def _compare(self, found: Leaves, leaves: Leaves) -> None:
        for table, known in leaves.items():
            if found.get(table) != known:
                got = len(found.get(table, ()))
                self.figures.faults.append(f"{got} of {len(known)} events of table {table}")


async def add_key(address: str) -> str:
    """A key for all tables, made in the database of a running server."""
    text = new_key()
    row = {"name": "trial", "digest": digest_of(text), "rights": "admin", "created_at": 1}
    entry = AuditRow(1, bytes(8), "trial", "add-key", "trial")
    async with await Log.open(address) as log:
        await log.run_in_transaction(lambda connection: stored.add(connection, row, entry))
    return text


async def add_webhook(server: ServerProcess | Nodes, url: str) -> None:
    """A webhook of that key for everything."""
    key: Path = (
        server.folder / "house.key" if isinstance(server, Nodes) else Path(f"{server.database}.key")
    )
    async with await Log.open(server.address) as log:
        keys = await house_keys(log, server.address, key)
        await WebhookAdmin(log, who="trial").add(
            keys,
            url,
            key="trial",
            types=(),
            signing="hmac",
            after="start",
            allow_private=True,
            why="",
        )


async def read_leaves(address: str) -> Leaves:
    """The log: every table's leaves."""
    found: Leaves = {}
    async with await open_readonly(address) as log:
        for table in await log.tables_between(bytes(16), b"\xff" * 16, limit=10**6):
            rows = [row async for part in log.stream(table) for row in part]
            found[table.hex()] = {row.version: leaf_of(table, row) for row in rows}
    return found


async def follow_through_failures(folder: Path, *, cuts: int, seed: int, nodes: int = 1) -> Figures:
    """Follow until this many connections were cut; `seed` determines the random choices."""
    figures = Figures()
    async with open_server(folder, nodes=nodes, seed=seed) as server:
        await Feeds(server, figures, seed=seed).trial(cuts)
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, follow_through_failures, count="cuts", default=1000, several=True))
