"""Commands on a log that was changed without the house key: one sentence, and exit code 1."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import verify

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

OPEN = "stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{open}'))"
CLOSED = "stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{closed}'))"
NEWEST = f"{OPEN} AND version = (SELECT max(version) FROM event WHERE {OPEN})"
MOVE = "UPDATE event SET stream = (SELECT id FROM stream WHERE hex(table_id) = upper('{closed}'))"

DAMAGED = {
    "the newest row missing": (f"DELETE FROM event WHERE {NEWEST}", "its newest event is"),
    "a row in the middle missing": (
        f"DELETE FROM event WHERE {OPEN} AND version = 2",
        "version 2 is missing",
    ),
    "a version too high": (
        "UPDATE stream SET version = version + 1 WHERE hex(table_id) = upper('{open}')",
        "its newest event is",
    ),
    "a version too low": (
        "UPDATE stream SET version = version - 1 WHERE hex(table_id) = upper('{open}')",
        "its newest event is",
    ),
    "an event moved to another table": (
        f"{MOVE}, version = 100000 WHERE {NEWEST}",
        "its newest event is",
    ),
    "a hidden part of an open round": (
        f"UPDATE event SET hidden = zeroblob(44) WHERE {OPEN} AND type = 'D'",
        "the hidden part of version",
    ),
    "the secret of an open round": (
        f"UPDATE event SET hidden = zeroblob(92) WHERE {OPEN} AND type = 'RoundOpened'",
        "the secret of round 1 was altered",
    ),
    "a head": (
        f"DELETE FROM checkpoint WHERE {OPEN} AND size = (SELECT max(size) FROM checkpoint"
        f" WHERE {OPEN})",
        "(DeckSealed) is missing",
    ),
}
"""An SQL statement for each damage of the open table, and a part of the sentence."""


def damage(played: Played, sql: str) -> None:
    with closing(sqlite3.connect(played.file)) as database, database:
        for trigger in ("event_refuses_update", "event_refuses_delete"):
            database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        statement = sql.format(open=played.open, closed=played.closed)
        assert database.execute(statement).rowcount


@pytest.mark.parametrize("what", DAMAGED)
def test_audit_and_rebuild_say_what_is_damaged(ask: Ask, played: Played, what: str) -> None:
    statement, sentence = DAMAGED[what]
    damage(played, statement)
    audit = ask("audit", played.open, "--database", played.url)
    assert (audit.code, audit.err.count(sentence)) == (1, 1), audit
    rebuild = ask("rebuild", "--database", played.url)
    tables = 2 if what == "an event moved to another table" else 1
    assert (rebuild.code, rebuild.out.count(sentence)) == (1, tables), rebuild
    assert ask("audit", played.closed, "--database", played.url).code == tables - 1
    again = ask("rebuild", "--json", "--database", played.url)
    assert sentence in "".join(json.loads(again.out)["damaged"])
    assert again.code == 1


def test_without_the_key_the_hidden_parts_of_open_rounds_are_said_to_be_unchecked(
    ask: Ask, played: Played, tmp_path: Path
) -> None:
    key = f"{played.file}.key"
    Path(key).rename(tmp_path / "elsewhere")
    damage(played, DAMAGED["the secret of an open round"][0])
    for command in (("rebuild",), ("audit", played.open)):
        answer = ask(*command, "--database", played.url)
        assert answer.code == 0
        assert "open round" in answer.err
        answer = ask(*command, "--database", played.url, "--house-key", tmp_path / "elsewhere")
        assert answer.code == 1


HEADS = {
    "newest": f"(SELECT max(size) FROM checkpoint WHERE {CLOSED})",
    "older": f"(SELECT min(version) FROM event WHERE {CLOSED} AND type = 'L')",
}


@pytest.mark.parametrize("which", HEADS)
def test_a_table_without_a_head_is_not_signed_again_and_not_archived(
    ask: Ask, played: Played, tmp_path: Path, which: str
) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    damage(played, f"DELETE FROM checkpoint WHERE {CLOSED} AND size = {HEADS[which]}")
    archive = (
        "tables",
        "archive",
        played.closed,
        "--to",
        folder,
        "--database",
        played.url,
        "--why",
        "old",
    )
    assert ask(*archive).code == 1
    assert list(folder.iterdir()) == []
    # Without its newest head the export would sign another one.
    export = ask("export", played.closed, "--database", played.url)
    assert export.code == (1 if which == "newest" else 0)
    assert export.code or not verify(read(export.out.encode())).ok


def test_no_key_is_retired_while_a_table_of_the_log_is_damaged(ask: Ask, played: Played) -> None:
    """Which key a table needs is in its first event."""
    assert ask("rotate-key", "--why", "a test", "--database", played.url).code == 0
    keys = sorted(played.folder.glob("dealer.db.key*"))
    damage(
        played,
        'UPDATE event SET public = replace(public, \'"key":"\', \'"key":"0\') WHERE version = 1',
    )
    answer = ask("rotate-key", "--retire", "--database", played.url)
    assert answer.code == 1
    assert "No key was retired" in answer.err
    assert sorted(played.folder.glob("dealer.db.key*")) == keys


@pytest.mark.parametrize("command", ["serve", "rebuild"])
def test_an_altered_row_of_the_house_is_named(ask: Ask, played: Played, command: str) -> None:
    damage(played, "UPDATE house SET value = x'00' WHERE name = 'key'")
    answer = ask(command, "--database", played.url, *(["--port", 0] if command == "serve" else []))
    if command == "rebuild":
        assert answer.code == 0  # no key is needed for it
        return
    assert answer.code == 1
    assert "The row `key` of the SQL table `house` was altered" in answer.err
    assert "Traceback" not in answer.err
