"""Markers: the newest notes of the kinds that have a meaning in every game.

A turn marker, its clock, a dealer button, scores and counters are notes, which anybody whom the
rules let annotate may add; they move no card and the server does not check them. PROTOCOL.md has
their texts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dealer.game.events import Event, NoteAdded

_SEAT = re.compile(r"[1-9][0-9]{0,9}")
_CLOCK = re.compile(r"0|[1-9][0-9]{0,4}")
_NUMBER = r"0|-?[1-9][0-9]{0,14}"
_SCORE = re.compile(rf"([1-9][0-9]{{0,9}}):({_NUMBER})")
_COUNTER = re.compile(rf"([^:]{{1,64}}):({_NUMBER})")
_PHRASE = re.compile(r"[a-z0-9._-]{1,64}")
REACTION_MAX = 16
"""Characters (Unicode code points) of a reaction."""


class Said(NamedTuple):
    """A phrase's key or a reaction, and the seat that added it; 0 for the host or a service."""

    seat: int
    text: str


class Markers:
    """The newest notes of each kind; notes with other texts than PROTOCOL.md gives are ignored.

    `turn` and `dealer_button` are seats, `scores` are by seat, `counters` by name.
    """

    def __init__(self) -> None:
        self.turn: int | None = None
        self.clock = 0
        """Seconds of a turn, from the last `turn` on; 0 for no clock."""
        self.dealer_button: int | None = None
        self.scores: dict[int, int] = {}
        self.counters: dict[str, int] = {}
        self.phrase: Said | None = None
        self.reaction: Said | None = None

    def apply(self, event: Event) -> None:
        """Take over what an event says; only a NoteAdded says something."""
        if not isinstance(event, NoteAdded):
            return
        seat, text = event.seat, event.text
        match event.kind:
            case "turn" if _SEAT.fullmatch(text):
                self.turn = int(text)
            case "clock" if _CLOCK.fullmatch(text):
                self.clock = int(text)
            case "dealer_button" if _SEAT.fullmatch(text):
                self.dealer_button = int(text)
            case "score" if found := _SCORE.fullmatch(text):
                self.scores[int(found[1])] = int(found[2])
            case "counter" if found := _COUNTER.fullmatch(text):
                self.counters[found[1]] = int(found[2])
            case "phrase" if _PHRASE.fullmatch(text):
                self.phrase = Said(seat, text)
            case "reaction" if 1 <= len(text) <= REACTION_MAX:
                self.reaction = Said(seat, text)
