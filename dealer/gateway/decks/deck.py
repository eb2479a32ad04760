"""Decks: each is a table of the log, opened and found by the deck's id, and changed by commands.

The table has one seat, which is the API's. Cards that a shuffle has reached are drawn into its
hand, where they stay hidden until the round closes. The order of an unshuffled deck is public: its
cards are moved face up to the pile `OPEN`. Both are "drawn" to the original. Each other pile is a
pile of the original. The deck's top card is its last one, and so is a pile's.

A client pays for a deck what it would pay for the same commands at a table: messages, bytes that
are written, processor time, and of the tables that an address may open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Literal
from weakref import WeakKeyDictionary

from dealer.errors import BadRequest, NotEntitled, Refused, Unavailable
from dealer.game import commands
from dealer.game.rules import WAIT_MS_DEFAULT
from dealer.game.stacks import DECK, hand, pile
from dealer.game.state import Round, Table
from dealer.gateway.clients import ClientConnection
from dealer.gateway.decks.cards import shown
from dealer.gateway.rate_limit import costs
from dealer.gateway.rpc.context import GatewayContext
from dealer.service import CommandResult, LiveTable
from dealer.service.tables.decks import (
    RULE,
    UNSHUFFLED,
    DeckNotes,
    deck_key,
    deck_rules,
    new_deck_id,
)
from dealer.service.tables.execution import resolve

ATTEMPTS = 3
"""How often the cards of a command are chosen, where another client was quicker."""

SEAT = 1
API = commands.Actor(host=True, seat=SEAT)
HAND = hand(SEAT)
OPEN = pile("(drawn)")
"""Cards drawn face up; no pile of the original can have this name."""

_PILE = "pile:"

Choice = tuple[list[str], list[commands.Command]]
"""The codes of cards for the answer, and the commands to execute."""


class NotFound(BadRequest):
    """Answered with 404, as in the original."""


class Decks:
    """The decks of one server; `notes` are of those in memory."""

    def __init__(self, context: GatewayContext) -> None:
        self.context = context
        self.notes: WeakKeyDictionary[LiveTable, DeckNotes] = WeakKeyDictionary()

    async def find(self, client: ClientConnection, id: str) -> Deck:
        """The deck with this id; raises UnknownTable, or what `Service.load` raises."""
        return Deck(self, client, id, await self.context.service.table_opened_by(deck_key(id)))

    async def open(
        self, client: ClientConnection, codes: tuple[str, ...], decks: int, *, shuffle: bool
    ) -> Deck:
        """Open a table with a round of these cards of so many decks, bottom first."""
        key, context, id = client.service_key, self.context, new_deck_id()
        if not context.players_open and (key is None or not key.may("open")):
            raise NotEntitled(
                "On this server only services open decks: send a service key as "
                "`Authorization: Bearer KEY`."
            )
        rules = deck_rules(decks)
        written = costs.text_bytes_written(json.dumps(rules).encode())
        with client.budget.paying(written, context.clock(), decks=decks if key is None else 0):
            opened = await context.service.open_table(rules, key=deck_key(id), address="")
        deck = Deck(self, client, id, opened[0])
        with deck.live_table.held():
            seat = commands.TakeSeat("REST interface", bot=True)
            await deck.execute([seat, *_beginning(codes, shuffle=shuffle)])
        return deck


class Deck:
    """A deck as one request uses it: its table, and the client who pays for what it changes."""

    def __init__(self, decks: Decks, client: ClientConnection, id: str, table: LiveTable) -> None:
        self.id = id
        self.live_table = table
        self._context = decks.context
        self._budget = client.budget
        self._notes = decks.notes.setdefault(table, DeckNotes())

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

    @property
    def remaining(self) -> int:
        """The number of cards that are not drawn."""
        return len(self.round.cards(DECK))

    async def notes(self) -> DeckNotes:
        """What the log says besides its cards."""
        return await self._notes.read(self._context.service.reader, self.live_table)

    def codes(self, slots: Iterable[int]) -> list[str]:
        """The original's codes of cards."""
        return [shown(self.round.face(slot) or "") for slot in slots]

    def cards(self, *stacks: str) -> list[int]:
        """The slots of stacks, each bottom first."""
        return [slot for stack in stacks for slot in self.round.cards(stack)]

    def piles(self) -> list[str]:
        """The names of the piles that a card has been in."""
        stacks = [stack for stack in self.round.stacks if stack.startswith(_PILE) and stack != OPEN]
        return [stack.removeprefix(_PILE) for stack in stacks]

    def drawn(self) -> list[int]:
        """The drawn cards, in the order of a new deck."""
        order = {code: -place for place, code in enumerate(self.round.opened)}
        return sorted(self.cards(HAND, OPEN), key=lambda slot: order[self.round.face(slot) or ""])

    def find(self, codes: Iterable[str], among: Sequence[int], refusal: str) -> list[int]:
        """A card with each of the codes.

        Raises NotFound where there is none: with this refusal, in which `{codes}` stands for those.
        """
        left: dict[str, list[int]] = {}
        for slot, code in zip(among, self.codes(among), strict=True):
            left.setdefault(code, []).append(slot)
        found = [(code, left[code].pop(0) if left.get(code) else None) for code in codes]
        if missing := [code for code, slot in found if slot is None]:
            raise NotFound(refusal.format(codes=",".join(missing)))
        return [slot for _, slot in found if slot is not None]

    def taking(self, source: str, slots: Sequence[int]) -> Choice:
        """Draw these cards from a stack.

        They are named: a count would draw others where another node was quicker.
        """
        reached = tuple(slot for slot in slots if self.round.drawable[slot])
        others = tuple(slot for slot in slots if not self.round.drawable[slot])
        chosen: list[commands.Command] = []
        if reached:
            chosen.append(commands.Draw(API, len(reached), source, cards=reached))
        if others:
            chosen.append(commands.Move(API, "pile", source, OPEN, cards=others, face="up"))
        return self.codes(slots), chosen

    def moving(self, slots: Iterable[int], to: str) -> Choice:
        """Put cards on top of a pile, or below the deck.

        Each goes on top of the one before it, and in the deck below the one before it.
        """
        source = {slot: stack for stack, held in self.round.stacks.items() for slot in held}
        moved: list[commands.Command] = []
        for stack, some in groupby(slots, key=lambda slot: source[slot]):
            action = "return" if (stack, to) == (HAND, DECK) else "pile"
            where: Literal["top", "bottom"] = "bottom" if to == DECK else "top"
            moved.append(commands.Move(API, action, stack, to, cards=tuple(some), where=where))
        return [], moved

    def looking_at(self, *names: str) -> Choice:
        """See the cards of these piles that a shuffle has hidden; the log says so."""
        hidden = [
            stack
            for stack in map(pile, names)
            if not all(self.round.sees(SEAT, slot) for slot in self.round.cards(stack))
        ]
        return [], [commands.Show(API, stack, to=SEAT, whole=True) for stack in hidden]

    async def change(self, choose: Callable[[], Choice]) -> list[str]:
        """Execute what `choose` chooses from the cards; returns the codes.

        It chooses again where another client changed the deck before the first command.
        """
        for attempt in range(1, ATTEMPTS + 1):
            version = self.table.version
            codes, chosen = choose()
            try:
                await self.execute(chosen)
            except Refused as refusal:
                changed = self.table.version > version
                if attempt == ATTEMPTS or len(chosen) > 1 or refusal.temporary or not changed:
                    raise
            else:
                return codes
        raise AssertionError("unreachable")

    async def draw_at_random(self, count: int, source: str) -> list[str]:
        """Draw cards from anywhere in a stack; the original's codes, in their order."""
        if not count:
            return []
        command, budget = commands.DrawAtRandom(API, count, source), self._budget
        with budget.paying(costs.bytes_written(command, self.table), self._context.clock()):
            budget.charge(costs.weight(command, self.table))
            done = await self._context.service.draw_at_random(self.live_table, command)
        budget.cpu.step(costs.event_seconds(done.events))
        return [shown(getattr(event, "card", None) or "") for event in done.events]

    async def begin_again(self, codes: tuple[str, ...]) -> None:
        """Close the round, which reveals its secret, and open one with these cards."""
        beginning = _beginning(codes, shuffle=True)
        # Else the round would be closed, and no other be opened.
        self._context.service.maintenance.require(self.live_table.table_id, beginning[0])
        closing = [] if self.table.round is None else [commands.CloseRound(API)]
        await self.execute([*closing, *beginning])

    async def opened_with(self) -> tuple[str, ...]:
        """The cards that the newest round was opened with, bottom first."""
        if self.table.round is not None:
            return self.table.round.opened
        if not self.table.round_versions:  # the process ended before it opened the first one
            raise Unavailable("This deck was not completed: open a new one.")
        before = self.table.round_versions[-1] - 1
        (entry,) = await self._context.service.entries(self.live_table, before, 1)
        return tuple(json.loads(entry.leaf)["public"]["deck"])

    async def execute(self, chosen: Sequence[commands.Command]) -> None:
        """Execute commands one after the other, which share a commit; raises the first refusal."""
        if not chosen:
            return
        table, budget = self.table, self._budget
        # A round that is opened is shuffled, too: its deck is not at the table yet.
        decks = [command.deck for command in chosen if isinstance(command, commands.OpenRound)]
        opened = sum(map(len, decks))
        written = sum(costs.bytes_written(command, table) for command in chosen)
        with (
            budget.paying(written + costs.BYTES_PER_SWAP * opened, self._context.clock()),
            self.live_table.held(),
        ):
            budget.charge(sum(costs.weight(command, table) for command in chosen) + opened / 52)
            # All in this step of the loop, so that none of another client comes between them.
            answers: list[asyncio.Future[CommandResult]] = []
            for command in chosen:
                answers.append(asyncio.get_running_loop().create_future())
                self._context.service.submit(self.live_table, command, resolve(answers[-1]))
            for done in await asyncio.gather(*answers):
                budget.cpu.step(costs.event_seconds(done.events))


def _beginning(codes: tuple[str, ...], *, shuffle: bool) -> list[commands.Command]:
    """The commands that open a round, and shuffle its deck or say that it is not shuffled."""
    opening = commands.OpenRound(API, codes, "house", WAIT_MS_DEFAULT, WAIT_MS_DEFAULT)
    if shuffle:
        return [opening, commands.StartShuffle(API)]
    note = (
        "This deck was not shuffled: its cards are in the order in which the round was opened. The "
        "shuffle before this note has no swap; it only seals the cards."
    )
    sealing = commands.StartShuffle(API, steps=0)
    return [opening, sealing, commands.AddNote(API, UNSHUFFLED, note)]
