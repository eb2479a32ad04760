"""The tables of decks: opened and found by a deck's id, and changed for a client who pays.

A client pays for a deck what it would pay for the same commands at a table: messages, bytes that
are written, processor time, and of the tables that an address may open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from dealer.errors import NotEntitled, Refused, Unavailable, UnknownTable
from dealer.game.commands import (
    CloseRound,
    Command,
    DrawAtRandom,
    OpenRound,
    StartShuffle,
    TakeSeat,
)
from dealer.game.rules import WAIT_MS_DEFAULT
from dealer.game.stacks import DECK
from dealer.game.state import Table
from dealer.gateway.decks.codes import shown
from dealer.gateway.decks.deck import API, Deck, shuffling
from dealer.gateway.decks.deck_notes import UNSHUFFLED_NOTE, DeckNotesCache
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.rate_limit.costs import (
    BYTES_PER_SWAP,
    bytes_written,
    event_seconds,
    text_bytes_written,
    weight,
)
from dealer.gateway.rpc.context import GatewayContext
from dealer.service import CommandResult, LiveTable
from dealer.service.decks import RULE, deck_key, new_deck_id
from dealer.service.execution import resolve

T = TypeVar("T")

ATTEMPTS = 3
"""How often the cards of a command are chosen, where another client was quicker."""

RULES = {
    "preset": "free",
    "seats": 1,
    "join": "invite",
    "listed": False,
    "entropy": "house",
    "name": "deck",
}
"""The rules of a deck's table: no player can join; a client that has its address may verify it."""


class OpenDeck(NamedTuple):
    """A deck with its id and its table."""

    id: str
    live_table: LiveTable

    @property
    def deck(self) -> Deck:
        """The cards of the open round; Unavailable between two rounds."""
        round_ = self.live_table.table.round
        if round_ is None:
            raise Unavailable("This deck has no open round: shuffle it.")
        return Deck(round_)

    @property
    def decks(self) -> int:
        """How many decks it consists of."""
        return int(self.live_table.table.rules.given[RULE])


