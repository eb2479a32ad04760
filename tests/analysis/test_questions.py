"""The questions of QUESTIONS.md have the printed answers on both databases."""

from __future__ import annotations

import re

import dealer
from tests.analysis.conftest import Recorded
from tests.analysis.questions import DOCUMENT, as_table, read

QUESTIONS = read(DOCUMENT.read_text(encoding="utf-8"))


def test_the_questions_are_numbered_and_listed() -> None:
    assert [int(one.title.partition(".")[0]) for one in QUESTIONS] == list(range(1, 22))
    assert all(one.sql and len(one.answer) > 2 for one in QUESTIONS)
    listed = re.findall(r"^(\d+\. )\[(.+)\]\(#", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert [number + title for number, title in listed] == [one.title for one in QUESTIONS]


def test_the_answers_are_those_of_the_page(recorded: Recorded) -> None:
    with dealer.open_log(recorded.url) as log:
        for one in QUESTIONS:
            assert as_table(log.query(one.sql)) == one.answer, one.title
