"""The commands of a player or host at a table, one method each.

A method returns when this client has verified the resulting events. It raises Refused, with the
reason, if the server refuses the command. Cards are given by code, if this client sees them, or by
slot; piles by their name without the prefix `pile:`.
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
    """The commands; a subclass sends them in `call` and `_call_seen`."""

    @abstractmethod
    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command; members that are None are not sent."""

    @abstractmethod
    async def _call_seen(self, method: str, **params: Any) -> list[str]:
        """Codes of the cards that a command moved, as opened to this client."""

    @abstractmethod
    def _compare_entropy(self, round_: int, entropy: str | None) -> None:
        """Record a doubt if a round has other entropy than `entropy` (None: the default)."""

    @abstractmethod
    async def sealed(self) -> None:
        """Wait until no shuffle is running."""

    async def vacate(self, seat: int, reason: str = "") -> None:
        """Remove the player of a seat, as the host; the cards of its hand stay there.

        Other players may do it when that player has had no connection for two minutes.
        """
        await self.call("seat.vacate", seat=seat, reason=reason or None)

    async def move_seat(self, to: int, *, seat: int | None = None) -> None:
        """Move to the free seat `to`, with the same token; no card may be before this player.

        With `seat`, as the host: ask the player of that seat to move there.
        """
        await self.call("seat.move", to=to, seat=seat)

    async def transfer_host(self, seat: int) -> None:
        """Make the player of a seat the host, for as long as that player stays.

        A player may become host when the host has had no connection for two minutes.
        """
        await self.call("table.transfer_host", seat=seat)

    async def note(self, kind: str, text: str) -> None:
        """Add a text of at most 2,048 bytes to the log, for everyone: a bet, a question, chat."""
        await self.call("table.note", kind=kind, text=text)

    async def round_open(
        self,
        *,
        deck: Deck | None = None,
        entropy: Literal["players", "house"] | None = None,
        commit_ms: int | None = None,
        reveal_ms: int | None = None,
    ) -> int:
        """Open a round with a new deck (`deck`, or the table's default); its number.

        If the round has other entropy than `entropy`, the table's `doubts` say so.
        """
        result = await self.call(
            "round.open",
            deck=deck_spec(deck),
            entropy=entropy,
            commit_ms=commit_ms,
            reveal_ms=reveal_ms,
        )
        number = int(result["round"])
        self._compare_entropy(number, entropy)
        return number

    async def round_close(self) -> None:
        """Close the round; the house reveals its secret and this client replays the round."""
        await self.call("round.close")

    async def shuffle(
        self,
        *,
        pile: str | None = None,
        algorithm: Literal["backward", "forward"] | None = None,
        steps: int | None = None,
        wait: bool = True,
    ) -> int:
        """Shuffle the deck or a pile, and with `wait` wait for its seal; its `shuffle_index`.

        Shuffles of a round are counted from 0.
        """
        params = {"algorithm": algorithm, "steps": steps}
        if pile is None:
            result = await self.call("deck.shuffle", **params)
        else:
            result = await self.call("pile.shuffle", pile=pile, **params)
        if wait:
            await self.sealed()
        return int(result["k"])

    async def deal(
        self,
        each: int = 1,
        *,
        seats: Sequence[int] | None = None,
        piles: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
        """Deal `each` cards one at a time to `seats`, or to all seats; the number dealt.

        Then each of `piles`, such as `{"name": "board", "count": 3, "face": "up"}`, gets its cards.
        """
        named = None if seats is None else list(seats)
        onto = None if piles is None else [dict(pile) for pile in piles]
        return int((await self.call("deck.deal", each=each, seats=named, piles=onto))["dealt"])

    async def draw(self, count: int = 1, *, end: End = "top") -> list[str]:
        """Draw from the deck into this player's hand; the codes."""
        return await self._call_seen("deck.draw", count=count, **{"from": end})

    async def burn(self, count: int = 1) -> None:
        """Move cards from the top of the deck to the burn pile, face down."""
        await self.call("deck.burn", count=count)

    async def cut(self, at: int) -> None:
        """Cut the deck: the cards from place `at` upwards go to the bottom."""
        await self.call("deck.cut", at=at)

    async def return_cards(
        self,
        cards: Cards | None = None,
        *,
        count: int | None = None,
        source: str | None = None,
        where: Where | None = None,
    ) -> None:
        """Return cards to the deck: from this player's hand, or from `source`, a `pile:<name>`."""
        await self.call(
            "deck.return", cards=_cards(cards), count=count, where=where, **{"from": source}
        )

    async def discard(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        """Move cards from this player's hand to the discard pile or another pile."""
        await self.call("hand.discard", cards=_cards(cards), pile=pile, face=face)

    async def play(
        self, cards: Cards, *, pile: str | None = None, face: Face | None = None
    ) -> None:
        """Move cards from this player's hand to the table or another pile, face up by default."""
        await self.call("hand.play", cards=_cards(cards), pile=pile, face=face)

    async def give(self, cards: Cards, *, to: int) -> None:
        """Give cards from this player's hand to the seat `to`."""
        await self.call("hand.give", cards=_cards(cards), to=to)

    async def pass_(self, cards: Cards | None = None, *, to: int | None = None) -> None:
        """Pass cards from this player's hand to the seat `to`, with the passes of all seats.

        Without cards: deliver what was passed, if no seat is awaited or this player is the host.
        """
        await self.call("hand.pass", cards=_cards(cards), to=to)

    async def take_back(self) -> None:
        """Take back this player's last move, or its pass, if it showed no card to anyone."""
        await self.call("hand.take_back")

    async def show(
        self, cards: Cards | None = None, *, to: int | None = None, whole: bool = False
    ) -> None:
        """Show cards from this player's hand, or the `whole` hand, to all or to the seat `to`."""
        await self.call("hand.show", cards=_cards(cards), to=to, all=whole or None)

    async def pile_draw(
        self,
        pile: str,
        count: int | None = None,
        *,
        end: End | None = None,
        cards: Cards | None = None,
        whole: bool = False,
    ) -> list[str]:
        """Draw from an end of a pile, or specific cards, or the `whole` pile; the codes."""
        params = {"count": count, "from": end, "cards": _cards(cards), "all": whole or None}
        return await self._call_seen("pile.draw", pile=pile, **params)

    async def move(
        self,
        source: str,
        *,
        to: str,
        cards: Cards | None = None,
        count: int | None = None,
        where: Where | None = None,
        face: Face | None = None,
        whole: bool = False,
    ) -> None:
        """Move cards from any stack to another: `deck`, `hand`, or a pile's name.

        A `whole` stack keeps its order.
        """
        await self.call(
            "pile.move",
            to=to,
            cards=_cards(cards),
            count=count,
            where=where,
            face=face,
            all=whole or None,
            **{"from": source},
        )

    async def pile_turn(
        self, pile: str, cards: Cards | None = None, *, whole: bool = False
    ) -> None:
        """Turn up the top card of a pile, or specific cards, or the `whole` pile."""
        await self.call("pile.turn", pile=pile, cards=_cards(cards), all=whole or None)

    async def close(self) -> None:
        """Close the table permanently, with its open round."""
        await self.call("table.close")


def _cards(cards: Cards | None) -> list[CardRef] | None:
    """A list of cards; a single card needs no list."""
    if cards is None:
        return None
    return [cards] if isinstance(cards, str | int) else list(cards)


def deck_spec(deck: Deck | None) -> Any:
    """A deck as a JSON value."""
    if deck is None or isinstance(deck, str):
        return deck
    return dict(deck) if isinstance(deck, Mapping) else list(deck)
