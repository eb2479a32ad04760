"""Four players and a game of draw poker, from the first card to the last, over real sockets.

    table = await play("ws://127.0.0.1:8080/ws", print)

Each player is a client with a connection of its own and sees only what is theirs to see. The house
may be stopped and started again at any point of it: the clients come back by themselves.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import NamedTuple

from dealer.client import House, Patience, RemoteTable, connect

NAMES = ("Ada", "Bob", "Cleo", "Dan")
DEALT = 5
DROPPED = 2
"""Whose connection is cut in the middle of the game: Cleo's."""

COSIGN_SECONDS = 5.0
"""How long the players wait for the server to take their signatures of the last checkpoint."""

_RANKS = "23456789TJQKA"
_ORDER = {"high card": 0, "a pair": 1, "two pairs": 2, "three of a kind": 3, "a straight": 4,
          "a flush": 5, "a full house": 6, "four of a kind": 7, "a straight flush": 8}  # fmt: skip
_SHAPES: dict[tuple[int, ...], str] = {
    (2, 1): "a pair",
    (2, 2): "two pairs",
    (3, 1): "three of a kind",
    (3, 2): "a full house",
    (4, 1): "four of a kind",
}


class Player(NamedTuple):
    name: str
    house: House
    table: RemoteTable


async def play(
    url: str,
    report: Callable[[str], None],
    *,
    pace: float = 0.0,
    witness: Callable[[RemoteTable], None] | None = None,
) -> str:
    """Play a whole game at the house at `url` (ws://…/ws); the table's id.

    `report` is told what happens, `pace` are seconds between two moves, and `witness` is given
    each player's table when the game is over.
    """
    async with AsyncExitStack() as stack:
        patience = Patience(backoff_max=1.0)
        houses = [
            await stack.enter_async_context(connect(url, name=name, patience=patience))
            for name in NAMES
        ]
        game = _Game(report, pace)
        await game.sit_down(houses)
        await game.first_round()
        await game.second_round()
        await game.close()
        if witness is not None:
            for player in game.players:
                witness(player.table)
        return game.host.id


class _Game:
    def __init__(self, report: Callable[[str], None], pace: float) -> None:
        self.report = report
        self.pace = pace
        self.players: list[Player] = []

    @property
    def host(self) -> RemoteTable:
        return self.players[0].table

    async def say(self, sentence: str) -> None:
        self.report(sentence)
        await asyncio.sleep(self.pace)

    async def sit_down(self, houses: list[House]) -> None:
        opened = await houses[0].open(deck="52", seats=len(NAMES), name="Demonstration")
        for name, house in zip(NAMES, houses, strict=True):
            self.players.append(Player(name, house, await house.join(opened.id)))
        await self.everybody_sees(lambda table: len(table.seats) == len(NAMES))
        await self.say(f"{', '.join(NAMES)} sit down at table {opened.id}.")

    async def everybody_sees(self, truth: Callable[[RemoteTable], bool]) -> None:
        await asyncio.gather(*(player.table.until(truth) for player in self.players))

    async def first_round(self) -> None:
        """Draw poker: five cards, one exchange, and after a reshuffle another one."""
        await self.deal()
        for player in self.players:
            await self.exchange(player)
        await self.drop(self.players[DROPPED])
        await self.gather_discards()
        for player in self.players:
            await self.exchange(player, end="random" if player is self.players[-1] else "top")
        await self.show_down()

    async def second_round(self) -> None:
        """A short one: what was drawn is shown at once."""
        await self.deal()
        await self.show_down()

    async def deal(self) -> None:
        number = await self.host.round_open()
        await self.host.shuffle()
        await self.say(
            f"Round {number}: everybody brings random bytes, and in 51 logged swaps a fresh deck "
            "is shuffled and sealed."
        )
        await self.host.deal(DEALT)
        await self.everybody_sees(lambda table: len(table.hand) == DEALT)
        for player in self.players:
            await self.say(f"  {player.name} alone sees: {' '.join(player.table.hand)}")

    async def exchange(self, player: Player, *, end: str = "top") -> None:
        table = player.table
        weak = [card for card in table.hand if card not in kept(table.hand)][:3]
        if not weak:
            await self.say(f"{player.name} stands.")
            return
        await table.discard(weak)
        drawn = (
            [card for _ in weak for card in await table.draw(1)]
            if end == "top"
            else (await table.draw(len(weak), end="random"))
        )
        where = "the top" if end == "top" else "anywhere in the deck, by a partial shuffle"
        await self.say(
            f"{player.name} discards {' '.join(weak)} and draws {' '.join(drawn)} from {where}; "
            f"the others see {len(drawn)} backs."
        )

    async def drop(self, player: Player) -> None:
        sockets, seen = player.house.connection.sockets, player.table.version
        player.house.connection.break_line()
        await self.host.cut(self.host.deck_count // 2)
        await player.table.until(lambda table: table.version >= self.host.version)
        await self.say(
            f"{player.name}'s connection is cut while Ada cuts the deck; {player.name} resumes "
            f"after version {seen} and misses nothing (socket {sockets} became "
            f"{player.house.connection.sockets})."
        )

    async def gather_discards(self) -> None:
        """The game calls for a reshuffle: what was discarded goes back, with fresh entropy."""
        count = len(self.host.piles.get("discard", []))
        if count:
            await self.host.return_(count=count, source="pile:discard")
        await self.host.shuffle()
        await self.say(
            f"The {count} discards go back, and all {self.host.deck_count} cards of the deck are "
            "shuffled again with fresh bytes from everybody."
        )

    async def show_down(self) -> None:
        for player in self.players:
            await player.table.show(player.table.hand)
        hands = {player.name: player.table.hand for player in self.players}
        for name, cards in hands.items():
            await self.say(f"  {name} shows {' '.join(cards)}: {strength(cards)[1]}")
        best = max(hands, key=lambda name: strength(hands[name]))
        number = self.host.round
        await self.host.round_close()
        await self.everybody_sees(lambda table: table.round is None)
        await self.say(
            f"{best} wins. Round {number} closes: the house shows its secret, and each client has "
            "recomputed every swap."
        )

    async def close(self) -> None:
        await self.host.close()
        await self.everybody_sees(lambda table: table.closed)
        with suppress(TimeoutError):
            async with asyncio.timeout(COSIGN_SECONDS):
                await self.everybody_sees(lambda table: table.cosigned == table.version)
        await self.say(f"The table closes at version {self.host.version}.")


def kept(hand: list[str]) -> list[str]:
    """The cards worth keeping: those that have a fellow of their rank, else the two highest."""
    ranks = Counter(card[0] for card in hand)
    fellows = [card for card in hand if ranks[card[0]] > 1]
    return fellows or sorted(hand, key=lambda card: _RANKS.index(card[0]))[-2:]


def strength(hand: list[str]) -> tuple[tuple[int, ...], str]:
    """Compares as five-card poker hands do; and the name of what it is."""
    counts = Counter(_RANKS.index(card[0]) for card in hand)
    order = sorted(counts, key=lambda rank: (counts[rank], rank), reverse=True)
    shape = tuple(counts[rank] for rank in order[:2])
    flush = len({card[1] for card in hand}) == 1
    if order == [12, 3, 2, 1, 0]:
        order = [3, 2, 1, 0, -1]  # the ace as the lowest
    straight = len(order) == len(hand) and order[0] - order[-1] == len(hand) - 1
    name = _SHAPES.get(shape, "high card")
    if straight or flush:
        name = "a straight flush" if straight and flush else "a straight" if straight else "a flush"
    return (_ORDER[name], *order), name
