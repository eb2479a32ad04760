"""Messages that make little sense, and a judge who counts; `DEALER_FUZZ=1000000` for a million."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.whole.babble import METHODS
from tests.whole.fuzz import Figures, babble, count_answers

MESSAGES = int(os.environ.get("DEALER_FUZZ", "15000"))


async def test_whatever_is_said_is_answered_once_and_nothing_leaks(tmp_path: Path) -> None:
    figures = await babble(tmp_path, messages=MESSAGES, seed=MESSAGES)
    assert figures.faults == []
    assert figures.messages == MESSAGES
    assert min(figures.granted, figures.refused, figures.unreadable, figures.over_sockets) > 0


def test_every_method_is_babbled() -> None:
    assert {"deck.draw", "table.join", "session.hello", "pile.move"} < set(METHODS)


def frame(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "ping"} | members).encode()


ASKED = [frame(id="a"), frame(id=2), frame(), b'{"id"', frame(id=1.5)]


@pytest.mark.parametrize(
    ("answers", "good"),
    [
        ([frame(id="a"), frame(id=2), frame(id=None), frame(id=None)], True),
        ([frame(id=None)] * 4, True),  # bad in more than their ids
        ([frame(id="a"), frame(id=2), frame(id=None)], False),
        ([frame(id="a"), frame(id=None), frame(id=None)], False),
        ([frame(id="a"), frame(id="a"), frame(id=2), frame(id=None), frame(id=None)], False),
        ([frame(id="a"), frame(id=2)] + [frame(id=None)] * 4, False),
    ],
)
def test_an_answer_too_many_or_too_few_is_counted(answers: list[bytes], good: bool) -> None:
    figures = Figures()
    count_answers(ASKED, answers, figures)
    assert (figures.faults == []) is good
