"""A client of the simulation: the real Python client, and commands by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any

from dealer.client import House, RemoteTable, RetryPolicy, connect
from dealer.errors import DealerError, HouseCheated, HouseUnreachable, Refused, SessionEnded
from dealer.game.stacks import hand
from tests.simulation.loop import Domain
from tests.simulation.plan import Step

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWER = 2.0
"""Seconds for an answer, unless the plan has a setting."""

FACES = [f"{rank}{suit}" for suit in "shdc" for rank in "A23456"]


class Player:
    """One client with one connection; `table` is where it plays at present."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.patience = RetryPolicy(
            open=3.0, silence=4.0, answer=world.plan.settings.get("answer", ANSWER), backoff=0.05,
            backoff_max=0.5, away=1e6, attempts=60,
        )  # fmt: skip
        self.domain = Domain(name)
        world.domains.append(self.domain)
        self.house: House | None = None
        self.table: RemoteTable | None = None
        self.waiting: dict[asyncio.Task[None], Step] = {}
        self._connecting: asyncio.Lock | None = None
        self._notes = 0

    def do(self, step: Step) -> None:
        """Carry out a command in a task of its own."""
        loop = self.world.loop
        task = loop.create_task(self._do(step), context=self.domain.context.copy())
        self.waiting[task] = step
        task.add_done_callback(lambda done: self._done(done))

    def _done(self, task: asyncio.Task[None]) -> None:
        step = self.waiting.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.fault(f"{self.name}'s {step.what} failed: {error!r}")

    async def _do(self, step: Step) -> None:
        random = Random(step.number)
        try:
            method: Callable[[Random], Awaitable[Any]] = getattr(self, f"do_{step.what}")
            await method(random)
            self.world.seen(f"{step.what} done")
        except HouseCheated as error:
            self.world.accused(self.name, error)
        except Refused as error:
            self.world.seen(f"{step.what} refused {error.reason}")
        except (SessionEnded, HouseUnreachable) as error:
            self.world.seen(f"{step.what} {type(error).__name__}")
            self.table = None
        except DealerError as error:
            self.world.seen(f"{step.what} {type(error).__name__}")

    async def connected(self) -> House:
        """The connection, opened at the first use and again where it has ended."""
        self._connecting = self._connecting or asyncio.Lock()
        async with self._connecting:
            while self.house is None or self.house._connection._error is not None:
                house = connect("ws://house/ws", name=self.name, patience=self.patience)
                if self.house is not None:
                    house._store = self.house._store
                self.follow(house)
                try:
                    await house._connection.start()
                except (HouseUnreachable, SessionEnded):
                    await house.close()
                    await asyncio.sleep(0.2)
                    continue
                self.house = house
                self.table = None
            return self.house

    def follow(self, house: House) -> None:
        """Have the witness see all that a connection receives."""
        self.world.witness.follow(self.name, house)

    async def at_table(self) -> RemoteTable:
        """The table of this client; it joins the world's if it has none."""
        await self.connected()
        if self.table is None or self.table._session.error is not None:
            await self.do_join(Random(0))
        assert self.table is not None
        return self.table

    # Coming and going

    async def do_open_table(self, random: Random) -> None:
        house = await self.connected()
        settings = self.world.plan.settings
        rules = {
            "seats": 4,
            "preset": settings["preset"],
            "entropy": settings["entropy"],
            "commit_ms": settings["wait_ms"],
            "reveal_ms": settings["wait_ms"],
        }
        table = await house.open(deck=self.world.deck, rules=rules)
        self.table = table
        self.world.table_opened(table.id)
        await self.do_join(random)

    async def do_join(self, random: Random) -> None:
        table = await self.world.current_table()
        house = await self.connected()
        self.table = await house.join(table, name=self.name)

    async def do_watch(self, random: Random) -> None:
        table = await self.world.current_table()
        house = await self.connected()
        self.table = await house.watch(table)

    async def do_leave(self, random: Random) -> None:
        table = await self.at_table()
        await table.leave()
        self.table = None

    # Rounds

    async def do_round_open(self, random: Random) -> None:
        table = await self.at_table()
        entropy: Any = random.choice((None, "house", "players"))
        await table.round_open(entropy=entropy)

    async def do_round_close(self, random: Random) -> None:
        await (await self.at_table()).round_close()

    async def do_shuffle(self, random: Random) -> None:
        table = await self.at_table()
        algorithm: Any = random.choice((None, "forward", "backward"))
        steps = random.choice((None, None, 2))
        await table.shuffle(algorithm=algorithm, steps=steps)

    async def do_pile_shuffle(self, random: Random) -> None:
        await (await self.at_table()).shuffle(pile=random.choice(("table", "discard")))

    async def do_deal(self, random: Random) -> None:
        await (await self.in_round(random)).deal(random.choice((1, 1, 2)))

    async def do_draw(self, random: Random) -> None:
        await (await self.in_round(random)).draw(random.choice((1, 1, 2)))

    async def do_draw_random(self, random: Random) -> None:
        await (await self.in_round(random)).draw(1, end="random")

    async def do_burn(self, random: Random) -> None:
        await (await self.in_round(random)).burn(1)

    async def do_cut(self, random: Random) -> None:
        await (await self.in_round(random)).cut(random.randrange(1, 4))

    # Cards

    async def in_round(self, random: Random) -> RemoteTable:
        """The table, mostly with a round open and its deck sealed: else most would be refused."""
        table = await self.at_table()
        if table.state.round is None and random.random() < 0.7:
            await self.do_round_open(random)
        round_ = table.state.round
        if round_ is not None and not round_.k and not table.shuffling and random.random() < 0.7:
            await table.shuffle()
        return table

    def _card(self, table: RemoteTable, random: Random) -> int:
        """A slot of this player's hand; any other number where it is empty."""
        round_ = table.state.round
        held = [] if round_ is None or table.seat is None else round_.cards(hand(table.seat))
        return random.choice(list(held)) if held else random.randrange(4)

    async def do_play(self, random: Random) -> None:
        table = await self.in_round(random)
        await table.play(self._card(table, random))

    async def do_discard(self, random: Random) -> None:
        table = await self.in_round(random)
        await table.discard(self._card(table, random))

    async def do_give(self, random: Random) -> None:
        table = await self.in_round(random)
        await table.give(self._card(table, random), to=random.randrange(1, 5))

    async def do_show(self, random: Random) -> None:
        table = await self.in_round(random)
        to = random.choice((None, random.randrange(1, 5)))
        await table.show(self._card(table, random), to=to)

    async def do_pass(self, random: Random) -> None:
        table = await self.in_round(random)
        if random.random() < 0.3:
            await table.pass_()
        else:
            await table.pass_(self._card(table, random), to=random.randrange(1, 5))

    async def do_take_back(self, random: Random) -> None:
        await (await self.at_table()).take_back()

    async def do_return_hand(self, random: Random) -> None:
        table = await self.in_round(random)
        await table.return_cards(self._card(table, random), where=random.choice(("top", "bottom")))

    async def do_return_pile(self, random: Random) -> None:
        await (await self.at_table()).return_cards(count=1, source="pile:discard")

    async def do_pile_draw(self, random: Random) -> None:
        table = await self.in_round(random)
        end: Any = random.choice(("top", "bottom", "random"))
        await table.pile_draw(random.choice(("table", "discard")), 1, end=end)

    async def do_pile_move(self, random: Random) -> None:
        table = await self.in_round(random)
        stacks = ("table", "discard", "deck", "side")
        await table.move(
            random.choice(stacks),
            to=random.choice(stacks),
            count=1,
            face=random.choice(("up", None)),
        )

    async def do_pile_turn(self, random: Random) -> None:
        await (await self.at_table()).pile_turn("discard")

    # Other commands

    async def do_note(self, random: Random) -> None:
        table = await self.at_table()
        self._notes += 1
        await table.note("chat", f"{self.name} {self._notes}")

    async def do_twice(self, random: Random) -> None:
        """One command under one id, sent twice; both have to get the same answer."""
        table = await self.at_table()
        self._notes += 1
        params = {
            "kind": "chat",
            "text": f"{self.name} {self._notes}",
            "cmd": f"t{random.random()}",
        }
        first = table._session.ask("table.note", dict(params), changes=True)
        if random.random() < 0.5:
            await asyncio.sleep(random.random() * 0.5)
        second = table._session.ask("table.note", dict(params), changes=True)
        found = await asyncio.gather(first, second)
        same_role = self.world.witness.same_role(params["cmd"])
        if found[0] != found[1] and same_role and not self.world.restores:
            self.world.fault(f"{self.name} sent a note twice and got {found[0]} and {found[1]}")

    async def do_expect(self, random: Random) -> None:
        table = await self.at_table()
        self._notes += 1
        version = table.version
        params = {"kind": "chat", "text": f"{self.name} {self._notes}", "expect": version}
        result = await table._session.ask("table.note", params, changes=True)
        if result["version"] != version + 1 and not self.world.restores:
            self.world.fault(f"expected version {version}, and was written as {result['version']}")

    async def do_presence(self, random: Random) -> None:
        await (await self.at_table()).presence()

    async def do_list(self, random: Random) -> None:
        await (await self.connected()).tables()

    async def do_bundle(self, random: Random) -> None:
        await (await self.at_table()).bundle()

    async def do_vacate(self, random: Random) -> None:
        await (await self.at_table()).vacate(random.randrange(1, 5))

    async def do_transfer_host(self, random: Random) -> None:
        await (await self.at_table()).transfer_host(random.randrange(1, 5))

    async def do_close_table(self, random: Random) -> None:
        table = await self.at_table()
        await table.close()
        self.world.table_closed(table.id)

    def shown(self) -> str:
        """Its commands that wait, for a report."""
        return json.dumps([step.what for step in self.waiting.values()])
