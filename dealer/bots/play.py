"""Bots at one table: each is a client of its own, with a seat, a name and a pace."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dealer.bots.links import TableLink
from dealer.bots.policy import make_move, possible_moves
from dealer.client import House, RemoteTable, connect
from dealer.errors import DealerError, NameTaken, Refused

NAMES = (
    "Alma", "Bruno", "Carla", "Dario", "Elsa", "Fritz", "Greta", "Hugo", "Ines", "Jonas",
    "Karin", "Lukas", "Maja", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tilda", "Viktor",
)  # fmt: skip

LEAVE_SECONDS = 5.0
"""How long a bot waits, at the end, until the server has answered that it left its seat."""

Report = Callable[[str], None]


class Bots:
    """`count` bots at the table of `link`.

    Each waits about `pace` seconds before each move, half of that at least and one and a half times
    at most. With a folder `store` the seats are kept at the end, and the next start with it takes
    them again. `report` is called with a sentence for each bot that sits down or ends.
    """

    def __init__(
        self,
        link: TableLink,
        count: int,
        *,
        pace: float = 2.0,
        store: Path | None = None,
        report: Report = lambda sentence: None,
        rng: random.Random | None = None,
    ) -> None:
        self._link = link
        self._count = count
        self._pace = pace
        self._store = store
        self._report = report
        self._rng = rng or random.Random()

    async def run(self, stop: asyncio.Event) -> None:
        """Play until `stop` is set, or until no bot has a seat any more.

        Raises the error of the first bot if none could sit down.
        """
        bots = [asyncio.create_task(self._bot(number)) for number in range(self._count)]
        everyone = asyncio.gather(*bots, return_exceptions=True)
        stopping = asyncio.create_task(stop.wait())
        ends: list[asyncio.Future[Any]] = [stopping, everyone]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            for bot in bots:
                bot.cancel()
            results = await everyone
        errors = [result for result in results if isinstance(result, Exception)]
        if len(errors) == self._count:
            raise errors[0]

    async def _bot(self, number: int) -> None:
        try:
            await self._take_part(number)
        except Exception as error:
            self._report(f"A bot ended: {error}")
            raise

    async def _take_part(self, number: int) -> None:
        store = None if self._store is None else self._store / f"bot-{number + 1}"
        async with connect(self._link.server, store=store, table=self._link.table) as house:
            sitting = asyncio.create_task(self._sit(house, number))
            try:
                table, _ = await asyncio.shield(sitting)
                await self._play(table)
            finally:
                # A bot that is stopped while it sits down may have the seat already.
                with suppress(DealerError, TimeoutError):
                    async with asyncio.timeout(LEAVE_SECONDS):
                        await sitting
                if sitting.done() and not sitting.cancelled() and sitting.exception() is None:
                    await self._end(*sitting.result())

    async def _end(self, table: RemoteTable, player: str) -> None:
        """Leave the seat, if it is not to be kept; a server that is away is not waited for."""
        if self._store is None and table.seat is not None and not table.closed:
            with suppress(DealerError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await table.leave()
        self._report(f"{player}: {_end_of(table)}.")

    async def _sit(self, house: House, number: int) -> tuple[RemoteTable, str]:
        """Take a seat under a name that no player has; the table, and who sits where.

        Raises Refused if there is no such name or seat.
        """
        for name in names_from(number):
            with suppress(NameTaken):
                table = await house.join(
                    self._link.table, name=name, invite=self._link.invite, bot=True
                )
                seat = table.seat or 0
                name = table.seats.get(seat, "")
                self._report(f"{name} sits down at seat {seat}.")
                return table, f"{name}, seat {seat}"
        raise NameTaken("All names of the bots are taken at this table.")

    async def _play(self, table: RemoteTable) -> None:
        """Make moves until the table is closed or the seat was freed."""
        while True:
            await table.until(lambda table: _is_over(table) or bool(possible_moves(table)))
            if _is_over(table):
                return
            await asyncio.sleep(self._pace * self._rng.uniform(0.5, 1.5))
            with suppress(Refused):
                await make_move(table, self._rng)


def names_from(number: int) -> Sequence[str]:
    """The names that bot `number`, from 0 on, tries one after the other."""
    turned = NAMES[number % len(NAMES) :] + NAMES[: number % len(NAMES)]
    return [*turned, *(f"{name} {round_}" for round_ in range(2, 8) for name in turned)]


def _is_over(table: RemoteTable) -> bool:
    return table.closed or table.seat is None


def _end_of(table: RemoteTable) -> str:
    if table.seat is None:
        return "left"
    return "the table was closed" if table.closed else "the seat is kept"
