"""Many clients at one table at once, over lines that break; is there one order of all they did?

    python tests/whole/history.py 5000 [--nodes 2]

Each of four seats plays from several connections. Wishes are sent twice over two of them, sent
again when a connection breaks, decided on old versions; the house is killed now and then. The
history of calls and answers is held against the log.
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
from tests.gateway.guest import Guest, Refusal
from tests.whole.house import HouseProcess
from tests.whole.linear import Asked, judge
from tests.whole.nodes import Nodes, house_of
from tests.whole.script import run
from tests.whole.truth import leaves

SEATS, WORKERS = 4, 3
KILL_EVERY = 600
"""Commands between two kills of the house."""


@dataclass
class Figures:
    """`answered_twice` counts the wishes that were granted on two connections, always alike."""

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


class Crowd:
    """Everybody at the table; `history` is what they asked, in the order of the asking."""

    def __init__(self, house: HouseProcess | Nodes, *, commands: int, seed: int) -> None:
        self.house = house
        self.chance = random.Random(seed)
        self.history: list[Asked] = []
        self.sent_again = 0
        self.raced = 0
        self.table = ""
        self.hands: dict[int, set[int]] = {}
        self.tokens: dict[int, str] = {}
        self.newest = 0
        self.left = commands
        self._clock = count(1)

    async def sit_down(self) -> None:
        """A host with a shoe that lasts, and the seats."""
        host = await Guest.arrive(self.house.port)
        opened = await host.ask("table.open", seats=SEATS)
        self.table = opened["table"]
        for number in range(SEATS):
            player = await Guest.arrive(self.house.port)
            joined = await player.ask("table.join", table=self.table, name=f"player {number}")
            self.tokens[joined["seat"]], self.hands[joined["seat"]] = joined["token"], set()
            await player.leave()
        await host.ask("round.open", entropy="house", deck={"decks": 4})
        self.newest = (await host.ask("deck.shuffle"))["version"]
        await host.leave()

    async def play(self) -> None:
        await asyncio.gather(*(self._work(seat) for seat in self.tokens for _ in range(WORKERS)))

    async def _work(self, seat: int) -> None:
        guest: Guest | None = None
        while self.left > 0:
            self.left -= 1
            asked = self._next(seat)
            self.history.append(asked)
            guest = await self._ask(asked, guest)
            if asked.method == "hand.return" and asked.first is None:
                self.hands[seat].update(asked.params["cards"])
            if asked.method == "deck.draw":
                self.hands[seat].update(asked.result.get("slots", ()))
        if guest is not None:
            await guest.leave()

    def _next(self, seat: int) -> Asked:
        """A card back where there are many, else a draw; now and then a look."""
        method, params, hand = "deck.draw", dict[str, Any](count=self.chance.choice((1, 2))), ()
        if self.chance.random() < 0.15:
            method, params = "table.state", {}
        elif len(self.hands[seat]) > 6:
            hand = tuple(self.chance.sample(sorted(self.hands[seat]), self.chance.choice((1, 2))))
            self.hands[seat].difference_update(hand)
            method, params = "hand.return", {"cards": list(hand)}
        asked = Asked(seat, method, f"{len(self.history)}", next(self._clock), params)
        if method != "table.state":
            params["cmd"] = asked.cmd
            if self.chance.random() < 0.3:
                asked.expect = params["expect"] = self.newest - self.chance.choice((0, 0, 1, 5))
        return asked

    async def _ask(self, asked: Asked, guest: Guest | None) -> Guest | None:
        """Ask until there is an answer, if need be on another connection; the one that is left."""
        twice = asked.method != "table.state" and self.chance.random() < 0.1
        other = await self._answer_of(asked, None) if twice else (None, None)
        answer, guest = await self._answer_of(asked, guest)
        for one, via in ((answer, guest), other):
            self._settle(asked, one)
            if via is not None and via is not guest:
                await via.leave()
        return guest

    async def _answer_of(self, asked: Asked, guest: Guest | None) -> tuple[Any, Guest | None]:
        while True:
            if guest is None or guest.closed.done():
                guest = await self._arrive()
            token = self.tokens[asked.seat]
            answer = guest.send(asked.method, table=self.table, token=token, **asked.params)
            guest._sending.add_done_callback(lambda sent: sent.cancelled() or sent.exception())
            if self.chance.random() < 0.05:
                if self.chance.random() < 0.5:
                    await asyncio.sleep(0)
                guest.socket.transport.abort()
            await asyncio.wait((answer, guest.closed), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() or answer.cancelled():
                self.sent_again += 1
                continue
            try:
                return answer.result(), guest
            except Refusal as refusal:
                # Who lost eight races to another node, and expected nothing, may ask again.
                raced = refusal.reason == "conflict" and asked.expect is None
                if not raced and refusal.reason not in ("unavailable", "overloaded"):
                    return refusal, guest
                self.raced += raced
                self.sent_again += 1

    async def _arrive(self) -> Guest:
        while True:
            with suppress(OSError, EOFError, InvalidHandshake):
                return await Guest.arrive(self.house.port)
            await asyncio.sleep(0.02)

    def _settle(self, asked: Asked, answer: Any) -> None:
        """Take in an answer; the first one counts, the others have to be like it."""
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
    def _contradict(asked: Asked, answer: Any) -> None:
        """What was refused once may be refused again; nothing may be both."""
        refused = str(answer.reason) if isinstance(answer, Refusal) else ""
        if bool(refused) != bool(asked.reason):
            asked.more.append({"refused": refused})


async def one_order(folder: Path, *, commands: int, seed: int, nodes: int = 1) -> Figures:
    """Let them ask so much; the house is killed every `KILL_EVERY` commands."""
    async with house_of(folder, nodes=nodes, seed=seed) as house:
        crowd = Crowd(house, commands=commands, seed=seed)
        await crowd.sit_down()
        playing = asyncio.create_task(crowd.play())
        kills = 0
        while not playing.done():
            await asyncio.wait((playing,), timeout=0.02)
            if len(crowd.history) > (kills + 0.5) * KILL_EVERY and not playing.done():
                await house.kill()
                await house.open()
                kills += 1
        await playing
        log = leaves(read(await house.bundle(crowd.table)))
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
        faults=judge(history, log),
    )
    assert asdict(figures)["commands"] + figures.questions == len(history)
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, one_order, count="commands", default=5000, several=True))
