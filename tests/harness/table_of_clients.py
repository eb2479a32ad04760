"""Four players and a spectator at one table, each a recorded client with its own connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from dealer.client import Cosigner, House, RemoteTable, RetryPolicy, connect
from tests.harness.client_record import Record
from tests.harness.server_process import PATIENT

NAMES = ("Ada", "Bob", "Cleo", "Dan")
QUICK = RetryPolicy(backoff=0.02, backoff_max=0.25, attempts=1000)


class RecordedClient:
    """One client: its connection, its table, and the record of what it received."""

    def __init__(self, name: str, house: House, record: Record) -> None:
        self.name = name
        self.house = house
        self.record = record
        self.table: RemoteTable

    @property
    def seat(self) -> int:
        assert self.table.seat is not None
        return self.table.seat


class Clients:
    """`players` are in seat order, the first one is the host; the `spectator` has no seat."""

    def __init__(self, players: Sequence[RecordedClient], spectator: RecordedClient) -> None:
        self.players = list(players)
        self.spectator = spectator

    @property
    def clients(self) -> list[RecordedClient]:
        return [*self.players, self.spectator]

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
        self.spectator.table = await self.spectator.house.watch(opened.id)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def rejoin(self, table: str) -> None:
        """Take the seats that the clients' stores have tokens for."""
        for player in self.players:
            player.table = await player.house.join(table)
        self.spectator.table = await self.spectator.house.watch(table)

    async def joins(self, client: RecordedClient, *, seat: int) -> None:
        """A new player takes a seat and becomes the last of `players`."""
        client.table = await client.house.join(self.id, seat=seat)
        self.players.append(client)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def leaves(self, player: RecordedClient) -> None:
        await player.table.leave()
        self.players.remove(player)
        await self.all_see(lambda table: len(table.seats) == len(self.players))

    async def all_see(self, condition: Callable[[RemoteTable], bool]) -> None:
        async with asyncio.timeout(PATIENT):
            await asyncio.gather(*(client.table.until(condition) for client in self.clients))

    async def all_caught_up(self) -> None:
        """Wait until all clients have the newest version that any of them has."""
        version = max(client.table.version for client in self.clients)
        await self.all_see(lambda table: table.version >= version)


@asynccontextmanager
async def client(
    url: str, name: str, *, folder: Path | None = None, seed: int | None = None
) -> AsyncIterator[RecordedClient]:
    """One connected client; with a `seed` for its key it cosigns checkpoints."""
    house = connect(
        url,
        name=name,
        store=None if folder is None else folder / name,
        cosigner=None if seed is None else Cosigner(bytes([seed]) * 32),
        patience=QUICK,
    )
    record = Record(house)
    async with house:
        yield RecordedClient(name, house, record)


@asynccontextmanager
async def connect_clients(
    url: str, *, folder: Path | None = None, names: Sequence[str] = NAMES
) -> AsyncIterator[Clients]:
    """Connected clients without seats; with a `folder` each has a store in it."""
    async with AsyncExitStack() as stack:
        players = [
            await stack.enter_async_context(client(url, name, folder=folder, seed=number))
            for number, name in enumerate(names, 1)
        ]
        spectator = await stack.enter_async_context(client(url, "spectator", folder=folder))
        yield Clients(players, spectator)


async def play_everything(clients: Clients) -> None:
    """A round with every kind of move, after which one player leaves; the round stays open."""
    ada, bob, cleo, dan = clients.tables
    await ada.round_open()
    await ada.shuffle()
    await ada.deal(5)
    await clients.all_see(lambda table: table.deck_count == 32)
    for table in clients.tables:
        weak = table.hand[:2]
        await table.discard(weak)
        await table.draw(2)
    await ada.burn()
    await ada.cut(11)
    await bob.draw(end="bottom")
    (random,) = await cleo.draw(end="random")
    await cleo.play(random)
    await bob.give(bob.hand[0], to=clients.players[3].seat)
    await dan.until(lambda table: len(table.hand) == 6)
    await dan.show(dan.hand[-1])
    await cleo.show(cleo.hand[0], to=bob.seat)
    await ada.return_cards(ada.hand[0], where="bottom")
    await ada.return_cards(count=len(ada.piles["discard"]) - 2, source="pile:discard")
    await ada.shuffle(pile="discard")
    await bob.pile_draw("discard", 1)
    await ada.shuffle()
    await ada.move("deck", to="side", count=3)
    await cleo.pile_turn("side")
    await dan.draw(end="random")
    await clients.leaves(clients.players[3])


async def play_to_the_end(clients: Clients) -> None:
    """Close the round, play a short one with the house's entropy only, and close the table."""
    ada, bob = clients.tables[:2]
    await ada.round_close()
    await ada.round_open(entropy="house", deck="54")
    await ada.shuffle(algorithm="forward")
    await ada.deal(1)
    await bob.draw(2)
    await ada.shuffle(steps=5)
    await ada.round_close()
    await ada.close()
    await clients.all_see(lambda table: table.closed)
