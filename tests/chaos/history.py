"""Concurrent clients at one table over failing connections, checked for linearizability.

    python tests/chaos/history.py 5000 [--nodes 2]

Each of four seats plays from several connections. Commands are sent twice over two of them, sent
again when a connection breaks, and decided at old versions; the server is killed now and then. The
history of calls and answers is checked against the log.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.exceptions import InvalidHandshake

from dealer.proof.bundle import read
from tests.chaos.linearizability import Call, violations
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.card_truth import leaves
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import ServerProcess

SEATS, WORKERS = 4, 3
KILL_EVERY = 600
"""Commands between two kills of the server."""


@dataclass
class Figures:
    """`answered_twice` counts the commands that two connections were answered, always the same."""

    commands: int = 0
    granted: int = 0
    questions: int = 0
    conflicts: int = 0
    other_refusals: int = 0
    sent_again: int = 0
    raced: int = 0
    answered_twice: int = 0
    kills: int = 0
    events: int = 0
    faults: list[str] = field(default_factory=list)


class ConcurrentClients:
    """All clients at the table; `history` has their calls in order."""

    def __init__(self, server: ServerProcess | Nodes, *, commands: int, seed: int) -> None:
        self.server = server
        self.chance = random.Random(seed)
        self.history: list[Call] = []
        self.sent_again = 0
        self.raced = 0
        self.table = ""
        self.hands: dict[int, set[int]] = {}
        self.tokens: dict[int, str] = {}
        self.newest = 0
        self.left = commands
        self._clock = count(1)

    async def sit_down(self) -> None:
        """The host opens a round with a shoe that lasts, and the seats are taken."""
        host = await RpcClient.connect(self.server.port)
        opened = await host.call("table.open", seats=SEATS)
        self.table = opened["table"]
        for number in range(SEATS):
            player = await RpcClient.connect(self.server.port)
            joined = await player.call("table.join", table=self.table, name=f"player {number}")
            self.tokens[joined["seat"]], self.hands[joined["seat"]] = joined["token"], set()
            await player.close()
        await host.call("round.open", entropy="house", deck={"decks": 4})
        self.newest = (await host.call("deck.shuffle"))["version"]
        await host.close()

    async def play(self) -> None:
        await asyncio.gather(*(self._work(seat) for seat in self.tokens for _ in range(WORKERS)))

    async def _work(self, seat: int) -> None:
        client: RpcClient | None = None
        while self.left > 0:
            self.left -= 1
            asked = self._next(seat)
            self.history.append(asked)
            client = await self._ask(asked, client)
            if asked.method == "hand.return" and asked.first is None:
                self.hands[seat].update(asked.params["cards"])
            if asked.method == "deck.draw":
                self.hands[seat].update(asked.result.get("slots", ()))
        if client is not None:
            await client.close()

    def _next(self, seat: int) -> Call:
        """Return a card where there are many, otherwise draw; now and then a query."""
        method, params, hand = (
            "deck.draw",
            dict[str, Any](count=self.chance.choice((1, 2))),
            tuple[int, ...](),
        )
        if self.chance.random() < 0.15:
            method, params = "table.state", {}
        elif len(self.hands[seat]) > 6:
            hand = tuple(self.chance.sample(sorted(self.hands[seat]), self.chance.choice((1, 2))))
            self.hands[seat].difference_update(hand)
            method, params = "hand.return", {"cards": list(hand)}
        asked = Call(seat, method, f"{len(self.history)}", next(self._clock), params)
        if method != "table.state":
            params["cmd"] = asked.cmd
            if self.chance.random() < 0.3:
                asked.expect = params["expect"] = self.newest - self.chance.choice((0, 0, 1, 5))
        return asked

    async def _ask(self, asked: Call, client: RpcClient | None) -> RpcClient | None:
        """Send until there is an answer, on another connection if necessary; the remaining
        connection.
        """
        twice = asked.method != "table.state" and self.chance.random() < 0.1
        other = await self._answer_of(asked, None) if twice else (None, None)
        answer, client = await self._answer_of(asked, client)
        for one, via in ((answer, client), other):
            self._settle(asked, one)
            if via is not None and via is not client:
                await via.close()
        return client

    async def _answer_of(
        self, asked: Call, client: RpcClient | None
    ) -> tuple[Any, RpcClient | None]:
        while True:
            if client is None or client.closed.done():
                client = await self._connect()
            token = self.tokens[asked.seat]
            answer = client.send(asked.method, table=self.table, token=token, **asked.params)
            client._sending.add_done_callback(lambda sent: sent.cancelled() or sent.exception())
            if self.chance.random() < 0.05:
                if self.chance.random() < 0.5:
                    await asyncio.sleep(0)
                client.socket.transport.abort()
            await asyncio.wait((answer, client.closed), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() or answer.cancelled():
                self.sent_again += 1
                continue
            try:
                return answer.result(), client
            except Refusal as refusal:
                # Eight conflicts with another node in a row: it may be sent again.
                raced = refusal.reason == "conflict" and asked.expect is None
                if not raced and refusal.reason not in ("unavailable", "overloaded"):
                    return refusal, client
                self.raced += raced
                self.sent_again += 1

    async def _connect(self) -> RpcClient:
        while True:
            with suppress(OSError, EOFError, InvalidHandshake):
                return await RpcClient.connect(self.server.port)
            await asyncio.sleep(0.02)

    def _settle(self, asked: Call, answer: Any) -> None:
        """Record an answer; the first one counts, later ones must equal it."""
        if answer is None:
            return
        if asked.answered:
            if isinstance(answer, Refusal) or asked.reason:
                self._contradict(asked, answer)
            else:
                asked.more.append(answer)
            return
        asked.answered = next(self._clock)
        if isinstance(answer, Refusal):
            asked.reason = str(answer.reason)
            return
        asked.result, asked.last = answer, answer["version"]
        self.newest = max(self.newest, asked.last or 0)
        if asked.method != "table.state":
            length = len(answer["slots"] if "slots" in answer else asked.params["cards"])
            asked.first = answer["version"] - length + 1

    @staticmethod
    def _contradict(asked: Call, answer: Any) -> None:
        """A refused command may be refused again, but not refused and granted."""
        refused = str(answer.reason) if isinstance(answer, Refusal) else ""
        if bool(refused) != bool(asked.reason):
            asked.more.append({"refused": refused})


async def one_order(folder: Path, *, commands: int, seed: int, nodes: int = 1) -> Figures:
    """Send this many commands; the server is killed every `KILL_EVERY` commands."""
    async with open_server(folder, nodes=nodes, seed=seed) as server:
        crowd = ConcurrentClients(server, commands=commands, seed=seed)
        await crowd.sit_down()
        playing = asyncio.create_task(crowd.play())
        kills = 0
        while not playing.done():
            await asyncio.wait((playing,), timeout=0.02)
            if len(crowd.history) > (kills + 0.5) * KILL_EVERY and not playing.done():
                await server.kill()
                await server.open()
                kills += 1
        await playing
        log = leaves(read(await server.bundle(crowd.table)))
    history = crowd.history
    reasons = Counter(asked.reason for asked in history)
    figures = Figures(
        commands=sum(asked.method != "table.state" for asked in history),
        granted=sum(asked.first is not None for asked in history),
        questions=sum(asked.method == "table.state" for asked in history),
        conflicts=reasons["conflict"],
        other_refusals=sum(n for reason, n in reasons.items() if reason not in ("", "conflict")),
        sent_again=crowd.sent_again,
        raced=crowd.raced,
        answered_twice=sum(bool(asked.more) for asked in history),
        kills=kills,
        events=len(log),
        faults=violations(history, log),
    )
    assert asdict(figures)["commands"] + figures.questions == len(history)
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, one_order, count="commands", default=5000, several=True))
