"""The operations of the original, each from a deck and a request to members of its answer.

What the original answers with status 200 or 404 and an error is answered so here. Where it fails
with 500, counts from the wrong end, or has other cards than were asked for, the request is refused
with a sentence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dealer.errors import BadRequest
from dealer.game.commands import AddNote, CloseTable, StartShuffle
from dealer.game.stacks import DECK, pile
from dealer.gateway.decks.cards import JOKERS, contents_of, described, logged, standard
from dealer.gateway.decks.deck import API, Choice, Deck, NotFound
from dealer.gateway.decks.parameters import Parameters
from dealer.service.decks import EMPTY_PILE

Members = dict[str, Any]


class Asked(NamedTuple):
    """A request: its parameters, and from its path the name of a pile, "" for none, and `where`.

    `where` is top, bottom or random; `images` is the address of the cards' pictures.
    """

    given: Parameters
    pile: str
    where: str
    images: str

    def described(self, codes: Iterable[str]) -> list[Members]:
        """Cards as a member of the answer."""
        return [described(code, self.images) for code in codes]


def opened_with(given: Parameters) -> tuple[tuple[str, ...], int]:
    """The cards of the deck that a request opens, and of how many decks it consists."""
    given.count()  # refused before a deck is opened
    decks, named = given.decks(), _contents(given)
    whole = standard(jokers=bool(given.flag("jokers_enabled")))
    return logged(whole if named is None else named, decks), decks


def _contents(given: Parameters) -> list[str] | None:
    """The cards that a request names for a deck, which may be jokers unless it rules them out."""
    named = given.cards()
    if named is not None and given.flag("jokers_enabled") is False and {*JOKERS} & {*named}:
        raise BadRequest("cards names jokers, but jokers_enabled is false: leave one of them out.")
    return named


async def info(deck: Deck, asked: Asked) -> Members:
    """How many cards it has, and whether it was shuffled, as a new deck says, too."""
    return {"remaining": deck.remaining, "shuffled": (await deck.notes()).shuffled}


async def shuffle(deck: Deck, asked: Asked) -> Members:
    """Shuffle the remaining cards, or collect all cards and shuffle them in a new round."""
    given = asked.given
    if given.has("deck_count") and given.decks() != deck.decks:
        raise BadRequest(
            f"deck_count of this deck is {deck.decks}; new/shuffle/ opens one with another count."
        )
    if not given.flag("remaining"):
        await deck.begin_again(await _changed_contents(deck, given))
    elif given.has("cards") or given.flag("jokers_enabled") is not None:
        raise BadRequest("With remaining=true the cards stay: leave out other parameters.")
    else:
        await deck.change(lambda: _shuffling(deck, DECK))
    return {"remaining": deck.remaining, "shuffled": True}


async def _changed_contents(deck: Deck, given: Parameters) -> tuple[str, ...]:
    """The cards that the deck has after a request to shuffle, with those that it names."""
    jokers, named = given.flag("jokers_enabled"), _contents(given)
    opened = await deck.opened_with()
    if named is None and jokers is not None:
        before = contents_of(opened, deck.decks)
        if before in (standard(jokers=False), standard(jokers=True)):
            named = standard(jokers=jokers)
        elif jokers == set(before).isdisjoint(JOKERS):
            raise BadRequest(
                "This deck was opened with certain cards: name those and jokers in cards."
            )
    return opened if named is None else logged(named, deck.decks)


def _shuffling(deck: Deck, stack: str) -> Choice:
    return [], [StartShuffle(API, stack)] if deck.round.cards(stack) else []


async def draw(deck: Deck, asked: Asked) -> Members:
    """Cards from an end of a stack, or from anywhere in it, and of a pile also by name.

    Of a deck with too few cards all that are left, top first; of a pile none. A pile's are in its
    order, bottom first.
    """
    stack, count = await _find(deck, asked), asked.given.count()
    bottom, at_random = asked.where == "bottom", asked.where == "random"

    def choose() -> Choice:
        slots = deck.round.cards(stack)
        if asked.pile and count > len(slots):
            raise NotFound(_too_few(count))
        end = slots[:count] if bottom else slots[max(len(slots) - count, 0) :]
        return deck.taking(stack, end if asked.pile or bottom else end[::-1])

    if at_random:
        choose()
        codes = await deck.draw_at_random(min(count, len(deck.cards(stack))), stack)
    else:
        codes = await deck.change(choose)
    if asked.pile:
        return await _with_piles(deck, cards=asked.described(codes))
    members = {"cards": asked.described(codes), "remaining": deck.remaining}
    error = {} if len(codes) == count else {"success": False, "error": _too_few(count)}
    return {**members, **error}


async def draw_next(deck: Deck, asked: Asked) -> Members:
    """The next cards of a deck; NotFound for cards that are named."""
    if named := asked.given.cards():
        raise NotFound(
            f"A deck gives its next cards, and {','.join(named)} by name only from a pile: use "
            "count here, and cards with pile/NAME/draw/."
        )
    return await draw(deck, asked)


async def pile_draw(deck: Deck, asked: Asked) -> Members:
    """Cards of a pile, by name or as `draw`."""
    if not (named := asked.given.cards()):
        return await draw(deck, asked)
    stack = await _find(deck, asked)
    await deck.change(lambda: deck.looking_at(asked.pile))
    codes = await deck.change(lambda: deck.taking(stack, _named(deck, asked, named)))
    return await _with_piles(deck, cards=asked.described(codes))


async def give_back(deck: Deck, asked: Asked) -> Members:
    """Put drawn cards that are in no pile, or cards of a pile, all or some, below the deck."""
    stack, named = await _find(deck, asked), asked.given.cards()

    def choose() -> Choice:
        if named is not None:
            return deck.moving(_named(deck, asked, named), DECK)
        return deck.moving(deck.round.cards(stack) if asked.pile else deck.drawn(), DECK)

    if asked.pile and named is not None:
        await deck.change(lambda: deck.looking_at(asked.pile))
    await deck.change(choose)
    return await _with_piles(deck) if asked.pile else {"remaining": deck.remaining}


async def close(deck: Deck, asked: Asked) -> Members:
    """Close the deck for good, which reveals its secret, so that all of it can be checked."""
    members = {"remaining": deck.remaining}
    await deck.execute([CloseTable(API)])
    return members


async def pile_add(deck: Deck, asked: Asked) -> Members:
    """Put cards on a pile that are drawn, or in any pile; refused where one of them is neither."""
    stack, named = pile(asked.pile), asked.given.cards()
    if named is None:
        raise NotFound("You must specify cards to add to the pile.")
    await deck.change(lambda: deck.looking_at(*deck.piles()))
    is_new = asked.pile not in await _pile_names(deck)

    def choose() -> Choice:
        among = [*deck.drawn(), *deck.cards(*map(pile, deck.piles()))]
        refusal = "Only drawn cards and cards of piles go onto a pile; these are neither: {codes}."
        codes, chosen = deck.moving(deck.find(named, among, refusal), stack)
        if is_new and not chosen:
            chosen.append(AddNote(API, EMPTY_PILE, asked.pile))
        return codes, chosen

    await deck.change(choose)
    return await _with_piles(deck)


async def pile_list(deck: Deck, asked: Asked) -> Members:
    """The cards of a pile, from its bottom to its top.

    In the original a new deck has no list of piles, and a shuffled one an empty list.
    """
    names = await _pile_names(deck)
    if asked.pile not in names and (names or len(deck.table.round_versions) > 1):
        return await _with_piles(deck)
    stack = await _find(deck, asked)
    await deck.change(lambda: deck.looking_at(asked.pile))
    members = await _with_piles(deck)
    members["piles"][asked.pile]["cards"] = asked.described(deck.codes(deck.cards(stack)))
    return members


async def pile_shuffle(deck: Deck, asked: Asked) -> Members:
    """Shuffle a pile."""
    stack = await _find(deck, asked)
    await deck.change(lambda: _shuffling(deck, stack))
    return await _with_piles(deck)


async def _find(deck: Deck, asked: Asked) -> str:
    """The stack that the path names; NotFound for a pile that the deck does not have."""
    if not asked.pile:
        return DECK
    if asked.pile not in await _pile_names(deck):
        raise NotFound(f"The pile, {asked.pile} does not exist.")
    return pile(asked.pile)


def _named(deck: Deck, asked: Asked, named: Sequence[str]) -> list[int]:
    """The cards that a request names, in its pile or among the drawn ones."""
    if asked.pile:
        refusal = f"The pile, {asked.pile} does not contain the requested cards."
        return deck.find(named, deck.cards(pile(asked.pile)), refusal)
    refusal = "Only drawn cards that are in no pile return to the deck; these are not: {codes}."
    return deck.find(named, deck.drawn(), refusal)


async def _pile_names(deck: Deck) -> list[str]:
    """The names of all piles, the empty ones at the end."""
    return list(dict.fromkeys([*deck.piles(), *(await deck.notes()).piles]))


async def _with_piles(deck: Deck, **more: Any) -> Members:
    """The members of an answer with the number of cards of each pile."""
    names = await _pile_names(deck)
    piles = {name: {"remaining": len(deck.cards(pile(name)))} for name in names}
    return {"remaining": deck.remaining, **more, "piles": piles}


def _too_few(count: int) -> str:
    return f"Not enough cards remaining to draw {count} additional"


class Operation(NamedTuple):
    """What a path does, and the parameters that it knows.

    `opens` says that it opens a deck, and whether it shuffles it; None: it is about a deck.
    """

    name: str
    path: str
    run: Callable[[Deck, Asked], Awaitable[Members]]
    parameters: tuple[str, ...] = ()
    opens: bool | None = None


_SLUG = "[A-Za-z0-9_-]+"
_DECK = f"/api/deck/(?P<deck>{_SLUG})"
_PILE = f"{_DECK}/pile/(?P<pile>{_SLUG})"
_OLD = f"(?P<old>{_SLUG})"
_WHERE = "(?:/(?P<where>(?i:top|bottom|random)))?"
_CONTENTS = ("deck_count", "jokers_enabled", "cards")

OPERATIONS = (
    Operation("new", "/api/(?:deck/)?new", info, _CONTENTS, opens=False),
    Operation("new.shuffle", "/api/(?:deck/new/)?shuffle", info, _CONTENTS, opens=True),
    Operation("new.draw", "/api/deck/new/draw", draw, ("count", *_CONTENTS), opens=True),
    Operation("info", _DECK, info),
    Operation(
        "shuffle", f"{_DECK}/shuffle|/api/shuffle/{_OLD}", shuffle, ("remaining", *_CONTENTS)
    ),
    Operation("draw", f"{_DECK}/draw{_WHERE}|/api/draw/{_OLD}", draw_next, ("count", "cards")),
    Operation("return", f"{_DECK}/return", give_back, ("cards",)),
    Operation("close", f"{_DECK}/close", close),
    Operation("pile.add", f"{_PILE}/add", pile_add, ("cards",)),
    Operation("pile.list", f"{_PILE}/list", pile_list),
    Operation("pile.shuffle", f"{_PILE}/shuffle", pile_shuffle),
    Operation("pile.return", f"{_PILE}/return", give_back, ("cards",)),
    Operation("pile.draw", f"{_PILE}/draw{_WHERE}", pile_draw, ("cards", "count")),
)
"""In the order in which a path is compared with them; the slash at its end is optional."""
