"""The table page's log: what was passed, delivered and taken back, as each reader sees it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.harness.programs import output_of
from tests.web.js_verifier import node

pytestmark = pytest.mark.slow

_SCRIPT = Path(__file__).with_name("log_lines.mjs")


def moved(at: int, source: str, to: str, *slots: int, seen_by: int | None = None) -> list[Any]:
    """CardMoved events of one command, whose cards the seat `seen_by` knows as `c<slot>`."""
    return [(at, "CardMoved", {"slot": slot, "from": source, "to": to}, seen_by) for slot in slots]


def lines(seat: int | None, *events: Any) -> list[str]:
    """The log of the reader at `seat`."""
    shown = [
        {
            "at": at,
            "type": kind,
            "live": True,
            "public": public,
            "card": f"c{public['slot']}" if seen_by is not None and seen_by == seat else None,
        }
        for at, kind, public, seen_by in events
    ]
    asked = json.dumps({"seat": seat, "events": shown})
    written: list[str] = json.loads(output_of(node(), _SCRIPT, input=asked))
    return written


PASSED = moved(1, "hand:1", "pile:pass:2", 7, 6, seen_by=1)
BACK = moved(2, "pile:pass:2", "hand:1", 6, 7, seen_by=1)
NOTE = (2, "NoteAdded", {"seat": 1, "kind": "take_back", "text": "5-6"}, None)


@pytest.mark.parametrize(
    ("seat", "written"),
    [
        (1, ["You passed c7 and c6 to Bob.", "You took back c6 and c7."]),
        (2, ["Ada passed 2 cards to you.", "Ada took back 2 cards."]),
        (None, ["Ada passed 2 cards to Bob.", "Ada took back 2 cards."]),
    ],
)
def test_a_pass_and_its_take_back(seat: int | None, written: Sequence[str]) -> None:
    assert lines(seat, *PASSED, *BACK, NOTE) == written


def test_a_host_without_a_seat_takes_back() -> None:
    moves = moved(2, "pile:y", "pile:x", 3)
    note = (2, "NoteAdded", {"seat": 0, "kind": "take_back", "text": "5"}, None)
    assert lines(1, *moves, note) == ["The host took back 1 card."]
    assert lines(1, note) == ["The host took back the last move."]


def test_another_note_is_its_text() -> None:
    note = (3, "NoteAdded", {"seat": 2, "kind": "chat", "text": "hello"}, None)
    assert lines(1, *PASSED, note)[-1] == "Bob: hello"


@pytest.mark.parametrize(
    ("kind", "text", "own", "other"),
    [
        ("turn", "1", "It is your turn.", "It is Ada’s turn."),
        ("dealer_button", "1", "You deal.", "Ada deals."),
        ("clock", "30", "Each turn has 30 seconds now.", "Each turn has 30 seconds now."),
        ("clock", "1", "Each turn has 1 second now.", "Each turn has 1 second now."),
        ("clock", "0", "Turns have no clock now.", "Turns have no clock now."),
        ("score", "1:-12", "Your score: -12.", "Ada’s score: -12."),
        ("counter", "pot:120", "pot: 120.", "pot: 120."),
        ("phrase", "well-played", "Bob: Well played!", "Bob: Well played!"),
        ("phrase", "of-a-later-page", "Bob: of-a-later-page", "Bob: of-a-later-page"),
        ("phrase", "toString", "Bob: toString", "Bob: toString"),
        ("reaction", "👏", "Bob: 👏", "Bob: 👏"),
        ("turn", "first", "Bob: first", "Bob: first"),
    ],
)
def test_a_marker_says_what_it_means(kind: str, text: str, own: str, other: str) -> None:
    note = (1, "NoteAdded", {"seat": 2, "kind": kind, "text": text}, None)
    assert lines(1, note) == [own]
    assert lines(None, note) == [other]


def test_a_trick_is_won() -> None:
    trick = moved(1, "pile:table", "pile:won:1", 7, 6)
    assert lines(1, *trick) == ["You take 2 cards."]
    assert lines(2, *trick) == ["Ada takes 2 cards."]


def test_a_bot_sits_down() -> None:
    taken = (1, "SeatTaken", {"seat": 3, "name": "Robo", "bot": True}, None)
    assert lines(1, taken) == ["Robo (bot) sat down at seat 3."]
    assert lines(3, taken) == ["You sat down at seat 3."]


def test_piles_are_called_what_they_are_for() -> None:
    given = moved(2, "pile:pass:2", "hand:2", 7, 6, seen_by=2)
    assert lines(1, *PASSED, *given)[-1] == "Bob got 2 cards from Ada."
    assert lines(2, *PASSED, *given)[-1] == "You got c7 and c6 from Ada."
    for stack, to_reader, to_others in (
        ("pile:won:1", "your tricks", "Ada’s tricks"),
        ("pile:seat:1", "the cards before you", "the cards before Ada"),
        ("pile:discard", "the discard pile", "the discard pile"),
        ("pile:won", "the won pile", "the won pile"),
    ):
        taken = moved(1, stack, "pile:other", 7)
        sentence = "1 card went from {} to the other pile."
        assert lines(1, *taken) == [sentence.format(to_reader)]
        assert lines(2, *taken) == [sentence.format(to_others)]
