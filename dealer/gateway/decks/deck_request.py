"""A request about a deck, and what the answers to several operations have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dealer.errors import TableIsClosed
from dealer.game.commands import Command
from dealer.gateway.decks.codes import codes_in
from dealer.gateway.decks.deck import Deck
from dealer.gateway.decks.parameters import Parameters
from dealer.gateway.decks.paths import Target
from dealer.gateway.decks.tables import DeckTables, OpenDeck, T
from dealer.gateway.http.client_connection import ClientConnection

Members = dict[str, Any]


@dataclass(slots=True)
class DeckRequest:
    """A request: its client, path and parameters, and the address of the cards' pictures.

    `opened` is the deck that it is about, as soon as that is known.
    """

    tables: DeckTables
    client: ClientConnection
    target: Target
    given: Parameters
    images: str
    opened: OpenDeck | None = None

    async def find(self) -> OpenDeck:
        """The deck that the path names; raises TableIsClosed, or what `DeckTables.find` raises."""
        self.opened = await self.tables.find(self.target.deck)
        if self.opened.live_table.table.closed:
            raise TableIsClosed("This deck is closed.")
        return self.opened

    async def change(self, choose: Callable[[Deck], tuple[T, list[Command]]]) -> T:
        """`DeckTables.change` for the deck that was found."""
        assert self.opened is not None
        return await self.tables.change(self.client, self.opened, choose)


def deck_members(opened: OpenDeck) -> Members:
    """The members that every answer has."""
    return {"success": True, "deck_id": opened.id, "remaining": opened.deck.remaining}


def named_cards(request: DeckRequest) -> list[str] | None:
    """The codes that a request names; None if it names none at all."""
    text = request.given.text("cards")
    return None if text is None else codes_in(text)


def too_few(count: int) -> str:
    """The error of the original where fewer cards are left."""
    return f"Not enough cards remaining to draw {count} additional"
