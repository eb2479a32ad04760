"""Who notices a changed database: the table in CHANGED_COLUMNS.md, and what the program does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.any_column import changes, documented, effect_of, make, try_change

TRIED = 12
"""Changes that are tried, others each time; the script tries all of them."""


def test_every_declared_column_is_in_the_document() -> None:
    assert set(documented()) == {change.what for change in changes()}


def test_the_document_says_what_each_change_does() -> None:
    for line, noticed in documented().items():
        assert noticed.effect == effect_of(line), line


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_changes_are_noticed_as_the_document_says(tmp_path: Path) -> None:
    made = make(tmp_path)
    said = documented()
    for change in random.sample(list(changes()), TRIED):
        assert try_change(change, made)[:4] == said[change.what][:4], change.what
