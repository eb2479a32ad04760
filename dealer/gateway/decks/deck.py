"""Decks: each is a table of the log, opened and found by the deck's id, and changed by commands.

The table has one seat, which is the API's. Cards that a shuffle has reached are drawn into its
hand, where they stay hidden until the round closes. The order of an unshuffled deck is public: its
cards are moved face up to the pile `OPEN`. Both are "drawn" to the original. Each other pile is a
pile of the original. The deck's top card is its last one, and so is a pile's.

A client pays for a deck what it would pay for the same commands at a table: messages, bytes that
are written, processor time, and of the tables that an address may open.

What the original answers with status 200 or 404 and an error is answered so here. Where it fails
with 500, counts from the wrong end, or has other cards than were asked for, the request is refused
with a sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from dealer.errors import BadRequest, Refused, Unavailable
from dealer.game import commands
from dealer.game.events import CardDrawn
from dealer.game.rules import WAIT_MS_DEFAULT
from dealer.game.stacks import DECK, hand, pile
from dealer.game.state import Round, Table
from dealer.gateway.decks import parameters
from dealer.gateway.rate_limit import costs
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.session.context import GatewayContext
from dealer.service import CommandResult, LiveTable
from dealer.service.tables.decks import EMPTY_PILE, RULE, UNSHUFFLED, DeckNotes
from dealer.service.tables.execution import resolve

ATTEMPTS = 3
"""How often a request is carried out, if the client of another node was quicker."""

SEAT = 1
API = commands.Actor(host=True, seat=SEAT)
HAND = hand(SEAT)
OPEN = pile("(drawn)")
"""Cards drawn face up; no pile of the original can have this name."""

_PILE = "pile:"

Members = dict[str, Any]
Commands = list[commands.Command]


@dataclass(slots=True)
class Deck:
    """A deck as one request uses it: its table, and the `budget` of what the request changes.

    `log_notes` are what the log says besides its cards. `given` are the request's parameters; from
    its path come `pile`, the name of a pile or "", and `where`: top, bottom or random. `images` is
    the address of the cards' pictures.

    Between the choice of cards and the commands with them nothing is awaited, so that the request
    of another client of this node does not come between them.
    """

    context: GatewayContext
    live_table: LiveTable
    budget: ClientBudget
    log_notes: DeckNotes
    given: parameters.Parameters
    pile: str
    where: str
    images: str
    version: int = 0  # on which the newest command was decided; 0 if no other may follow it

    async def run(self, operation: Callable[[Deck], Awaitable[Members]]) -> Members:
        """The members of the answer; begins again if another node has changed the deck."""
        for attempt in range(1, ATTEMPTS + 1):
            self.version = self.table.version
            try:
                return await operation(self)
            except Refused as refusal:
                changed = self.version and self.table.version > self.version
                if attempt == ATTEMPTS or refusal.temporary or not changed:
                    raise
        raise AssertionError("unreachable")

    @property
    def table(self) -> Table:
        """The state of its table; another object after a reload."""
        return self.live_table.table

    @property
    def round(self) -> Round:
        """The open round; Unavailable between two rounds."""
        if self.table.round is None:
            raise Unavailable("This deck has no open round: shuffle it.")
        return self.table.round

    @property
    def decks(self) -> int:
        """How many decks it consists of."""
        return int(self.table.rules.given[RULE])

    # What the paths do: each returns members of the answer

    async def info(self) -> Members:
        """How many cards it has, and whether it was shuffled, as a new deck says, too."""
        return {**self._remaining(), "shuffled": (await self._notes()).shuffled}

    async def shuffle(self) -> Members:
        """Shuffle the remaining cards, or collect all cards and shuffle them in a new round."""
        given, decks = self.given, self.decks
        if given.has("deck_count") and given.decks() != decks:
            raise BadRequest(
                f"deck_count of this deck is {decks}; new/shuffle/ opens one with another count."
            )
        if not given.flag("remaining"):
            await self._begin_again()
        elif given.has("cards") or given.flag("jokers_enabled") is not None:
            raise BadRequest("With remaining=true the cards stay: leave out other parameters.")
        else:
            await self._execute(*self._shuffling())
        return {**self._remaining(), "shuffled": True}

    async def draw(self) -> Members:
        """Cards from an end of a stack, or from anywhere in it.

        A deck with too few cards gives all that are left, top first, a pile none. A pile's cards
        are in its order, bottom first.
        """
        stack, count = await self._stack(), self.given.count()
        slots = self._cards(stack)
        if self.pile and count > len(slots):
            raise parameters.OriginalError(_too_few(count))
        if self.where == "random":
            drawn = min(count, len(slots))
            random = [commands.DrawAtRandom(API, drawn, stack)] if drawn else []
            events = (event for done in await self._execute(*random) for event in done.events)
            codes = [
                parameters.shown(each.card or "") for each in events if isinstance(each, CardDrawn)
            ]
        else:
            bottom = self.where == "bottom"
            end = slots[:count] if bottom else slots[max(len(slots) - count, 0) :]
            codes = await self._take(stack, end if self.pile or bottom else end[::-1])
        if self.pile:
            return await self._with_piles(codes)
        error = {} if len(codes) == count else {"success": False, "error": _too_few(count)}
        return {"cards": self._described(codes), **self._remaining(), **error}

    async def draw_chosen(self) -> Members:
        """Cards of a pile by name, where any are named; else as `draw`."""
        named = self.given.cards()
        if not named:
            return await self.draw()
        if not self.pile:
            raise parameters.OriginalError(
                f"A deck gives its next cards, and {','.join(named)} by name only from a pile: use "
                "count here, and cards with pile/NAME/draw/."
            )
        stack = await self._stack()
        return await self._with_piles(await self._take(stack, await self._chosen()))

    async def give_back(self) -> Members:
        """Return cards below the deck, one below the other: drawn ones, or those of a pile."""
        await self._stack()
        await self._execute(*self._moving(await self._chosen(), DECK))
        return await self._with_piles() if self.pile else self._remaining()

    async def close(self) -> Members:
        """Close the deck for good, which reveals its secret, so that all of it can be checked."""
        members = self._remaining()
        await self._execute(commands.CloseTable(API))
        return members

    async def add_to_pile(self) -> Members:
        """Put cards on a pile that are drawn, or in any pile; refused if one is neither."""
        stack, named = pile(self.pile), self.given.cards()
        if named is None:
            raise parameters.OriginalError("You must specify cards to add to the pile.")
        await self._execute(*self._looking_at(*self._piles()))
        is_new = self.pile not in await self._pile_names()
        refusal = "Only drawn cards and cards of piles go onto a pile; these are neither: {codes}."
        among = [*self._drawn(), *self._cards(*map(pile, self._piles()))]
        chosen = self._moving(self._find(named, among, refusal), stack)
        if is_new and not chosen:
            chosen.append(commands.AddNote(API, EMPTY_PILE, self.pile))
        await self._execute(*chosen)
        return await self._with_piles()

    async def list_pile(self) -> Members:
        """The cards of a pile, from its bottom to its top.

        In the original a new deck has no list of piles, and a shuffled one an empty list.
        """
        names = await self._pile_names()
        if self.pile not in names and (names or len(self.table.round_versions) > 1):
            return await self._with_piles()
        stack = await self._stack()
        await self._execute(*self._looking_at(self.pile))
        members = await self._with_piles()
        codes = self._codes(self._cards(stack))
        members["piles"][self.pile]["cards"] = self._described(codes)
        return members

    async def shuffle_pile(self) -> Members:
        """Shuffle a pile."""
        await self._stack()
        await self._execute(*self._shuffling())
        return await self._with_piles()

    # The state

    async def _notes(self) -> DeckNotes:
        return await self.log_notes.read(self.context.service.reader, self.live_table)

    async def _stack(self) -> str:
        """The stack that the path names; refused for a pile that the deck does not have."""
        if not self.pile:
            return DECK
        if self.pile not in await self._pile_names():
            raise parameters.OriginalError(f"The pile, {self.pile} does not exist.")
        return pile(self.pile)

    def _codes(self, slots: Iterable[int]) -> list[str]:
        """The original's codes of cards."""
        return [parameters.shown(self.round.face(slot) or "") for slot in slots]

    def _cards(self, *stacks: str) -> list[int]:
        """The slots of stacks, each bottom first."""
        return [slot for stack in stacks for slot in self.round.cards(stack)]

    def _piles(self) -> list[str]:
        """The names of the piles that a card has been in."""
        stacks = [stack for stack in self.round.stacks if stack.startswith(_PILE) and stack != OPEN]
        return [stack.removeprefix(_PILE) for stack in stacks]

    async def _pile_names(self) -> list[str]:
        """The names of all piles, the empty ones at the end."""
        return list(dict.fromkeys([*self._piles(), *(await self._notes()).piles]))

    def _drawn(self) -> list[int]:
        """The drawn cards, in the order of a new deck."""
        order = {code: -place for place, code in enumerate(self.round.opened)}
        return sorted(self._cards(HAND, OPEN), key=lambda slot: order[self.round.face(slot) or ""])

    def _find(self, codes: Iterable[str], among: Sequence[int], refusal: str) -> list[int]:
        """A card with each of the codes.

        Refused if there is none: with this sentence, in which `{codes}` stands for those.
        """
        left: dict[str, list[int]] = {}
        for slot, code in zip(among, self._codes(among), strict=True):
            left.setdefault(code, []).append(slot)
        found = [(code, left[code].pop(0) if left.get(code) else None) for code in codes]
        if missing := [code for code, slot in found if slot is None]:
            raise parameters.OriginalError(refusal.format(codes=",".join(missing)))
        return [slot for _, slot in found if slot is not None]

    async def _chosen(self) -> list[int]:
        """The cards that are named, or all, of the pile, or of the drawn ones."""
        named = self.given.cards()
        refusal = "Only drawn cards that are in no pile return to the deck; these are not: {codes}."
        if self.pile:
            refusal = f"The pile, {self.pile} does not contain the requested cards."
            if named is not None:
                await self._execute(*self._looking_at(self.pile))
        among = self._cards(pile(self.pile)) if self.pile else self._drawn()
        return among if named is None else self._find(named, among, refusal)

    # Members of answers

    def _remaining(self) -> Members:
        return {"remaining": len(self.round.cards(DECK))}

    async def _with_piles(self, codes: Iterable[str] | None = None) -> Members:
        """The members of an answer with the cards, and the number of cards of each pile."""
        names = await self._pile_names()
        piles = {name: {"remaining": len(self._cards(pile(name)))} for name in names}
        cards = {} if codes is None else {"cards": self._described(codes)}
        return {**self._remaining(), **cards, "piles": piles}

    def _described(self, codes: Iterable[str]) -> list[Members]:
        return [parameters.described(code, self.images) for code in codes]

    # Commands

    def _shuffling(self) -> Commands:
        stack = pile(self.pile) if self.pile else DECK
        return [commands.StartShuffle(API, stack)] if self.round.cards(stack) else []

    async def _take(self, source: str, slots: Sequence[int]) -> list[str]:
        """Draw these cards from a stack; their codes.

        They are named: a count would draw others if another node was quicker.
        """
        reached = tuple(slot for slot in slots if self.round.drawable[slot])
        others = tuple(slot for slot in slots if not self.round.drawable[slot])
        chosen: Commands = []
        if reached:
            chosen.append(commands.Draw(API, len(reached), source, cards=reached))
        if others:
            chosen.append(commands.Move(API, "pile", source, OPEN, cards=others, face="up"))
        codes = self._codes(slots)
        await self._execute(*chosen)
        return codes

    def _moving(self, slots: Iterable[int], to: str) -> Commands:
        """Put cards on top of a pile, or below the deck.

        Each goes on top of the one before it, and in the deck below the one before it.
        """
        source = {slot: stack for stack, held in self.round.stacks.items() for slot in held}
        moved: Commands = []
        for stack, some in groupby(slots, key=lambda slot: source[slot]):
            action = "return" if (stack, to) == (HAND, DECK) else "pile"
            where: Literal["top", "bottom"] = "bottom" if to == DECK else "top"
            moved.append(commands.Move(API, action, stack, to, cards=tuple(some), where=where))
        return moved

    def _looking_at(self, *names: str) -> Commands:
        """See the cards of these piles that a shuffle has hidden; the log says so."""
        hidden = [
            stack
            for stack in map(pile, names)
            if not all(self.round.sees(SEAT, slot) for slot in self.round.cards(stack))
        ]
        return [commands.Show(API, stack, to=SEAT, whole=True) for stack in hidden]

    async def begin(self, *, shuffle: bool) -> None:
        """Open the first round of a new deck."""
        seat = commands.TakeSeat("REST interface", bot=True)
        await self._execute(seat, *_opening(self.given.opened_with(), shuffle=shuffle))

    async def _begin_again(self) -> None:
        """Close the round, which reveals its secret, and open one with the same cards or others."""
        opened = (await self._notes()).opened if self.table.round is None else self.round.opened
        if not opened:  # the process ended before it opened the first round
            raise Unavailable("This deck was not completed: open a new one.")
        jokers, named = self.given.flag("jokers_enabled"), self.given.contents()
        before = parameters.contents_of(opened, self.decks)
        if named is None and jokers is not None:
            if before in (parameters.standard(jokers=False), parameters.standard(jokers=True)):
                named = parameters.standard(jokers=jokers)
            elif jokers == set(before).isdisjoint(parameters.JOKERS):
                raise BadRequest(
                    "This deck was opened with certain cards: name those and jokers in cards."
                )
        cards = opened if named is None else parameters.logged(named, self.decks)
        beginning = _opening(cards, shuffle=True)
        # Else the round would be closed, and no other be opened.
        self.context.service.maintenance.require(self.live_table.table_id, beginning[0])
        closing = [] if self.table.round is None else [commands.CloseRound(API)]
        await self._execute(*closing, *beginning)

    async def _execute(self, *chosen: commands.Command) -> list[CommandResult]:
        """Execute commands one after the other, which share a commit; raises the first refusal."""
        if not chosen:
            return []
        table, budget = self.table, self.budget
        # Of several commands the last one may be refused, after the others were executed.
        self.version = 0 if len(chosen) > 1 else table.version
        # A round that is opened is shuffled, too: its deck is not at the table yet.
        opened = sum(len(each.deck) for each in chosen if isinstance(each, commands.OpenRound))
        written = sum(costs.bytes_written(each, table) for each in chosen)
        written += costs.BYTES_PER_SWAP * opened
        with budget.charged(written, self.context.clock()), self.live_table.held():
            budget.charge(sum(costs.weight(each, table) for each in chosen) + opened / 52)
            # All in this step of the loop, so that none of another client comes between them.
            done = await asyncio.gather(*map(self._submit, chosen))
        self.version = self.table.version
        for each in done:
            budget.cpu.charge(costs.EVENT_SECONDS * len(each.events))
        return done

    def _submit(self, command: commands.Command) -> Awaitable[CommandResult]:
        service = self.context.service
        if isinstance(command, commands.DrawAtRandom):
            return service.random_draws.draw(self.live_table, command)
        answer: asyncio.Future[CommandResult] = asyncio.get_running_loop().create_future()
        service.submit(self.live_table, command, resolve(answer))
        return answer


def _opening(codes: tuple[str, ...], *, shuffle: bool) -> list[commands.Command]:
    """The commands that open a round, and shuffle its deck or say that it is not shuffled."""
    opened = commands.OpenRound(API, codes, "house", WAIT_MS_DEFAULT, WAIT_MS_DEFAULT)
    if shuffle:
        return [opened, commands.StartShuffle(API)]
    note = (
        "This deck was not shuffled: its cards are in the order in which the round was opened. The "
        "shuffle before this note has no swap; it only seals the cards."
    )
    sealing = commands.StartShuffle(API, steps=0)
    return [opened, sealing, commands.AddNote(API, UNSHUFFLED, note)]


def _too_few(count: int) -> str:
    return f"Not enough cards remaining to draw {count} additional"
