"""The operations of the original on a deck, each from a request to the members of its answer.

What the original answers with status 200 or 404 and an error is answered so here. Where it fails
with 500, or counts from the wrong end, the request is refused with a sentence.
"""

from __future__ import annotations

from dealer.game.commands import CloseTable, Command
from dealer.game.stacks import DECK
from dealer.gateway.decks.codes import (
    codes_in,
    contents_of,
    described,
    is_standard,
    logged,
    standard,
)
from dealer.gateway.decks.deck import API, Deck, moving, shuffling
from dealer.gateway.decks.deck_request import (
    DeckRequest,
    Members,
    deck_members,
    named_cards,
    too_few,
)
from dealer.gateway.decks.tables import OpenDeck


async def new(request: DeckRequest, *, shuffle: bool) -> Members:
    """A new deck, in its order or shuffled."""
    given = request.given
    decks, jokers, cards = given.decks(), bool(given.flag("jokers_enabled")), given.text("cards")
    contents = standard(jokers=jokers)
    if cards is not None:
        contents = [code for code in codes_in(cards) if code in contents]
    codes = logged(contents, decks)
    request.opened = await request.tables.open(request.client, codes, decks, shuffle=shuffle)
    return {**deck_members(request.opened), "shuffled": shuffle}


async def new_draw(request: DeckRequest) -> Members:
    """Cards of a new shuffled deck, which the original always makes of all cards."""
    count, decks = request.given.count(), request.given.decks()
    codes = logged(standard(jokers=bool(request.given.flag("jokers_enabled"))), decks)
    request.opened = await request.tables.open(request.client, codes, decks, shuffle=True)
    return await _drawn(request, request.opened, count)


async def info(request: DeckRequest) -> Members:
    """How many cards a deck has, and whether it was shuffled."""
    opened = await request.find()
    notes = await request.tables.notes.of(opened.live_table)
    return {**deck_members(opened), "shuffled": notes.shuffled}


async def shuffle(request: DeckRequest) -> Members:
    """Shuffle the remaining cards, or collect all cards and shuffle them in a new round."""
    opened = await request.find()
    if request.given.flag("remaining"):
        await request.change(lambda deck: (None, [shuffling(DECK)] if deck.remaining else []))
    else:
        codes = await _changed_contents(request, opened)
        await request.tables.begin_again(request.client, opened, codes)
    return {**deck_members(opened), "shuffled": True}


async def _changed_contents(request: DeckRequest, opened: OpenDeck) -> tuple[str, ...] | None:
    """Other cards that a request to shuffle names for the deck; None for the same as before."""
    request.given.decks()  # not used, as in the original, but refused where it is wrong
    cards, jokers = request.given.text("cards"), request.given.flag("jokers_enabled")
    if cards is None and jokers is None:
        return None
    contents = contents_of(await request.tables.opened_with(opened), opened.decks)
    valid = standard(jokers="X1" in contents if jokers is None else jokers)
    if cards is not None:
        return logged([code for code in codes_in(cards) if code in valid], opened.decks)
    return logged(valid, opened.decks) if is_standard(contents) else None


async def draw(request: DeckRequest) -> Members:
    """Cards from an end of the deck, or from anywhere in it; all that are left if too few are."""
    count = request.given.count()
    return await _drawn(request, await request.find(), count)


async def _drawn(request: DeckRequest, opened: OpenDeck, count: int) -> Members:
    where = request.target.where
    if where == "random":
        some = min(count, opened.deck.remaining)
        codes = await request.tables.draw_at_random(request.client, opened, some, DECK)
    else:
        codes = await request.change(lambda deck: _next(deck, count, where))
    members = deck_members(opened)
    cards = described(codes, request.images)
    members |= {"cards": cards, "remaining": members.pop("remaining")}
    if len(codes) < count:
        members |= {"success": False, "error": too_few(count)}
    return members


def _next(deck: Deck, count: int, where: str) -> tuple[list[str], list[Command]]:
    slots = deck.next_of_deck(count, where)
    return deck.codes(slots), deck.taking(DECK, slots)


async def return_drawn(request: DeckRequest) -> Members:
    """Put drawn cards, which are in no pile, below the deck."""
    opened = await request.find()
    named = named_cards(request)

    def choose(deck: Deck) -> tuple[None, list[Command]]:
        drawn = deck.drawn()
        return None, moving(drawn if named is None else deck.find(named, drawn), DECK)

    await request.change(choose)
    return deck_members(opened)


async def close(request: DeckRequest) -> Members:
    """Close the deck for good, which reveals its secret, so that all of it can be checked."""
    opened = await request.find()
    members = deck_members(opened)
    await request.tables.execute(request.client, opened, [CloseTable(API)])
    return members
