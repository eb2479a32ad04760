"""Grammar-based fuzzing of the JSON-RPC session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chaos.fuzz import Figures, count_answers, fuzz
from tests.chaos.fuzz_grammar import METHODS
from tests.harness.depth import amount

MESSAGES = amount(3000, many=50000)


async def test_every_message_is_answered_once_and_nothing_leaks(tmp_path: Path) -> None:
    figures = await fuzz(tmp_path, messages=MESSAGES, seed=MESSAGES)
    assert figures.faults == []
    assert figures.messages == MESSAGES
    assert min(figures.granted, figures.refused, figures.unreadable, figures.over_sockets) > 0
    assert figures.owed > MESSAGES / 2, "most connections ended before their messages were read"


def test_the_grammar_has_every_method() -> None:
    assert {"deck.draw", "table.join", "session.hello", "pile.move"} < set(METHODS)


def frame(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "ping"} | members).encode()


FRAMES = [frame(id="a"), frame(id=2), frame(), b'{"id"', frame(id=1.5)]


@pytest.mark.parametrize(
    ("answers", "good"),
    [
        ([frame(id="a"), frame(id=2), frame(id=None), frame(id=None)], True),
        ([frame(id=None)] * 4, True),  # more faults than a bad id
        ([frame(id="a"), frame(id=2), frame(id=None)], False),
        ([frame(id="a"), frame(id=None), frame(id=None)], False),
        ([frame(id="a"), frame(id="a"), frame(id=2), frame(id=None), frame(id=None)], False),
        ([frame(id="a"), frame(id=2)] + [frame(id=None)] * 4, False),
    ],
)
def test_missing_and_additional_answers_are_detected(answers: list[bytes], good: bool) -> None:
    figures = Figures()
    count_answers(FRAMES, answers, figures)
    assert (figures.faults == []) is good
