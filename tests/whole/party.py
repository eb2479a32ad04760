"""Four players and an onlooker at one table, each a client with a connection and a record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from dealer.client import Cosigner, House, Patience, RemoteTable, connect
from tests.whole.house import PATIENT
from tests.whole.record import Record

NAMES = ("Ada", "Bob", "Cleo", "Dan")
QUICK = Patience(backoff=0.02, backoff_max=0.25, attempts=1000)


class Guest:
    """One client: its house, its table, and everything that it was told."""

    def __init__(self, name: str, house: House, record: Record) -> None:
        self.name = name
        self.house = house
        self.record = record
        self.table: RemoteTable

    @property
    def seat(self) -> int:
        assert self.table.seat is not None
        return self.table.seat


class Party:
    """`players` sit in the order of their names, the first one is the host; `onlooker` does not."""

    def __init__(self, players: Sequence[Guest], onlooker: Guest) -> None:
        self.players = list(players)
        self.onlooker = onlooker

    @property
    def guests(self) -> list[Guest]:
        return [*self.players, self.onlooker]

    @property
    def tables(self) -> list[RemoteTable]:
        return [player.table for player in self.players]

    @property
    def id(self) -> str:
        return self.players[0].table.id

    async def sit_down(self, **rules: Any) -> None:
        host = self.players[0]
        opened = await host.house.open(name="From socket to audit", **rules)
        for player in self.players:
            player.table = await player.house.join(opened.id)
        self.onlooker.table = await self.onlooker.house.watch(opened.id)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def come_back(self, table: str) -> None:
        """Take the seats that the clients' stores remember."""
        for player in self.players:
            player.table = await player.house.join(table)
        self.onlooker.table = await self.onlooker.house.watch(table)

    async def joins(self, guest: Guest, *, seat: int) -> None:
        """Somebody new sits down, last in the order of players."""
        guest.table = await guest.house.join(self.id, seat=seat)
        self.players.append(guest)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def leaves(self, player: Guest) -> None:
        await player.table.leave()
        self.players.remove(player)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def all_see(self, truth: Callable[[RemoteTable], bool]) -> None:
        async with asyncio.timeout(PATIENT):
            await asyncio.gather(*(guest.table.until(truth) for guest in self.guests))

    async def all_caught_up(self) -> None:
        """Wait until everybody has seen what anybody has."""
        version = max(guest.table.version for guest in self.guests)
        await self.all_see(lambda table: table.version >= version)


@asynccontextmanager
async def guest(
    url: str, name: str, *, folder: Path | None = None, seed: int | None = None
) -> AsyncIterator[Guest]:
    """One client, connected; with a `seed` for its key it cosigns what it has checked."""
    house = connect(
        url,
        name=name,
        store=None if folder is None else folder / name,
        cosigner=None if seed is None else Cosigner(bytes([seed]) * 32),
        patience=QUICK,
    )
    record = Record(house)
    async with house:
        yield Guest(name, house, record)


@asynccontextmanager
async def party(
    url: str, *, folder: Path | None = None, names: Sequence[str] = NAMES
) -> AsyncIterator[Party]:
    """Connected, not seated yet; with a folder every client keeps its own store in it."""
    async with AsyncExitStack() as stack:
        players = [
            await stack.enter_async_context(guest(url, name, folder=folder, seed=number))
            for number, name in enumerate(names, 1)
        ]
        onlooker = await stack.enter_async_context(guest(url, "onlooker", folder=folder))
        yield Party(players, onlooker)


async def play_everything(party: Party) -> None:
    """A round with every move there is, after which one player leaves; the round stays open."""
    ada, bob, cleo, dan = party.tables
    await ada.round_open()
    await ada.shuffle()
    await ada.deal(5)
    await party.all_see(lambda table: table.deck_count == 32)
    for table in party.tables:
        weak = table.hand[:2]
        await table.discard(weak)
        await table.draw(2)
    await ada.burn()
    await ada.cut(11)
    await bob.draw(end="bottom")
    (random,) = await cleo.draw(end="random")
    await cleo.play(random)
    await bob.give(bob.hand[0], to=party.players[3].seat)
    await dan.until(lambda table: len(table.hand) == 6)
    await dan.show(dan.hand[-1])
    await cleo.show(cleo.hand[0], to=bob.seat)
    await ada.hand_return(ada.hand[0], where="bottom")
    await ada.return_(count=len(ada.piles["discard"]) - 2, source="pile:discard")
    await ada.shuffle(pile="discard")
    await bob.pile_draw("discard", 1)
    await ada.shuffle()
    await ada.pile_move("deck", to="side", count=3)
    await cleo.pile_turn("side")
    await dan.draw(end="random")
    await party.leaves(party.players[3])


async def play_to_the_end(party: Party) -> None:
    """Close the round, play a short one on the house's own bytes, and close the table."""
    ada, bob = party.tables[:2]
    await ada.round_close()
    await ada.round_open(entropy="house", deck="54")
    await ada.shuffle(algorithm="forward")
    await ada.deal(1)
    await bob.draw(2)
    await ada.shuffle(steps=5)
    await ada.round_close()
    await ada.close()
    await party.all_see(lambda table: table.closed)
