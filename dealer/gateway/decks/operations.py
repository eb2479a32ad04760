"""The operations of the original, each from a request about a deck to members of its answer.

What the original answers with status 200 or 404 and an error is answered so here. Where it fails
with 500, counts from the wrong end, or has other cards than were asked for, the request is refused
with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from dealer.errors import BadRequest
from dealer.game.commands import AddNote, CloseTable, StartShuffle
from dealer.game.stacks import DECK, pile
from dealer.gateway.decks.cards import JOKERS, contents_of, described, logged, standard
from dealer.gateway.decks.deck import API, Choice, Deck, NotFound
from dealer.gateway.decks.parameters import Parameters
from dealer.service.tables.decks import EMPTY_PILE

Members = dict[str, Any]


def _contents(given: Parameters) -> list[str] | None:
    """The cards that a request names for a deck, which may be jokers unless it rules them out."""
    named = given.cards()
    if named is not None and given.flag("jokers_enabled") is False and {*JOKERS} & {*named}:
        raise BadRequest("cards names jokers, but jokers_enabled is false: leave one of them out.")
    return named


def opened_with(given: Parameters) -> tuple[tuple[str, ...], int]:
    """The cards of the deck that a request opens, and of how many decks it consists."""
    given.count()  # refused before a deck is opened
    decks, named = given.decks(), _contents(given)
    whole = standard(jokers=bool(given.flag("jokers_enabled")))
    return logged(whole if named is None else named, decks), decks


class DeckRequest(NamedTuple):
    """A request: its deck and parameters, and from its path a pile's name, or "", and `where`.

    `where` is top, bottom or random; `images` is the address of the cards' pictures.
    """

    deck: Deck
    given: Parameters
    pile: str
    where: str
    images: str

    async def info(self) -> Members:
        """How many cards it has, and whether it was shuffled, as a new deck says, too."""
        return {"remaining": self.deck.remaining, "shuffled": (await self.deck.notes()).shuffled}

    async def shuffle(self) -> Members:
        """Shuffle the remaining cards, or collect all cards and shuffle them in a new round."""
        given, decks = self.given, self.deck.decks
        if given.has("deck_count") and given.decks() != decks:
            raise BadRequest(
                f"deck_count of this deck is {decks}; new/shuffle/ opens one with another count."
            )
        if not given.flag("remaining"):
            opened = await self.deck.opened_with()
            named = self._other_contents(opened)
            await self.deck.begin_again(opened if named is None else logged(named, decks))
        elif given.has("cards") or given.flag("jokers_enabled") is not None:
            raise BadRequest("With remaining=true the cards stay: leave out other parameters.")
        else:
            await self.deck.change(lambda: self._shuffling(DECK))
        return {"remaining": self.deck.remaining, "shuffled": True}

    def _other_contents(self, opened: tuple[str, ...]) -> list[str] | None:
        """The cards that a request to shuffle names for its deck; None for the same as before."""
        jokers, named = self.given.flag("jokers_enabled"), _contents(self.given)
        before = contents_of(opened, self.deck.decks)
        if named is not None or jokers is None:
            return named
        if before in (standard(jokers=False), standard(jokers=True)):
            return standard(jokers=jokers)
        if jokers == set(before).isdisjoint(JOKERS):
            raise BadRequest(
                "This deck was opened with certain cards: name those and jokers in cards."
            )
        return None

    def _shuffling(self, stack: str) -> Choice:
        return [], [StartShuffle(API, stack)] if self.deck.round.cards(stack) else []

    async def draw(self) -> Members:
        """Cards from an end of a stack, or from anywhere in it.

        Of a deck with too few cards all that are left, top first; of a pile none. A pile's are in
        its order, bottom first.
        """
        deck, stack, count = self.deck, await self._stack(), self.given.count()

        def choose() -> Choice:
            slots = deck.cards(stack)
            if self.pile and count > len(slots):
                raise NotFound(_too_few(count))
            bottom = self.where == "bottom"
            end = slots[:count] if bottom else slots[max(len(slots) - count, 0) :]
            return deck.taking(stack, end if self.pile or bottom else end[::-1])

        if self.where == "random":
            choose()
            codes = await deck.draw_at_random(min(count, len(deck.cards(stack))), stack)
        else:
            codes = await deck.change(choose)
        if self.pile:
            return await self._with_piles(codes)
        error = {} if len(codes) == count else {"success": False, "error": _too_few(count)}
        return {"cards": self._described(codes), "remaining": deck.remaining, **error}

    async def draw_next(self) -> Members:
        """The next cards of a deck; NotFound for cards that are named."""
        if named := self.given.cards():
            raise NotFound(
                f"A deck gives its next cards, and {','.join(named)} by name only from a pile: use "
                "count here, and cards with pile/NAME/draw/."
            )
        return await self.draw()

    async def pile_draw(self) -> Members:
        """Cards of a pile, by name or as `draw`."""
        if not self.given.cards():
            return await self.draw()
        stack, chosen = await self._stack(), await self._chosen()
        return await self._with_piles(
            await self.deck.change(lambda: self.deck.taking(stack, chosen()))
        )

    async def give_back(self) -> Members:
        """Put drawn cards that are in no pile, or cards of a pile, all or some, below the deck."""
        await self._stack()
        chosen = await self._chosen()
        await self.deck.change(lambda: self.deck.moving(chosen(), DECK))
        return await self._with_piles() if self.pile else {"remaining": self.deck.remaining}

    async def close(self) -> Members:
        """Close the deck for good, which reveals its secret, so that all of it can be checked."""
        members = {"remaining": self.deck.remaining}
        await self.deck.execute([CloseTable(API)])
        return members

    async def pile_add(self) -> Members:
        """Put cards on a pile that are drawn, or in any pile; refused where one is neither."""
        deck, stack, named = self.deck, pile(self.pile), self.given.cards()
        if named is None:
            raise NotFound("You must specify cards to add to the pile.")
        await deck.change(lambda: deck.looking_at(*deck.piles()))
        is_new = self.pile not in await self._pile_names()
        refusal = "Only drawn cards and cards of piles go onto a pile; these are neither: {codes}."

        def choose() -> Choice:
            among = [*deck.drawn(), *deck.cards(*map(pile, deck.piles()))]
            codes, chosen = deck.moving(deck.find(named, among, refusal), stack)
            if is_new and not chosen:
                chosen.append(AddNote(API, EMPTY_PILE, self.pile))
            return codes, chosen

        await deck.change(choose)
        return await self._with_piles()

    async def pile_list(self) -> Members:
        """The cards of a pile, from its bottom to its top.

        In the original a new deck has no list of piles, and a shuffled one an empty list.
        """
        names = await self._pile_names()
        if self.pile not in names and (names or len(self.deck.table.round_versions) > 1):
            return await self._with_piles()
        stack = await self._stack()
        await self.deck.change(lambda: self.deck.looking_at(self.pile))
        members = await self._with_piles()
        codes = self.deck.codes(self.deck.cards(stack))
        members["piles"][self.pile]["cards"] = self._described(codes)
        return members

    async def pile_shuffle(self) -> Members:
        """Shuffle a pile."""
        stack = await self._stack()
        await self.deck.change(lambda: self._shuffling(stack))
        return await self._with_piles()

    async def _stack(self) -> str:
        """The stack that the path names; NotFound for a pile that the deck does not have."""
        if not self.pile:
            return DECK
        if self.pile not in await self._pile_names():
            raise NotFound(f"The pile, {self.pile} does not exist.")
        return pile(self.pile)

    async def _chosen(self) -> Callable[[], list[int]]:
        """Chooses the cards that it names, or all, of its pile, or of the drawn ones."""
        deck, named = self.deck, self.given.cards()
        refusal = "Only drawn cards that are in no pile return to the deck; these are not: {codes}."
        if self.pile:
            refusal = f"The pile, {self.pile} does not contain the requested cards."
            await deck.change(lambda: deck.looking_at(self.pile) if named is not None else ([], []))

        def choose() -> list[int]:
            among = deck.cards(pile(self.pile)) if self.pile else deck.drawn()
            return among if named is None else deck.find(named, among, refusal)

        return choose

    async def _pile_names(self) -> list[str]:
        """The names of all piles, the empty ones at the end."""
        return list(dict.fromkeys([*self.deck.piles(), *(await self.deck.notes()).piles]))

    async def _with_piles(self, codes: Iterable[str] | None = None) -> Members:
        """The members of an answer with the cards, and the number of cards of each pile."""
        names = await self._pile_names()
        piles = {name: {"remaining": len(self.deck.cards(pile(name)))} for name in names}
        cards = {} if codes is None else {"cards": self._described(codes)}
        return {"remaining": self.deck.remaining, **cards, "piles": piles}

    def _described(self, codes: Iterable[str]) -> list[Members]:
        return [described(code, self.images) for code in codes]


def _too_few(count: int) -> str:
    return f"Not enough cards remaining to draw {count} additional"


class Operation(NamedTuple):
    """What a path does, and the parameters that it knows.

    `opens` says that it opens a deck, and whether it shuffles it; None: it is about a deck.
    """

    name: str
    path: str
    run: Callable[[DeckRequest], Awaitable[Members]]
    parameters: tuple[str, ...] = ()
    opens: bool | None = None

    def match(self, path: str) -> tuple[Operation, dict[str, str]] | None:
        """This, and the parts of a path by name, if it is one of the operation's."""
        found = re.fullmatch(f"(?:{self.path})/?", path)
        return found and (self, found.groupdict(""))


