"""The operations of the original on piles, as those in `operations.py`."""

from __future__ import annotations

from dealer.game.commands import AddNote, Command
from dealer.game.stacks import DECK, pile
from dealer.gateway.decks.asked import (
    Asked,
    Members,
    NotThere,
    deck_members,
    named_cards,
    too_few,
)
from dealer.gateway.decks.codes import described, shown
from dealer.gateway.decks.moves import API, Deck, moving, shuffling
from dealer.gateway.decks.records import PILE
from dealer.gateway.decks.tables import OpenDeck


async def pile_add(asked: Asked) -> Members:
    """Put cards on a pile that are drawn, or in any pile; others are left out."""
    opened, name = await asked.find(), asked.target.pile
    to, named = pile(name), named_cards(asked)
    if named is None:
        raise NotThere("You must specify cards to add to the pile.")
    await _look(asked, opened.deck.piles())
    record = await asked.tables.records.of(opened.live_table)

    def choose(deck: Deck) -> tuple[None, list[Command]]:
        commands = moving(deck.find(named, [*deck.drawn(), *deck.piled()]), to)
        if not commands and name not in (*deck.piles(), *record.piles):
            commands = [AddNote(API, PILE, name)]
        return None, commands

    await asked.change(choose)
    return await _with_piles(asked, opened)


async def pile_list(asked: Asked) -> Members:
    """The cards of a pile, from its bottom to its top.

    In the original a new deck has no list of piles, and a shuffled one an empty list.
    """
    opened, name = await asked.find(), asked.target.pile
    known = await _pile_names(asked, opened)
    if not known and len(opened.live_table.table.round_versions) == 1:
        raise NotThere(_no_pile(name))
    await _look(asked, [name] if name in known else [])
    members, deck = await _with_piles(asked, opened), opened.deck
    if name in members["piles"]:
        cards = deck.codes(deck.round.cards(pile(name)))
        members["piles"][name]["cards"] = described(cards, asked.images)
    return members


async def pile_shuffle(asked: Asked) -> Members:
    """Shuffle a pile."""
    opened, stack = await _find_pile(asked)
    await asked.change(lambda deck: (None, [shuffling(stack)] if deck.round.cards(stack) else []))
    return await _with_piles(asked, opened)


async def pile_draw(asked: Asked) -> Members:
    """Draw named cards of a pile, or a number from an end of it or from anywhere in it."""
    opened, stack = await _find_pile(asked)
    if asked.given.text("cards"):
        codes = await _draw_named(asked, stack)
    else:
        codes = await _draw_count(asked, opened, stack)
    members = await _with_piles(asked, opened)
    return members | {"cards": described(codes, asked.images), "piles": members.pop("piles")}


async def _draw_named(asked: Asked, stack: str) -> list[str]:
    named = named_cards(asked) or []
    await _look(asked, [asked.target.pile])

    def choose(deck: Deck) -> tuple[list[str], list[Command]]:
        found = deck.find(named, [(stack, slot) for slot in deck.round.cards(stack)])
        if len(found) < len(named):
            name = asked.target.pile
            raise NotThere(f"The pile, {name} does not contain the requested cards.")
        slots = [slot for _, slot in found]
        return deck.codes(slots), deck.taking(stack, slots)

    codes: list[str] = await asked.change(choose)
    return codes


async def _draw_count(asked: Asked, opened: OpenDeck, stack: str) -> list[str]:
    count, where = asked.given.count(), asked.target.where

    def choose(deck: Deck) -> tuple[list[str], list[Command]]:
        cards = deck.round.cards(stack)
        if count > len(cards):
            raise NotThere(too_few(count))
        if where == "random":
            return [], []
        slots = cards[:count] if where == "bottom" else cards[len(cards) - count :]
        return deck.codes(slots), deck.taking(stack, slots)

    codes: list[str] = await asked.change(choose)
    if where != "random" or not count:
        return codes
    drawn = await asked.tables.draw_at_random(asked.client, opened, count, stack)
    return [shown(code) for code in drawn]


async def pile_return(asked: Asked) -> Members:
    """Put cards of a pile, or all of them, below the deck."""
    opened, stack = await _find_pile(asked)
    named = named_cards(asked)
    if named is not None:
        await _look(asked, [asked.target.pile])

    def choose(deck: Deck) -> tuple[None, list[Command]]:
        cards = [(stack, slot) for slot in deck.round.cards(stack)]
        return None, moving(cards if named is None else deck.find(named, cards), DECK)

    await asked.change(choose)
    return await _with_piles(asked, opened)


async def _look(asked: Asked, names: list[str]) -> None:
    """See the cards of these piles that a shuffle has hidden; the log says so."""
    await asked.change(lambda deck: (None, deck.looking_at(names)))


async def _pile_names(asked: Asked, opened: OpenDeck) -> list[str]:
    """The names of all piles, the empty ones at the end."""
    record = await asked.tables.records.of(opened.live_table)
    names = opened.deck.piles()
    return names + [name for name in record.piles if name not in names]


async def _find_pile(asked: Asked) -> tuple[OpenDeck, str]:
    """The deck, and the stack of a pile that it must have."""
    opened, name = await asked.find(), asked.target.pile
    if name not in await _pile_names(asked, opened):
        raise NotThere(_no_pile(name))
    return opened, pile(name)


async def _with_piles(asked: Asked, opened: OpenDeck) -> Members:
    """The members of an answer with the number of cards of each pile."""
    names, cards = await _pile_names(asked, opened), opened.deck.round.cards
    return deck_members(opened) | {
        "piles": {name: {"remaining": len(cards(pile(name)))} for name in names}
    }


def _no_pile(name: str) -> str:
    return f"The pile, {name} does not exist."
