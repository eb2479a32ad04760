"""What the log says of a deck besides its cards: that it is not shuffled, and its empty piles.

Both are notes of the API's seat, so that everyone who checks the table reads them too. The state of
a table has no notes; what they say is kept here for the tables that are in memory, and read from
the events of the round after a restart.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from dealer.game.commands import AddNote
from dealer.game.shuffle import full
from dealer.game.stacks import DECK
from dealer.gateway.decks.deck import API
from dealer.service import CommitNotice, EventRecord, LiveTable, Service

UNSHUFFLED = "deck.unshuffled"
PILE = "deck.pile"

UNSHUFFLED_NOTE = AddNote(
    API,
    UNSHUFFLED,
    "This deck was not shuffled: its cards are in the order in which the round was opened. The "
    "shuffle before this note has no swap; it only seals the cards.",
)

TABLES = 10_000
"""Decks whose notes are kept in memory, at most."""

_TYPES = ("NoteAdded", "ShuffleStarted", "RoundOpened")


class DeckNotes:
    """What the notes of one round say; `version` is the last event that was read."""

    def __init__(self, live_table: LiveTable, version: int) -> None:
        self.live_table = live_table
        self.version = version
        self.shuffled = False
        self.piles: list[str] = []

    def read(self, entries: list[EventRecord]) -> None:
        """Take the events that follow."""
        for entry in entries:
            if entry.version <= self.version:
                continue
            self.version = entry.version
            if entry.type in _TYPES:
                leaf = json.loads(entry.leaf)
                self._take(entry.type, leaf["public"])

    def _take(self, kind: str, public: dict[str, Any]) -> None:
        if kind == "RoundOpened":
            self.shuffled, self.piles = False, []
        elif kind == "ShuffleStarted" and public["stack"] == DECK:
            # A random draw is a shuffle of a few steps.
            self.shuffled |= public["steps"] == full(public["n"])
        elif kind == "NoteAdded" and public["kind"] == UNSHUFFLED:
            self.shuffled = False
        elif kind == "NoteAdded" and public["kind"] == PILE and public["text"] not in self.piles:
            self.piles.append(public["text"])


class DeckNotesCache:
    """The notes of the decks that are used; at most `TABLES` decks."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._kept: OrderedDict[str, DeckNotes] = OrderedDict()
        self._listens = False  # from the first deck on

    async def of(self, live_table: LiveTable) -> DeckNotes:
        """The notes of a deck's newest round, up to what is committed."""
        notes = self._kept.get(live_table.table_id)
        if notes is None or notes.live_table is not live_table:
            since = live_table.table.round_versions
            notes = DeckNotes(live_table, since[-1] - 1 if since else 0)
            while notes.version < live_table.committed:
                notes.read(await self._service.entries(live_table, notes.version))
            if not self._listens:
                self._service.on_notice(self._on_notice)
                self._listens = True
            # No commit was missed: nothing was awaited since the comparison.
            self._kept[live_table.table_id] = notes
            if len(self._kept) > TABLES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(live_table.table_id)
        return notes

    def _on_notice(self, live_table: LiveTable, notice: CommitNotice) -> None:
        notes = self._kept.get(live_table.table_id)
        if notes is None or notes.live_table is not live_table:
            return
        if notice.reset:
            del self._kept[live_table.table_id]
        else:
            notes.read(notice.entries)
