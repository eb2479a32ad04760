"""`dealer migrate` and `dealer rebuild`."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dealer.eventlog.schema import revisions
from tests.harness.postgres import Postgres
from tests.harness.programs import output_of

from .conftest import Ask, Played

pytestmark = pytest.mark.slow


def test_migrate_creates_a_schema_once(ask: Ask, tmp_path: Path) -> None:
    url, newest = f"sqlite:///{tmp_path}/new.db", revisions()[-1]
    assert ask("migrate", "--database", url).out == f"The schema was empty and is now {newest}.\n"
    assert "nothing was changed" in ask("migrate", "--database", url).out
    result = json.loads(ask("migrate", "--json", "--database", url).out)
    assert result == {"from": newest, "to": newest}


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_of_two_that_migrate_at_once_one_says_so(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    if database == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.url(postgres.empty())
    command = (sys.executable, "-m", "dealer", "migrate", "--database", url)
    with ThreadPoolExecutor() as programs:
        said = [*programs.map(lambda _: output_of(*command), range(3))]
    newest = revisions()[-1]
    assert said.count(f"The schema was empty and is now {newest}.\n") == 1
    assert said.count(f"The schema is {newest}, the newest; nothing was changed.\n") == 2


def test_migrate_explains_its_errors(ask: Ask, tmp_path: Path) -> None:
    assert ask("migrate", "--database", "mysql://localhost/x").code == 2
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    answer = ask("migrate", "--database", f"sqlite:///{file}")
    assert answer.code == 1
    assert "another program" in answer.err


def test_correct_read_models_are_rebuilt_without_differences(ask: Ask, played: Played) -> None:
    answer = ask("rebuild", "--database", played.url)
    assert answer.code == 0
    assert "0 rows differed" in answer.out
    assert re.search(r"CPU: [\d.]+ s for the projection, [\d.]+ s for the check", answer.out)
    result = json.loads(ask("rebuild", "--json", "--database", played.url).out)
    with closing(sqlite3.connect(played.file)) as other:
        events = other.execute("SELECT count(*) FROM event").fetchone()[0]
    nothing: dict[str, list[str]] = {"differences": [], "stopped": [], "damaged": []}
    assert result.pop("cpu_seconds").keys() == {"projection", "check"}
    assert result == {"events": events, "different": 0, **nothing}


def test_an_altered_row_is_reported_and_repaired(ask: Ask, played: Played) -> None:
    # A server that stops leaves its newest events unprojected.
    assert ask("rebuild", "--database", played.url).code == 0
    with closing(sqlite3.connect(played.file)) as other, other:
        changed = other.execute("UPDATE swaps SET card_i = 'As' WHERE round = 1 AND step = 3")
        assert changed.rowcount
    answer = ask("rebuild", "--database", played.url)
    assert answer.code == 1
    assert "swaps: stream=" in answer.out
    assert "step=3" in answer.out
    assert "card_i='As'" in answer.out
    assert "was present, but does not follow" in answer.out
    assert "was missing" in answer.out
    assert ask("rebuild", "--database", played.url).code == 0


def test_a_rebuild_changes_no_event(ask: Ask, played: Played) -> None:
    before = ask("audit", "--events", played.closed, "--json", "--database", played.url)
    assert ask("rebuild", "--database", played.url).code == 0
    assert ask("audit", "--events", played.closed, "--json", "--database", played.url) == before
