"""Concurrent clients at one table over failing connections, checked for linearizability.

    python tests/chaos/history.py 5000 [--nodes 2]

Each of four seats plays from several connections. Commands are sent twice over two of them, sent
again when a connection breaks, and decided at old versions; the server is killed repeatedly. The
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
    """`answered_twice` counts the commands that were answered on two connections."""

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
        """Open a table, take its seats and open a round with a large shoe."""
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
            call = self._next(seat)
            self.history.append(call)
            client = await self._ask(call, client)
            if call.method == "hand.return" and call.first is None:
                self.hands[seat].update(call.params["cards"])
            if call.method == "deck.draw":
                self.hands[seat].update(call.result.get("slots", ()))
        if client is not None:
            await client.close()

    def _next(self, seat: int) -> Call:
        """A return if the hand has many cards, otherwise a draw; sometimes a query."""
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
        call = Call(seat, method, f"{len(self.history)}", next(self._clock), params)
        if method != "table.state":
            params["cmd"] = call.cmd
            if self.chance.random() < 0.3:
                call.expect = params["expect"] = self.newest - self.chance.choice((0, 0, 1, 5))
        return call

    async def _ask(self, call: Call, client: RpcClient | None) -> RpcClient | None:
        """Send until there is an answer; the connection, which may be another one."""
        twice = call.method != "table.state" and self.chance.random() < 0.1
        other = await self._answer_of(call, None) if twice else (None, None)
        answer, client = await self._answer_of(call, client)
        for one, via in ((answer, client), other):
            self._settle(call, one)
            if via is not None and via is not client:
                await via.close()
        return client

    async def _answer_of(
        self, call: Call, client: RpcClient | None
    ) -> tuple[Any, RpcClient | None]:
        while True:
            if client is None or client.closed.done():
                client = await self._connect()
            token = self.tokens[call.seat]
            answer = client.send(call.method, table=self.table, token=token, **call.params)
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
                # Eight consecutive conflicts with another node: the command may be sent again.
                raced = refusal.reason == "conflict" and call.expect is None
                if not raced and refusal.reason not in ("unavailable", "overloaded"):
                    return refusal, client
                self.raced += raced
                self.sent_again += 1

    async def _connect(self) -> RpcClient:
        while True:
            with suppress(OSError, EOFError, InvalidHandshake):
                return await RpcClient.connect(self.server.port)
            await asyncio.sleep(0.02)

    def _settle(self, call: Call, answer: Any) -> None:
        """Record an answer; the first one counts, later ones must equal it."""
        if answer is None:
            return
        if call.answered:
            if isinstance(answer, Refusal) or call.reason:
                self._contradict(call, answer)
            else:
                call.more.append(answer)
            return
        call.answered = next(self._clock)
        if isinstance(answer, Refusal):
            call.reason = str(answer.reason)
            return
        call.result, call.last = answer, answer["version"]
        self.newest = max(self.newest, call.last or 0)
        if call.method != "table.state":
            length = len(answer["slots"] if "slots" in answer else call.params["cards"])
            call.first = answer["version"] - length + 1

    @staticmethod
    def _contradict(call: Call, answer: Any) -> None:
        """A refused command may be refused again, but not refused and granted."""
        refused = str(answer.reason) if isinstance(answer, Refusal) else ""
        if bool(refused) != bool(call.reason):
            call.more.append({"refused": refused})


async def check_linearizability(
    folder: Path, *, commands: int, seed: int, nodes: int = 1
) -> Figures:
    """Send this many commands; the server is killed every `KILL_EVERY` commands."""
    async with open_server(folder, nodes=nodes, seed=seed) as server:
        clients = ConcurrentClients(server, commands=commands, seed=seed)
        await clients.sit_down()
        playing = asyncio.create_task(clients.play())
        kills = 0
        while not playing.done():
            await asyncio.wait((playing,), timeout=0.02)
            if len(clients.history) > (kills + 0.5) * KILL_EVERY and not playing.done():
                await server.kill()
                await server.open()
                kills += 1
        await playing
        log = leaves(read(await server.bundle(clients.table)))
    history = clients.history
    reasons = Counter(call.reason for call in history)
    figures = Figures(
        commands=sum(call.method != "table.state" for call in history),
        granted=sum(call.first is not None for call in history),
        questions=sum(call.method == "table.state" for call in history),
        conflicts=reasons["conflict"],
        other_refusals=sum(n for reason, n in reasons.items() if reason not in ("", "conflict")),
        sent_again=clients.sent_again,
        raced=clients.raced,
        answered_twice=sum(bool(call.more) for call in history),
        kills=kills,
        events=len(log),
        faults=violations(history, log),
    )
    assert asdict(figures)["commands"] + figures.questions == len(history)
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, check_linearizability, count="commands", default=5000, several=True))