class DeckTables:
    """The decks of one server; `notes` are what the log says of them besides their cards."""

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        self._service = context.service
        self.notes = DeckNotesCache(context.service)

    async def find(self, deck: str) -> OpenDeck:
        """The deck with this id; raises UnknownTable, or what `Service.load` raises."""
        live_table = await self._service.table_opened_by(deck_key(deck))
        decks = live_table.table.rules.given.get(RULE)
        if type(decks) is not int or decks < 1:
            raise UnknownTable("There is no deck with this id.")
        return OpenDeck(deck, live_table)

    async def open(
        self, client: ClientConnection, codes: tuple[str, ...], decks: int, *, shuffle: bool
    ) -> OpenDeck:
        """Open a table with a round of these cards of so many decks, bottom first."""
        key = client.service_key
        if not self._context.players_open and (key is None or not key.may("open")):
            raise NotEntitled(
                "On this server only services open decks: send a service key as "
                "`Authorization: Bearer KEY`."
            )
        id = new_deck_id()
        rules = RULES | {RULE: decks}
        written = text_bytes_written(json.dumps(rules).encode())
        paid = decks if key is None else 0
        with client.budget.paying(written, self._context.clock(), decks=paid):
            live_table, _ = await self._service.open_table(rules, key=deck_key(id), address="")
        opened = OpenDeck(id, live_table)
        with live_table.held():
            seat = TakeSeat("REST interface", bot=True)
            await self.execute(client, opened, [seat, *_beginning(codes, shuffle=shuffle)])
        return opened

    async def begin_again(
        self, client: ClientConnection, opened: OpenDeck, codes: tuple[str, ...] | None
    ) -> None:
        """Close the round, which reveals its secret, and open one with these or the same cards."""
        table = opened.live_table.table
        if codes is None:
            codes = await self.opened_with(opened)
        beginning = _beginning(codes, shuffle=True)
        maintenance = self._service.maintenance
        if maintenance.targets:  # else the round would be closed, and no other be opened
            maintenance.require(opened.live_table.table_id, beginning[0])
        closing: list[Command] = [] if table.round is None else [CloseRound(API)]
        await self.execute(client, opened, [*closing, *beginning])

    async def opened_with(self, opened: OpenDeck) -> tuple[str, ...]:
        """The cards that the newest round was opened with, bottom first."""
        table = opened.live_table.table
        if table.round is not None:
            return table.round.opened
        if not table.round_versions:  # the process ended before it opened the first one
            raise Unavailable("This deck was not completed: open a new one.")
        before = table.round_versions[-1] - 1
        (entry,) = await self._service.entries(opened.live_table, before, 1)
        return tuple(json.loads(entry.leaf)["public"]["deck"])

    async def change(
        self,
        client: ClientConnection,
        opened: OpenDeck,
        choose: Callable[[Deck], tuple[T, list[Command]]],
    ) -> T:
        """Execute what `choose` chooses from the cards; returns the first element of its result.

        It chooses again where another client changed the deck before the first command.
        """
        for attempt in range(1, ATTEMPTS + 1):
            version = opened.live_table.table.version
            chosen, commands = choose(opened.deck)
            try:
                await self.execute(client, opened, commands)
            except Refused as refusal:
                changed = opened.live_table.table.version > version
                if attempt == ATTEMPTS or len(commands) > 1 or refusal.temporary or not changed:
                    raise
            else:
                return chosen
        raise AssertionError("unreachable")

    async def draw_at_random(
        self, client: ClientConnection, opened: OpenDeck, count: int, source: str
    ) -> list[str]:
        """Draw cards from anywhere in a stack; the original's codes, in their order."""
        if not count:
            return []
        command, table = DrawAtRandom(API, count, source), opened.live_table.table
        with client.budget.paying(bytes_written(command, table), self._context.clock()):
            client.budget.charge(weight(command, table))
            done = await self._service.draw_at_random(opened.live_table, command)
        client.budget.cpu.step(event_seconds(done.events))
        return [shown(getattr(event, "card", None) or "") for event in done.events]

    async def execute(
        self, client: ClientConnection, opened: OpenDeck, commands: Sequence[Command]
    ) -> None:
        """Execute commands one after the other, which share a commit; raises the first refusal."""
        live_table = opened.live_table
        if not commands:
            return
        written, weights = _cost(commands, live_table.table)
        with client.budget.paying(written, self._context.clock()), live_table.held():
            client.budget.charge(weights)
            for done in await asyncio.gather(*self._submit(live_table, commands)):
                client.budget.cpu.step(event_seconds(done.events))

    def _submit(
        self, live_table: LiveTable, commands: Sequence[Command]
    ) -> list[asyncio.Future[CommandResult]]:
        """Submit all commands in this step, so that none of another client comes between them."""
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[CommandResult]] = []
        for command in commands:
            answers.append(loop.create_future())
            self._service.submit(live_table, command, resolve(answers[-1]))
        return answers


def _beginning(codes: tuple[str, ...], *, shuffle: bool) -> list[Command]:
    """The commands that open a round, and shuffle its deck or say that it is not shuffled."""
    opening = OpenRound(API, codes, "house", WAIT_MS_DEFAULT, WAIT_MS_DEFAULT)
    if shuffle:
        return [opening, shuffling(DECK)]
    return [opening, shuffling(DECK, steps=0), UNSHUFFLED_NOTE]


def _cost(commands: Sequence[Command], table: Table) -> tuple[int, float]:
    """The bytes that commands write, and their additional cost in messages.

    A shuffle after a round is opened is of the new deck, which is not at the table yet.
    """
    written, weights, opened = 0, 0.0, 0
    for command in commands:
        written += bytes_written(command, table)
        weights += weight(command, table)
        if isinstance(command, OpenRound):
            opened = len(command.deck)
        elif isinstance(command, StartShuffle):
            written += BYTES_PER_SWAP * opened
            weights += opened / 52
    return written, weights
