"""The feed is cut and its server killed; followers and a webhook get every version, in order.

    python tests/chaos/feeds.py 1000 [--nodes 2]

Players open tables and play as long as it takes. Three followers of `GET /feed` (a raw connection,
httpx-sse, and the npm package eventsource) have their connections cut so many times each, after
some bytes, and go on after the last object that they read whole. Meanwhile the server, or one of
the nodes, is killed once for each 100 cuts, and a receiver of webhooks once for each 5. At the end
each follower's events, and the receiver's, are compared with the log: no version is missing, of
each table they came in order, and each is the log's leaf.
"""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.exceptions import WebSocketException

from dealer.eventlog import Log
from dealer.eventlog.backends import open_readonly
from dealer.eventlog.keys import existing_house_keys
from dealer.eventlog.rows import leaf_of
from dealer.service.identity.admin import AdminService
from dealer.service.operations.webhooks import WebhookAdmin
from tests.chaos.feed_followers import (
    Collected,
    CuttingLink,
    EventSourceFollower,
    Followed,
    Follower,
    HttpxFollower,
    Leaves,
    NdjsonFollower,
)
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ServerProcess
from tests.webhooks.receiver import Receiver

PLAYERS = 4
CUTS_FOR_A_KILL = 100
CUTS_FOR_A_RECEIVER = 5


@dataclass
class Figures:
    """`kills` are those of the server; the receiver is not cut but killed, and counts no `cuts`."""

    kills: int = 0
    receiver_kills: int = 0
    events: int = 0
    tables: int = 0
    ndjson: Followed = field(default_factory=Followed)
    httpx_sse: Followed = field(default_factory=Followed)
    eventsource: Followed = field(default_factory=Followed)
    receiver: Followed = field(default_factory=Followed)
    faults: list[str] = field(default_factory=list)

    @property
    def cuts(self) -> int:
        """Of the follower that has had the fewest."""
        return min(each.cuts for each in (self.ndjson, self.httpx_sse, self.eventsource))


class Feeds:
    """Players, followers, a receiver, and their failures."""

    def __init__(self, server: ServerProcess | Nodes, figures: Figures, *, seed: int) -> None:
        self.server = server
        self.figures = figures
        self.chance = random.Random(seed)
        self.playing = True

    async def trial(self, cuts: int) -> None:
        key = await add_key(self.server.address)
        async with Receiver() as receiver, AsyncExitStack() as links:
            await add_webhook(self.server, receiver.url)
            followers = await self._followers(links, key, cuts)
            tasks = [asyncio.create_task(follower.run()) for follower in followers]
            players = [asyncio.create_task(self._play()) for _ in range(PLAYERS)]
            try:
                await self._fail(receiver, tasks, cuts)
                self.playing = False
                await asyncio.wait_for(asyncio.gather(*players), PATIENT)
                leaves = await read_leaves(self.server.address)
                await self._until_complete(followers, receiver, leaves)
            finally:
                for task in (*tasks, *players):
                    task.cancel()
                await asyncio.gather(*tasks, *players, return_exceptions=True)
        self._compare([follower.collected for follower in followers], receiver, leaves)

    async def _followers(self, links: AsyncExitStack, key: str, cuts: int) -> list[Follower]:
        """One of each kind, with a link of its own."""
        followers: list[Follower] = []
        for kind, figures in (
            (NdjsonFollower, self.figures.ndjson),
            (HttpxFollower, self.figures.httpx_sse),
            (EventSourceFollower, self.figures.eventsource),
        ):
            chance = random.Random(self.chance.random())
            link = CuttingLink(lambda: self.server.port, figures, cuts=cuts, chance=chance)
            await links.enter_async_context(link)
            followers.append(kind(link, key, figures))
        return followers

    async def _fail(
        self, receiver: Receiver, followers: list[asyncio.Task[None]], cuts: int
    ) -> None:
        """Kill the server and the receiver until the followers have been cut often enough.

        No kill that is due is left out, however many cuts there are during another one.
        """
        figures = self.figures
        while figures.cuts < cuts or self._due(cuts) != (figures.kills, figures.receiver_kills):
            for ended in filter(asyncio.Task.done, followers):
                ended.result()
            kills, receiver_kills = self._due(cuts)
            if figures.receiver_kills < receiver_kills:
                await receiver.stop()
                await asyncio.sleep(self.chance.uniform(0, 0.05))
                await receiver.start()
                figures.receiver_kills += 1
            if figures.kills < kills:
                await self.server.kill()
                await self.server.open()
                figures.kills += 1
            await asyncio.sleep(0.01)

    def _due(self, cuts: int) -> tuple[int, int]:
        """The kills of the server and of the receiver that are due after the cuts so far."""
        done = min(self.figures.cuts, cuts)
        return ceil(done / CUTS_FOR_A_KILL), ceil(done / CUTS_FOR_A_RECEIVER)

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

    def _compare(self, collected: list[Collected], receiver: Receiver, leaves: Leaves) -> None:
        """Compare what each received with the log."""
        received = Collected(self.figures.receiver)
        for request in receiver.requests:
            text = request.body.decode()
            # `data`, the last member of the CloudEvent.
            received.add(text[text.index('"data":') + len('"data":') : -1])
        self.figures.events = sum(map(len, leaves.values()))
        self.figures.tables = len(leaves)
        for each in (*collected, received):
            each.compare(leaves)
        for name in ("ndjson", "httpx_sse", "eventsource", "receiver"):
            figures: Followed = getattr(self.figures, name)
            if figures.faults:
                self.figures.faults.append(f"{name}: {figures}")


async def add_key(address: str) -> str:
    """A key for all tables, made in the database of a running server."""
    async with await Log.open(address) as log:
        return await AdminService(log, who="trial").add_service_key("trial", ["admin"])


async def add_webhook(server: ServerProcess | Nodes, url: str) -> None:
    """A webhook of that key for everything."""
    key: Path = (
        server.folder / "house.key" if isinstance(server, Nodes) else Path(f"{server.database}.key")
    )
    async with await Log.open(server.address) as log:
        keys = await existing_house_keys(log, key)
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
