"""Everything a player or a host can wish for at a table, one method for each.

A method returns when this client has seen what came of the wish; it raises Refused, with a sentence
that says why, when the house does not grant it. Cards are named by code, if one sees them, or by
slot. Piles are named without their prefix `pile:`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dealer.game.commands import CardRef, Where

Deck = str | Sequence[str] | Mapping[str, Any]
"""`"52"`, `"54"`, codes, or `{"decks", "jokers", "cards"}`."""

End = Literal["top", "bottom", "random"]
Face = Literal["up", "down"]
Cards = CardRef | Sequence[CardRef]


class Moves(ABC):
    """The wishes; whoever carries them to the house says how in `change` and `change_seen`."""

    @abstractmethod
    async def change(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a wish; members that are None are not sent."""

    @abstractmethod
    async def change_seen(self, method: str, **params: Any) -> list[str]:
        """Codes, as this client saw them opened, of the cards that a wish brought."""

    @abstractmethod
    def opened(self, round_: int, entropy: str | None) -> None:
        """Notice where a round takes other bytes than it was asked to; None is the table's own."""

    @abstractmethod
    async def sealed(self) -> None:
        """Wait until no shuffle is running."""

    async def round_open(
        self,
        *,
        deck: Deck | None = None,
        entropy: Literal["players", "house"] | None = None,
        commit_ms: int | None = None,
        reveal_ms: int | None = None,
    ) -> int:
        """Open a round with a fresh deck (the table's, unless one is named); its number.

        If it takes other bytes than those of `entropy`, that is one of the table's doubts.
        """
        result = await self.change(
            "round.open",
            deck=deck_spec(deck),
            entropy=entropy,
            commit_ms=commit_ms,
            reveal_ms=reveal_ms,
        )
        number = int(result["round"])
        self.opened(number, entropy)
        return number

    async def round_close(self) -> None:
        """Close the round; the house shows its secret, and this client checks all it saw."""
        await self.change("round.close")

    async def shuffle(
        self,
        *,
        pile: str | None = None,
        algorithm: Literal["backward", "forward"] | None = None,
        steps: int | None = None,
        wait: bool = True,
    ) -> int:
        """Shuffle the deck or a pile and wait for the seal, unless not wanted; the shuffle's k."""
        params = {"algorithm": algorithm, "steps": steps}
        if pile is None:
            result = await self.change("deck.shuffle", **params)
        else:
            result = await self.change("pile.shuffle", pile=pile, **params)
        if wait:
            await self.sealed()
        return int(result["k"])

    async def deal(self, each: int = 1, *, seats: Sequence[int] | None = None) -> int:
        """Deal `each` cards, one at a time, to these seats or to all; how many were dealt."""
        named = None if seats is None else list(seats)
        return int((await self.change("deck.deal", each=each, seats=named))["dealt"])

    async def draw(self, count: int = 1, *, end: End = "top") -> list[str]:
        """Draw from the deck into one's hand; the codes."""
        return await self.change_seen("deck.draw", count=count, **{"from": end})

    async def burn(self, count: int = 1) -> None:
        await self.change("deck.burn", count=count)

    async def cut(self, at: int) -> None:
        """Bring the cards from place `at` on to the bottom."""
        await self.change("deck.cut", at=at)

    async def return_(
        self,
        cards: Cards | None = None,
        *,
        count: int | None = None,
        source: str | None = None,
        where: Where | None = None,
    ) -> None:
        """Put cards back into the deck, from one's hand or from `pile:<name>`."""
        await self.change(
            "deck.return", cards=_cards(cards), count=count, where=where, **{"from": source}
        )

    async def discard(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        await self.change("hand.discard", cards=_cards(cards), pile=pile, face=face)

    async def play(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        await self.change("hand.play", cards=_cards(cards), pile=pile, face=face)

    async def give(self, cards: Cards, *, to: int) -> None:
        """Give cards of one's hand to the seat `to`."""
        await self.change("hand.give", cards=_cards(cards), to=to)

    async def show(self, cards: Cards, *, to: int | None = None) -> None:
        """Show cards of one's hand to all, or to the seat `to` alone."""
        await self.change("hand.show", cards=_cards(cards), to=to)

    async def hand_return(self, cards: Cards, *, where: Where | None = None) -> None:
        """Put cards of one's hand back into the deck."""
        await self.change("hand.return", cards=_cards(cards), where=where)

    async def pile_draw(
        self,
        pile: str,
        count: int | None = None,
        *,
        end: End | None = None,
        cards: Cards | None = None,
    ) -> list[str]:
        """Draw from a pile, from an end or cards that are named; the codes."""
        params = {"count": count, "from": end, "cards": _cards(cards)}
        return await self.change_seen("pile.draw", pile=pile, **params)

    async def pile_move(
        self,
        source: str,
        *,
        to: str,
        cards: Cards | None = None,
        count: int | None = None,
        where: Where | None = None,
        face: Face | None = None,
    ) -> None:
        """Move cards from any stack to another: `deck`, `hand`, or a pile's name."""
        await self.change(
            "pile.move",
            to=to,
            cards=_cards(cards),
            count=count,
            where=where,
            face=face,
            **{"from": source},
        )

    async def pile_turn(self, pile: str, cards: Cards | None = None) -> None:
        """Turn up the top card of a pile, or those that are named."""
        await self.change("pile.turn", pile=pile, cards=_cards(cards))

    async def close(self) -> None:
        """Close the table for good, and with it an open round."""
        await self.change("table.close")


def _cards(cards: Cards | None) -> list[CardRef] | None:
    """One card may be named without a list around it."""
    if cards is None:
        return None
    return [cards] if isinstance(cards, str | int) else list(cards)


def deck_spec(deck: Deck | None) -> Any:
    """A deck as JSON has it."""
    if deck is None or isinstance(deck, str):
        return deck
    return dict(deck) if isinstance(deck, Mapping) else list(deck)
