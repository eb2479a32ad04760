"""Watches a table's broadcast at two nodes that are killed; no frame may be early.

    python tests/chaos/broadcasts.py 20

Two players play at a load balancer in front of the nodes. At each node a viewer watches by the
link, without a client: every frame is kept as it came, with the time. Nodes get SIGKILL and are
started again, and the link is taken back and made again; the viewers resume, or begin again.

Afterwards the log says when each event was: no frame names a version, has an event or the bytes of
a hidden face before that time and the delay. The frame of an event is the same at both nodes,
whatever was newer, so that its size says nothing; and a viewer is sent nothing but events in their
order and signed heads of what it was sent.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import WebSocketException

from dealer.client import RemoteTable, connect
from dealer.errors import DealerError
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.nodes import Node, Nodes
from tests.harness.script import run

SECONDS = 2
INSTANT = 1.5
"""Most seconds from one fault to the next."""

PAUSE = 0.03
"""Seconds between two moves."""

REFUSED = {"too_early", "bad_token", "unavailable", "overloaded"}


@dataclass
class Figures:
    """`refused` are the requests of viewers, `resumed` those that went on where they were."""

    kills: int = 0
    taken_back: int = 0
    events: int = 0
    shown: int = 0
    resumed: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Frame:
    """One text as a viewer got it, in ms since 1970."""

    at: int
    text: str


class Viewer:
    """Watches at one node, again and again; `link` may change meanwhile."""

    def __init__(self, node: Node, table: str, figures: Figures, chance: random.Random) -> None:
        self.node, self.table, self.figures, self.chance = node, table, figures, chance
        self.link = ""
        self.version = 0
        self.watched = False
        self.frames: list[Frame] = []

    async def run(self) -> None:
        while True:
            with suppress(OSError, WebSocketException):
                await self._watch()
            if self.watched and self.chance.random() < 0.2:
                self.version = 0  # from the beginning, as a new viewer
            self.watched = False
            await asyncio.sleep(0.05)  # the node is away, or the broadcast has not begun

    async def _watch(self) -> None:
        async with open_socket(f"ws://127.0.0.1:{self.node.port}/ws") as socket:
            given = {"table": self.table, "link": self.link, "after": self.version}
            request = {"jsonrpc": "2.0", "id": 1, "method": "table.watch", "params": given}
            await socket.send(json.dumps(request))
            async for text in socket:
                assert isinstance(text, str)
                self.frames.append(Frame(time.time_ns() // 1_000_000, text))
                frame = json.loads(text)
                if "error" in frame:
                    self.figures.refused += 1
                    return
                if "result" in frame:
                    self.watched = True
                    self.figures.resumed += self.version > 0
                for event in events_of(frame):
                    if event["version"] != self.version + 1:
                        self.figures.faults.append(f"{event['version']} after {self.version}")
                    self.version = event["version"]


def events_of(frame: dict[str, Any]) -> list[dict[str, Any]]:
    if frame.get("method") == "event":
        return [frame["params"]]
    return list(frame["params"]["list"]) if frame.get("method") == "events" else []


async def play(table: RemoteTable, chance: random.Random) -> None:
    """Draw and show cards, and begin a new round now and then, until cancelled."""
    while True:
        with suppress(DealerError):
            if table.state.round is None:
                await table.round_open(entropy="house")
                await table.shuffle()
            elif table.stack("deck") and chance.random() < 0.95:
                await table.draw(chance.choice([1, 1, 2]))
                if chance.random() < 0.3:
                    await table.show(table.hand[-1:])
            else:
                await table.round_close()
        await asyncio.sleep(PAUSE)


async def watch_while_killed(folder: Path, *, faults: int, seed: int) -> Figures:
    """Play while so many faults happen: a node is killed, or the link is taken back."""
    figures, chance = Figures(), random.Random(seed)
    async with Nodes(folder, count=2, seed=seed, limit=NO_RATES_OPTIONS) as nodes:
        async with connect(nodes.url, name="Ann") as hers, connect(nodes.url, name="Bob") as his:
            opened = await hers.open(rules={"broadcast": SECONDS, "watch": "nobody"})
            ann, bob = await hers.join(opened), await his.join(opened.id, invite=opened.invite)
            viewers = [Viewer(node, ann.id, figures, chance) for node in nodes.nodes]
            await new_link(ann, viewers)
            works = [play(ann, chance), *(viewer.run() for viewer in viewers)]
            tasks = [asyncio.create_task(work) for work in works]
            for number in range(faults):
                await asyncio.sleep(chance.uniform(0, INSTANT))
                if number % 3 == 1:
                    figures.taken_back += 1
                    await patiently(ann.revoke_broadcast)
                    await new_link(ann, viewers)
                else:
                    await nodes.kill()
                    figures.kills += 1
                    await asyncio.sleep(chance.uniform(0, INSTANT))
                    await nodes.open()
            tasks[0].cancel()
            while not bob.closed:  # early: what is hidden still has its time
                with suppress(DealerError):
                    await ann.close()
                await asyncio.sleep(PAUSE)
            async with asyncio.timeout(60):
                while any(  # noqa: ASYNC110  other processes
                    viewer.version < bob.version for viewer in viewers
                ):
                    await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        rows = await nodes.ask(
            "SELECT e.version, e.at FROM event e JOIN stream s ON s.id = e.stream"
            " ORDER BY e.version"
        )
    times = {int(version): int(at) for version, at in rows}
    figures.events = len(times)
    for viewer in viewers:
        figures.shown += sum(check(frame, times, figures) for frame in viewer.frames)
    compare([frame for viewer in viewers for frame in viewer.frames], figures)
    return figures


async def patiently(command: Any) -> Any:
    """The result of a command that is repeated while a node is away."""
    while True:
        with suppress(DealerError):
            return await command()
        await asyncio.sleep(0.05)


async def new_link(host: RemoteTable, viewers: list[Viewer]) -> None:
    link = (await patiently(host.broadcast_link)).partition("#")[2]
    for viewer in viewers:
        viewer.link = link


def check(frame: Frame, times: dict[int, int], figures: Figures) -> int:
    """Whether all that a frame has is old enough; returns how many events it has."""
    said = json.loads(frame.text)
    events = events_of(said)
    if "error" in said:
        versions = []
        if said["error"]["data"]["reason"] not in REFUSED:
            figures.faults.append(frame.text)
    elif "result" in said:
        versions = [said["result"]["version"]]
        if said["result"].keys() != {"table", "version", "checkpoint"}:
            figures.faults.append(frame.text)
    elif said["method"] == "checkpoint":
        versions = [said["params"]["size"]]
        if said["params"]["note"].count("\n— ") != 1:
            figures.faults.append(f"a head with cosignatures: {frame.text}")
    else:
        versions = [event["version"] for event in events]
        if not events:
            figures.faults.append(frame.text)
    if not events and ("card" in frame.text or "private" in frame.text):
        figures.faults.append(f"a face outside an event: {frame.text}")
    for version in versions:
        early = times[version] + 1000 * SECONDS - frame.at
        if early > 0:
            figures.faults.append(f"version {version} is {early} ms early: {frame.text}")
    return len(events)


def compare(frames: list[Frame], figures: Figures) -> None:
    """Whether each event had the same bytes at both nodes, each time."""
    bytes_of: dict[int, str] = {}
    for frame in frames:
        for event in events_of(json.loads(frame.text)):
            text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
            if text not in frame.text:
                figures.faults.append(f"other bytes than its JSON: {frame.text}")
            if bytes_of.setdefault(event["version"], text) != text:
                figures.faults.append(f"another event {event['version']}: {text}")


if __name__ == "__main__":
    sys.exit(run(__doc__, watch_while_killed, count="faults", default=20))
