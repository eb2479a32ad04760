"""`dealer history` from the log, a file and a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Ask, Played

pytestmark = pytest.mark.slow


@pytest.fixture
def file(ask: Ask, played: Played, tmp_path: Path) -> Path:
    file = tmp_path / "game.jsonl"
    ask("export", played.closed, "-o", file, "--database", played.url)
    return file


def test_the_text_is_the_same_from_the_log_and_from_a_file(
    ask: Ask, played: Played, file: Path
) -> None:
    answer = ask("history", played.closed, "--database", played.url)
    assert answer.code == 0
    assert answer.lines[0].startswith(f"Table {played.closed} of the house house.example")
    for words in ("Seats: 1 Ada, 2 Bob, 3 Cleo, 4 Dan", "Round 2, ", "  the table closes"):
        assert words in answer.out
    assert "??" not in answer.out
    assert ask("history", file) == answer
    one = ask("history", file, "--round", 1)
    assert "Round 1, " in one.out
    assert "Round 2, " not in one.out


def test_a_history_that_cannot_be_made_is_reported(ask: Ask, played: Played, file: Path) -> None:
    answer = ask("history", file, "--round", 3)
    assert (answer.code, answer.out) == (1, "")
    assert "2 rounds and no round 3" in answer.err
    file.write_bytes(file.read_bytes().replace(b'"seat":2', b'"seat":3'))
    forged = ask("history", file)
    assert (forged.code, forged.out) == (1, "")
    assert forged.err.startswith("dealer: heads, line ")


def test_an_open_round_keeps_its_cards(ask: Ask, played: Played) -> None:
    answer = ask("history", played.open, "--database", played.url)
    assert answer.code == 0
    assert "draws ?? from the deck" in answer.out
    assert "Round 1 is not closed" in answer.lines[-1]
