"""The operations of the original on piles, as those in `operations.py`."""

from __future__ import annotations

from dealer.game.commands import AddNote, Command
from dealer.game.stacks import DECK, pile
from dealer.gateway.decks.codes import described
from dealer.gateway.decks.deck import API, Deck, NotFound, moving, shuffling
from dealer.gateway.decks.deck_notes import PILE
from dealer.gateway.decks.deck_request import (
    DeckRequest,
    Members,
    deck_members,
    named_cards,
    too_few,
)
from dealer.gateway.decks.tables import OpenDeck

NOT_DRAWN = "Only drawn cards and cards of piles go onto a pile; these are neither: {codes}."


async def pile_add(request: DeckRequest) -> Members:
    """Put cards on a pile that are drawn, or in any pile; refused where one of them is neither."""
    opened, name = await request.find(), request.target.pile
    to, named = pile(name), named_cards(request)
    if named is None:
        raise NotFound("You must specify cards to add to the pile.")
    await _look(request, opened.deck.piles())
    notes = await request.tables.notes.of(opened.live_table)

    def choose(deck: Deck) -> tuple[None, list[Command]]:
        among = [*deck.drawn(), *deck.piled()]
        commands = moving(deck.find(named, among, NOT_DRAWN), to)
        if not commands and name not in (*deck.piles(), *notes.piles):
            commands = [AddNote(API, PILE, name)]
        return None, commands

    await request.change(choose)
    return await _with_piles(request, opened)


async def pile_list(request: DeckRequest) -> Members:
    """The cards of a pile, from its bottom to its top.

    In the original a new deck has no list of piles, and a shuffled one an empty list.
    """
    opened, name = await request.find(), request.target.pile
    known = await _pile_names(request, opened)
    if not known and len(opened.live_table.table.round_versions) == 1:
        raise NotFound(_no_pile(name))
    await _look(request, [name] if name in known else [])
    members, deck = await _with_piles(request, opened), opened.deck
    if name in members["piles"]:
        cards = deck.codes(deck.round.cards(pile(name)))
        members["piles"][name]["cards"] = described(cards, request.images)
    return members


async def pile_shuffle(request: DeckRequest) -> Members:
    """Shuffle a pile."""
    opened, stack = await _find_pile(request)
    await request.change(lambda deck: (None, [shuffling(stack)] if deck.round.cards(stack) else []))
    return await _with_piles(request, opened)


async def pile_draw(request: DeckRequest) -> Members:
    """Draw named cards of a pile, or a number from an end of it or from anywhere in it."""
    opened, stack = await _find_pile(request)
    if request.given.text("cards"):
        codes = await _draw_named(request, stack)
    else:
        codes = await _draw_count(request, opened, stack)
    members = await _with_piles(request, opened)
    return members | {"cards": described(codes, request.images), "piles": members.pop("piles")}


async def _draw_named(request: DeckRequest, stack: str) -> list[str]:
    named = named_cards(request) or []
    await _look(request, [request.target.pile])

    def choose(deck: Deck) -> tuple[list[str], list[Command]]:
        cards = [(stack, slot) for slot in deck.round.cards(stack)]
        slots = [slot for _, slot in deck.find(named, cards, _not_in_pile(request))]
        return deck.codes(slots), deck.taking(stack, slots)

    return await request.change(choose)


async def _draw_count(request: DeckRequest, opened: OpenDeck, stack: str) -> list[str]:
    count, where = request.given.count(), request.target.where

    def choose(deck: Deck) -> tuple[list[str], list[Command]]:
        cards = deck.round.cards(stack)
        if count > len(cards):
            raise NotFound(too_few(count))
        if where == "random":
            return [], []
        slots = cards[:count] if where == "bottom" else cards[len(cards) - count :]
        return deck.codes(slots), deck.taking(stack, slots)

    codes = await request.change(choose)
    if where != "random":
        return codes
    return await request.tables.draw_at_random(request.client, opened, count, stack)


async def pile_return(request: DeckRequest) -> Members:
    """Put cards of a pile, or all of them, below the deck."""
    opened, stack = await _find_pile(request)
    named = named_cards(request)
    if named is not None:
        await _look(request, [request.target.pile])

    def choose(deck: Deck) -> tuple[None, list[Command]]:
        cards = [(stack, slot) for slot in deck.round.cards(stack)]
        if named is not None:
            cards = deck.find(named, cards, _not_in_pile(request))
        return None, moving(cards, DECK)

    await request.change(choose)
    return await _with_piles(request, opened)


async def _look(request: DeckRequest, names: list[str]) -> None:
    """See the cards of these piles that a shuffle has hidden; the log says so."""
    await request.change(lambda deck: (None, deck.looking_at(names)))


async def _pile_names(request: DeckRequest, opened: OpenDeck) -> list[str]:
    """The names of all piles, the empty ones at the end."""
    notes = await request.tables.notes.of(opened.live_table)
    names = opened.deck.piles()
    return names + [name for name in notes.piles if name not in names]


async def _find_pile(request: DeckRequest) -> tuple[OpenDeck, str]:
    """The deck, and the stack of a pile that it must have."""
    opened, name = await request.find(), request.target.pile
    if name not in await _pile_names(request, opened):
        raise NotFound(_no_pile(name))
    return opened, pile(name)


async def _with_piles(request: DeckRequest, opened: OpenDeck) -> Members:
    """The members of an answer with the number of cards of each pile."""
    names, cards = await _pile_names(request, opened), opened.deck.round.cards
    return deck_members(opened) | {
        "piles": {name: {"remaining": len(cards(pile(name)))} for name in names}
    }


def _not_in_pile(request: DeckRequest) -> str:
    return f"The pile, {request.target.pile} does not contain the requested cards."


def _no_pile(name: str) -> str:
    return f"The pile, {name} does not exist."