_SLUG = "[A-Za-z0-9_-]+"
_DECK = f"/api/deck/(?P<deck>{_SLUG})"
_PILE = f"{_DECK}/pile/(?P<pile>{_SLUG})"
_OLD = f"(?P<old>{_SLUG})"
_WHERE = "(?:/(?P<where>(?i:top|bottom|random)))?"
_NEW = ("deck_count", "jokers_enabled", "cards")

OPERATIONS = (
    Operation("new", "/api/(?:deck/)?new", DeckRequest.info, _NEW, opens=False),
    Operation("new.shuffle", "/api/(?:deck/new/)?shuffle", DeckRequest.info, _NEW, opens=True),
    Operation("new.draw", "/api/deck/new/draw", DeckRequest.draw, ("count", *_NEW), opens=True),
    Operation("info", _DECK, DeckRequest.info),
    Operation(
        "shuffle", f"{_DECK}/shuffle|/api/shuffle/{_OLD}", DeckRequest.shuffle, ("remaining", *_NEW)
    ),
    Operation(
        "draw", f"{_DECK}/draw{_WHERE}|/api/draw/{_OLD}", DeckRequest.draw_next, ("count", "cards")
    ),
    Operation("return", f"{_DECK}/return", DeckRequest.give_back, ("cards",)),
    Operation("close", f"{_DECK}/close", DeckRequest.close),
    Operation("pile.add", f"{_PILE}/add", DeckRequest.pile_add, ("cards",)),
    Operation("pile.list", f"{_PILE}/list", DeckRequest.pile_list),
    Operation("pile.shuffle", f"{_PILE}/shuffle", DeckRequest.pile_shuffle),
    Operation("pile.return", f"{_PILE}/return", DeckRequest.give_back, ("cards",)),
    Operation("pile.draw", f"{_PILE}/draw{_WHERE}", DeckRequest.pile_draw, ("cards", "count")),
)
"""In the order in which a path is compared with them; the slash at its end is optional."""
