"""Poker hands played with the game's commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dealer.eventlog.rows import leaf_of
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Deal, Draw, Move, Show
from dealer.game.events import OPENED_TYPES, CardsSwapped
from dealer.history.replay import Game
from dealer.proof import bundle
from dealer.proof.opened import separate
from dealer.proof.verify import Swap
from tests.projector.random_games import HOST
from tests.projector.random_games import Game as Played

NAMES = ("Ada", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus")


class Poker:
    """A table in its first round, its deck shuffled; seats count from 1."""

    def __init__(
        self,
        game: str | None,
        *,
        players: int = 3,
        deck: Sequence[str] = STANDARD,
        seed: object = "poker",
        **rules: Any,
    ) -> None:
        given = rules if game is None else rules | {"game": game}
        self.played = Played(str(seed), rules=given).sit(*NAMES[:players])
        self.played.open_round(deck=deck)

    def cards(self, stack: str) -> list[str]:
        round_ = self.played.round
        return [round_.face(card) or "" for card in round_.cards(stack)]

    def hand(self, seat: int) -> list[str]:
        return self.cards(f"hand:{seat}")

    def deal(self, each: int, seats: Sequence[int] | None = None) -> None:
        self.played.do(Deal(HOST, each, None if seats is None else tuple(seats)))

    def burn(self, to: str = "pile:burn") -> None:
        self.played.do(Move(HOST, "burn", "deck", to, count=1))

    def board(self, count: int, pile: str = "board") -> None:
        move = Move(HOST, "pile", "deck", f"pile:{pile}", count=count, face="up")
        self.played.do(move)

    def discard(self, seat: int, cards: Sequence[str] | None = None) -> None:
        """Discard the named cards, or the whole hand."""
        chosen = tuple(self.hand(seat) if cards is None else cards)
        self.played.do(Move(Actor(seat=seat), "discard", f"hand:{seat}", "pile:discard", chosen))

    def draw(self, seat: int, count: int) -> None:
        self.played.do(Draw(Actor(seat=seat), count))

    def show(self, seat: int, cards: Sequence[str] | None = None) -> None:
        chosen = tuple(self.hand(seat) if cards is None else cards)
        self.played.do(Show(Actor(seat=seat), f"hand:{seat}", chosen))

    def close(self) -> Game:
        """Close the round; returns the game as read from a verified bundle."""
        self.played.close_round()
        return game_of(self.played)


def game_of(played: Played) -> Game:
    """The game as read from a verified bundle: it has no swaps of an open round."""
    table = played.table
    rounds = len(table.round_versions)
    closed = rounds - (table.round is not None)
    leaves = [leaf_of(played.id, row).encode() for row in played.rows]
    swaps = [
        Swap(version, event.round, event.k, event.step, event.i, event.j, (), ("", ""))
        for version, (event, _) in enumerate(played.events, 1)
        if isinstance(event, CardsSwapped) and event.j is not None and event.round <= closed
    ]
    openings = [
        bundle.opened(row.version, separate(row.type, row.members())[1], row.hidden).encode()
        for row in played.rows
        if row.type in OPENED_TYPES and row.hidden is not None
    ]
    return Game(table.origin, table.key.hex(), rounds, closed, leaves, swaps, {}, openings)
