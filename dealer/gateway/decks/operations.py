"""The operations of the original on a deck, each from a request to the members of its answer.

What the original answers with status 200 or 404 and an error is answered so here. Where it fails
with 500, counts from the wrong end, or has other cards than were asked for, the request is refused
with a sentence.
"""

from __future__ import annotations

from dealer.errors import BadRequest
from dealer.game.commands import CloseTable, Command
from dealer.game.stacks import DECK
from dealer.gateway.decks.codes import (
    JOKERS,
    contents_of,
    described,
    is_standard,
    logged,
    standard,
)
from dealer.gateway.decks.deck import API, Deck, NotFound, moving, shuffling
from dealer.gateway.decks.deck_request import (
    DeckRequest,
    Members,
    deck_members,
    named_cards,
    too_few,
)
from dealer.gateway.decks.tables import OpenDeck

NOT_DRAWN = "Only drawn cards that are in no pile return to the deck; these are not: {codes}."


async def new(request: DeckRequest, *, shuffle: bool) -> Members:
    """A new deck, in its order or shuffled."""
    return {**deck_members(await _open(request, shuffle=shuffle)), "shuffled": shuffle}


async def new_draw(request: DeckRequest) -> Members:
    """Cards of a new shuffled deck."""
    count = request.given.count()
    return await _drawn(request, await _open(request, shuffle=True), count)


async def _open(request: DeckRequest, *, shuffle: bool) -> OpenDeck:
    decks, jokers = request.given.decks(), request.given.flag("jokers_enabled")
    contents = _named_contents(request, jokers=jokers)
    if contents is None:
        contents = standard(jokers=bool(jokers))
    codes = logged(contents, decks)
    request.opened = await request.tables.open(request.client, codes, decks, shuffle=shuffle)
    return request.opened


def _named_contents(request: DeckRequest, *, jokers: bool | None) -> list[str] | None:
    """The cards that a request names for a deck, which may be jokers unless it rules them out."""
    named = named_cards(request)
    if named is not None and jokers is False and not set(named).isdisjoint(JOKERS):
        raise BadRequest("cards names jokers, but jokers_enabled is false: leave one of them out.")
    return named


async def info(request: DeckRequest) -> Members:
    """How many cards a deck has, and whether it was shuffled."""
    opened = await request.find()
    notes = await request.tables.notes.of(opened.live_table)
    return {**deck_members(opened), "shuffled": notes.shuffled}


async def shuffle(request: DeckRequest) -> Members:
    """Shuffle the remaining cards, or collect all cards and shuffle them in a new round."""
    opened, given = await request.find(), request.given
    if given.text("deck_count") is not None and given.decks() != opened.decks:
        raise BadRequest(
            f"deck_count of this deck is {opened.decks}; new/shuffle/ opens one with another count."
        )
    if given.flag("remaining"):
        if given.text("cards") is not None or given.flag("jokers_enabled") is not None:
            raise BadRequest("With remaining=true the cards stay: leave out other parameters.")
        await request.change(lambda deck: (None, [shuffling(DECK)] if deck.remaining else []))
    else:
        codes = await _changed_contents(request, opened)
        await request.tables.begin_again(request.client, opened, codes)
    return {**deck_members(opened), "shuffled": True}


async def _changed_contents(request: DeckRequest, opened: OpenDeck) -> tuple[str, ...] | None:
    """Other cards that a request to shuffle names for the deck; None for the same as before."""
    jokers = request.given.flag("jokers_enabled")
    named = _named_contents(request, jokers=jokers)
    if named is not None:
        return logged(named, opened.decks)
    if jokers is None:
        return None
    contents = contents_of(await request.tables.opened_with(opened), opened.decks)
    if is_standard(contents):
        return logged(standard(jokers=jokers), opened.decks)
    if jokers == set(contents).isdisjoint(JOKERS):
        raise BadRequest("This deck was opened with certain cards: name those and jokers in cards.")
    return None


async def draw(request: DeckRequest) -> Members:
    """Cards from an end of the deck, or from anywhere in it; all that are left if too few are."""
    count, named = request.given.count(), named_cards(request)
    if named:
        raise NotFound(
            f"A deck gives its next cards, and {','.join(named)} by name only from a pile: use "
            "count here, and cards with pile/NAME/draw/."
        )
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
        if named is not None:
            drawn = deck.find(named, drawn, NOT_DRAWN)
        return None, moving(drawn, DECK)

    await request.change(choose)
    return deck_members(opened)


async def close(request: DeckRequest) -> Members:
    """Close the deck for good, which reveals its secret, so that all of it can be checked."""
    opened = await request.find()
    members = deck_members(opened)
    await request.tables.execute(request.client, opened, [CloseTable(API)])
    return members
