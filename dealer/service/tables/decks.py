"""Ids of the decks of the simple REST interface, the tables that they open, and their notes.

A deck's id is its only credential. The table's id is an HMAC of it under the house key, and the
log has only a keyed digest, so neither a table's id nor the database reveals the id of its deck.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from secrets import choice
from string import ascii_lowercase, digits

from dealer.eventlog.rows import EVERYONE
from dealer.game.shuffle import full
from dealer.game.stacks import DECK
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import ANONYMOUS_SCOPE, IdempotencyKey
from dealer.service.tables.live_table import LiveTable

LENGTH = 12
"""Characters of a deck's id, as in the original: 62 bits."""

RULE = "x_decks"
"""The rule that marks the table of a deck; its value is the number of decks that it consists of."""

UNSHUFFLED, EMPTY_PILE = "deck.unshuffled", "deck.pile"
"""Kinds of the notes by which the log says that a deck is not shuffled, and names an empty pile."""

_SCOPE = "the table of a deck of the simple REST interface, whose id is: "
"""Longer than a `cmd` may be, so that no request of a client has the key of such a command."""


def new_deck_id() -> str:
    """An id that cannot be guessed."""
    return "".join(choice(ascii_lowercase + digits) for _ in range(LENGTH))


def deck_key(deck: str) -> IdempotencyKey:
    """The key of the command that opens the table of this deck; no client's request has it."""
    return IdempotencyKey(ANONYMOUS_SCOPE, _SCOPE + deck, b"deck")


def deck_rules(decks: int) -> dict[str, object]:
    """The rules of its table: no player can join; a client that has its address may verify it."""
    rules = {"preset": "free", "seats": 1, "join": "invite", "listed": False, "entropy": "house"}
    return {**rules, "name": "deck", RULE: decks}


@dataclass(slots=True)
class DeckNotes:
    """What the log says of a deck's newest round besides its cards, up to a version.

    `opened` are the codes that it was opened with, bottom first. The state of a table has no notes,
    and of a closed round no cards: they are read from its events.
    """

    version: int = 0
    shuffled: bool = False
    piles: list[str] = field(default_factory=list)
    opened: tuple[str, ...] = ()

    async def read(self, reader: EventReader, live_table: LiveTable) -> DeckNotes:
        """Take what was committed since."""
        before = (live_table.table.round_versions or [1])[-1] - 1
        if not before <= self.version <= live_table.committed:
            self.version = min(before, live_table.committed)
        while self.version < live_table.committed:
            for entry in await reader.entries(live_table, self.version):
                if entry.version == self.version + 1:  # else another request has taken it
                    self.version = entry.version
                    if entry.type in ("NoteAdded", "ShuffleStarted", "RoundOpened"):
                        public = json.loads(entry.leaf)["public"]
                        if entry.seat == EVERYONE:
                            public |= json.loads(entry.private)["part"]
                        self._take(entry.type, public)
        return self

    def _take(self, event: str, public: dict[str, object]) -> None:
        match event, public:
            case "RoundOpened", {"deck": list(codes)}:
                self.shuffled, self.piles, self.opened = False, [], tuple(codes)
            case "ShuffleStarted", {"stack": stack, "steps": steps, "n": int(n)}:
                # A random draw is a shuffle of a few steps.
                self.shuffled |= stack == DECK and steps == full(n)
            case "NoteAdded", {"kind": kind, "text": str(name)}:
                self.shuffled &= kind != UNSHUFFLED
                self.piles += [name] if kind == EMPTY_PILE else []
