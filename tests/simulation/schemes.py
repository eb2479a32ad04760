"""What clients do that players rarely do: commands that make one rule of the program matter."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

from dealer.client import House, RemoteTable, connect
from dealer.errors import DealerError, HouseUnreachable, Refused, SessionEnded
from tests.simulation.plan import CLIENTS
from tests.simulation.player import Player
from tests.simulation.tabs import open_tabs

ENTROPY = ("entropy.commit", "entropy.reveal")


class SchemingPlayer(Player):
    """A player with more commands; `withheld` are the requests that it does not send."""

    withheld: tuple[str, ...] = ()

    def follow(self, house: House) -> None:
        super().follow(house)
        connection = house._connection
        ask = connection.ask

        def asked(method: str, params: Any, **options: Any) -> Any:
            if method in self.withheld:
                return asyncio.get_running_loop().create_future()
            return ask(method, params, **options)

        connection.ask = asked  # type: ignore[method-assign]

    async def do_withhold(self, random: Random) -> None:
        """Stay seated and send no entropy: each shuffle waits until its deadline."""
        self.withheld = random.choice((ENTROPY, ENTROPY[1:]))
        table = await self.at_table()
        await table.round_open(entropy="players")
        await table.shuffle()

    async def do_second_tab(self, random: Random) -> None:
        await open_tabs(self, random)

    async def do_twice_apart(self, random: Random) -> None:
        """One command under one id on two connections at once, which may be to two nodes."""
        table = await self.at_table()
        token = table._session.token
        if token is None:
            return
        self._notes += 1
        text, cmd = f"{self.name} {self._notes}", f"a{random.random()}"
        params = {"table": table.id, "kind": "chat", "text": text, "cmd": cmd, "token": token}
        house = connect("ws://house/ws", name=self.name, patience=self.patience)
        self.world.witness.follow(self.name, house)
        try:
            await house._connection.start()
            first = table._session.connection.ask("table.note", dict(params), table=None)
            await asyncio.sleep(random.choice((0.0, 0.0, 0.002, 0.02)))
            second = house._connection.ask("table.note", dict(params), table=None)
            found = await asyncio.gather(first, second, return_exceptions=True)
        except (HouseUnreachable, SessionEnded):
            return
        finally:
            await house.close()
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, DealerError):
                raise one
        answers = [one for one in found if not isinstance(one, BaseException)]
        expected = self.world.witness.same_role(cmd) and not self.world.restores
        if len(answers) == 2 and answers[0] != answers[1] and expected:
            self.world.fault(f"{self.name} sent a note from two tabs and got {answers}")

    async def do_show_again(self, random: Random) -> None:
        """Show a card that all see, right behind another command: it changes nothing."""
        table = await self.in_round(random)
        card = self._card(table, random)
        await table.show(card)
        self._notes += 1
        note = table.note("chat", f"{self.name} {self._notes}")
        for one in await asyncio.gather(note, table.show(card), return_exceptions=True):
            if isinstance(one, BaseException):
                raise one

    async def do_usurp(self, random: Random) -> None:
        """As host, vacate another's seat, take it, and draw: the other sees none of it."""
        table = await self.at_table()
        seat = random.choice([one for one in range(1, 5) if one != table.seat])
        if seat in table.seats:
            await table.vacate(seat)
        if table.seat is not None:
            await table.leave()
        await self._take(seat)

    async def do_change_seat(self, random: Random) -> None:
        """Leave, take any seat and draw, as the next player in it."""
        table = await self.at_table()
        if table.seat is not None:
            await table.leave()
        await self._take(random.randrange(1, 5))

    async def do_move_on(self, random: Random) -> None:
        """Move to a free seat, and go on at once; another player may take that seat meanwhile."""
        table = await self.at_table()
        others = [seat for seat in range(1, 5) if seat != table.seat]
        to = random.choice([seat for seat in others if seat not in table.seats] or others)
        if (taken_by := self.world.players.get(table.seats.get(to, ""))) is not None:
            with suppress(Refused, SessionEnded, HouseUnreachable):
                await taken_by.do_leave(random)
        self._notes += 1
        works = [
            asyncio.ensure_future(table.move_seat(to)),
            asyncio.ensure_future(table.note("chat", f"{self.name} {self._notes}")),
            asyncio.ensure_future(table.draw(1)),
        ]
        if random.random() < 0.5:
            rival = self.world.players[random.choice(CLIENTS)]
            works.append(asyncio.ensure_future(rival.change_to(to)))
        await asyncio.sleep(random.choice((0.0, 0.0, 0.01)))
        if random.random() < 0.5:
            table._session.attach()
        for one in await asyncio.gather(*works, return_exceptions=True):
            if isinstance(one, BaseException):
                raise one

    async def change_to(self, seat: int) -> None:
        """Leave, and take this seat; unless it has it, or another command meets it."""
        with suppress(Refused, SessionEnded, HouseUnreachable):
            table = await self.at_table()
            if table.seat not in (None, seat):
                await table.leave()
            await self._take(seat)

    async def _take(self, seat: int) -> None:
        house = await self.connected()
        table: RemoteTable = await house.join(
            await self.world.current_table(), name=self.name, seat=seat
        )
        self.table = table
        await table.draw(1)
