"""Newer schemas, and read models made again and compared."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from dealer.eventlog.migrate import revisions

from .conftest import Ask, Played


def test_migrate_makes_what_is_not_there_and_then_has_nothing_to_do(
    ask: Ask, tmp_path: Path
) -> None:
    url, newest = f"sqlite:///{tmp_path}/new.db", revisions()[-1]
    assert ask("migrate", "--database", url).out == f"The schema was empty and is now {newest}.\n"
    assert "nothing was to be done" in ask("migrate", "--database", url).out
    told = json.loads(ask("migrate", "--json", "--database", url).out)
    assert told == {"from": newest, "to": newest}


def test_migrate_says_why_it_cannot(ask: Ask, tmp_path: Path) -> None:
    assert ask("migrate", "--database", "mysql://localhost/x").code == 2
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    answer = ask("migrate", "--database", f"sqlite:///{file}")
    assert answer.code == 1
    assert "another program" in answer.err


def test_read_models_that_follow_from_the_log_are_made_again_and_agree(
    ask: Ask, played: Played
) -> None:
    answer = ask("rebuild", "--database", played.url)
    assert answer.code == 0
    assert "0 rows differed" in answer.out
    told = json.loads(ask("rebuild", "--json", "--database", played.url).out)
    with closing(sqlite3.connect(played.file)) as other:
        events = other.execute("SELECT count(*) FROM event").fetchone()[0]
    assert told == {"events": events, "different": 0, "differences": [], "stopped": []}


def test_a_row_that_was_meddled_with_is_named_and_mended(ask: Ask, played: Played) -> None:
    # A house that closes leaves the newest events to the next one's read models.
    assert ask("rebuild", "--database", played.url).code == 0
    with closing(sqlite3.connect(played.file)) as other, other:
        changed = other.execute("UPDATE swaps SET card_i = 'As' WHERE round = 1 AND step = 3")
        assert changed.rowcount
    answer = ask("rebuild", "--database", played.url)
    assert answer.code == 1
    assert "swaps: " in answer.out
    assert "stood there and does not follow" in answer.out
    assert "follows and was not there" in answer.out
    assert ask("rebuild", "--database", played.url).code == 0


def test_a_rebuild_changes_no_event(ask: Ask, played: Played) -> None:
    before = ask("log", played.closed, "--json", "--database", played.url)
    assert ask("rebuild", "--database", played.url).code == 0
    assert ask("log", played.closed, "--json", "--database", played.url) == before
