"""The demo game: four clients play draw poker over real sockets.

    table = await play("ws://127.0.0.1:8080/ws", print)

Each player is a client with its own connection and sees only its own cards. The server may be
stopped and started at any point: the clients reconnect automatically.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import NamedTuple

from dealer.client import House, RemoteTable, RetryPolicy, connect
from dealer.errors import amount

NAMES = ("Ada", "Bob", "Cleo", "Dan")
DEALT = 5
DROPPED = 2
"""The player whose connection is cut in the middle of the game: Cleo."""

COSIGN_SECONDS = 5.0
"""How long the players wait until the server has their signatures of the last checkpoint."""

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
    on_end: Callable[[RemoteTable], None] | None = None,
) -> str:
    """Play a whole game on the server at `url` (ws://…/ws); the table's id.

    `report` is called with a sentence for each move, `pace` is the time between two moves in
    seconds, and `on_end` is called with each player's table after the game.
    """
    async with AsyncExitStack() as stack:
        patience = RetryPolicy(backoff_max=1.0)
        houses = [
            await stack.enter_async_context(connect(url, name=name, patience=patience))
            for name in NAMES
        ]
        game = _Game(report, pace)
        await game.sit_down(houses)
        await game.first_round()
        await game.second_round()
        await game.close()
        if on_end is not None:
            for player in game.players:
                on_end(player.table)
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
        await self.wait_for_all(lambda table: len(table.seats) == len(NAMES))
        await self.say(f"{', '.join(NAMES)} sit down at table {opened.id}.")

    async def wait_for_all(self, predicate: Callable[[RemoteTable], bool]) -> None:
        await asyncio.gather(*(player.table.until(predicate) for player in self.players))

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
        """A short round: the dealt cards are shown immediately."""
        await self.deal()
        await self.show_down()

    async def deal(self) -> None:
        number = await self.host.round_open()
        await self.host.shuffle()
        await self.say(
            f"Round {number}: each player sends random bytes, and a fresh deck is shuffled in 51 "
            "logged swaps and sealed."
        )
        await self.host.deal(DEALT)
        await self.wait_for_all(lambda table: len(table.hand) == DEALT)
        for player in self.players:
            await self.say(f"  Only {player.name} sees: {' '.join(player.table.hand)}")

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
        where = "the top" if end == "top" else "random places of the deck, by a partial shuffle"
        await self.say(
            f"{player.name} discards {' '.join(weak)} and draws {' '.join(drawn)} from {where}; "
            f"the others see {amount(len(drawn), 'back')}."
        )

    async def drop(self, player: Player) -> None:
        sockets, seen = player.house._connection.sockets, player.table.version
        player.house._connection.drop_socket()
        await self.host.cut(self.host.deck_count // 2)
        await player.table.until(lambda table: table.version >= self.host.version)
        await self.say(
            f"{player.name}'s connection is cut while Ada cuts the deck; {player.name} resumes "
            f"after version {seen} without missing an event (socket {sockets} became "
            f"{player.house._connection.sockets})."
        )

    async def gather_discards(self) -> None:
        """Reshuffle: the discards go back into the deck, and all players send new entropy."""
        count = len(self.host.piles.get("discard", []))
        if count:
            await self.host.return_cards(count=count, source="pile:discard")
        await self.host.shuffle()
        await self.say(
            f"{amount(count, 'discard goes', 'discards go')} back, and all "
            f"{self.host.deck_count} cards of the deck are shuffled again with new "
            "random bytes from each player."
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
        await self.wait_for_all(lambda table: table.round is None)
        await self.say(
            f"{best} wins. Round {number} closes: the house reveals its secret and each client has "
            "recomputed every swap."
        )

    async def close(self) -> None:
        await self.host.close()
        await self.wait_for_all(lambda table: table.closed)
        with suppress(TimeoutError):
            async with asyncio.timeout(COSIGN_SECONDS):
                await self.wait_for_all(lambda table: table.cosigned == table.version)
        await self.say(f"The table closes at version {self.host.version}.")


def kept(hand: list[str]) -> list[str]:
    """The cards to keep: those that share a rank with another, else the two highest."""
    ranks = Counter(card[0] for card in hand)
    matching = [card for card in hand if ranks[card[0]] > 1]
    return matching or sorted(hand, key=lambda card: _RANKS.index(card[0]))[-2:]


def strength(hand: list[str]) -> tuple[tuple[int, ...], str]:
    """A key that orders five-card poker hands, and the name of the hand."""
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
