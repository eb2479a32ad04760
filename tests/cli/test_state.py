"""`dealer state`: a recorded table at a version, as text and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.analysis.conftest import Recorded, on_sqlite
from tests.cli.conftest import Ask

__all__ = ["on_sqlite"]

FRIDAY = "01a198"
SATURDAY = "01a19d"


def test_a_seat_sees_its_cards(ask: Ask, on_sqlite: Recorded) -> None:
    answer = ask("state", FRIDAY, "--at", 85, "--seat", 2, "--database", on_sqlite.url)
    assert (answer.code, answer.err) == (0, "")
    assert (
        answer.out
        == """\
Table 01a198b28a00ebaf5ccd6f37291d34ba, version 85, 2026-11-01 20:00:55.700 UTC
As Bob (seat 2) saw it:
  seat 1: Ada
  seat 2: Bob
  seat 3: Dora
Round 1
  deck                    41
  hand of Ada (seat 1)     2  As ??
  hand of Bob (seat 2)     3  Th Kh Jh
  hand of Dora (seat 3)    3  ?? 8s ??
  pile board               1  3d
  pile discard             1
  pile table               1  8h
"""
    )


def test_everyone_and_the_house(ask: Ask, on_sqlite: Recorded) -> None:
    everyone = ask("state", FRIDAY, "--at", 83, "--database", on_sqlite.url).lines
    assert everyone[1] == "As everyone saw it:"
    assert "  hand of the free seat 3    2" in everyone
    house = ask("state", FRIDAY, "--at", 83, "--all", "--database", on_sqlite.url).lines
    assert [line for line in house if "free seat 3" in line] == [
        "  hand of the free seat 3    2  6h 8s"
    ]
    assert sum(line.count("??") for line in house) == 0
    # In the middle of a shuffle.
    shuffling = ask("state", FRIDAY, "--at", 30, "--database", on_sqlite.url).lines
    assert shuffling[-2] == "Round 1; shuffle 0 of deck runs"
    assert shuffling[-1].startswith("  deck   52  As 2s 3s 4s 5s")


def test_between_rounds_and_after_the_last(ask: Ask, on_sqlite: Recorded) -> None:
    url = on_sqlite.url
    ends = [
        ask("state", table, *at, "--database", url).lines[-1]
        for table, at in ((FRIDAY, ("--at", 4)), (FRIDAY, ("--at", 86)), (SATURDAY, ()))
    ]
    assert ends == [
        "No round is open; no round was opened.", "No round is open; 1 round was opened.",
        "The table is closed.",
    ]  # fmt: skip


def test_the_open_round_needs_the_key(ask: Ask, on_sqlite: Recorded, tmp_path: Path) -> None:
    arguments = ("state", FRIDAY, "--seat", 1, "--database")
    without = ask(*arguments, on_sqlite.url)
    assert "  hand of Ada (seat 1)     3" in without.lines
    assert "Round 3 is still open: without the house key (--house-key)" in without.err
    known = ask(*arguments, on_sqlite.url, "--house-key", on_sqlite.key)
    assert "  hand of Ada (seat 1)     3  4c 5h Jc" in known.lines
    assert known.err == ""
    # The key beside the database is found.
    for source, name in (
        (on_sqlite.url.removeprefix("sqlite:///"), "a.db"),
        (on_sqlite.key, "a.db.key"),
    ):
        shutil.copy(source, tmp_path / name)
    assert ask(*arguments, f"sqlite:///{tmp_path / 'a.db'}").lines == known.lines


def test_json(ask: Ask, on_sqlite: Recorded) -> None:
    answer = ask("state", FRIDAY, "--at", 85, "--seat", 1, "--json", "--database", on_sqlite.url)
    (line,) = answer.lines
    state = json.loads(line)
    assert (state["version"], state["viewer"], state["complete"]) == (85, 1, True)
    assert state["stacks"]["hand:1"] == ["As", "Qs"]
    assert len(state["stacks"]["deck"]) == 41
    assert state["round"]["stacks"]["hand:1"] == [51, 44]


def test_what_is_not_there(ask: Ask, on_sqlite: Recorded) -> None:
    for arguments, code, sentence in (
        ((FRIDAY, "--at", 400), 1, "no version 400: its versions are 1 to 213."),
        ((FRIDAY, "--at", 83, "--seat", 3), 1, "Seat 3 was free at version 83."),
        (("02",), 1, "This database has no table 02"),
        ((FRIDAY, "--seat", 1, "--all"), 2, "Give --seat or --all, not both."),
    ):
        answer = ask("state", *arguments, "--database", on_sqlite.url)
        assert answer.code == code
        assert sentence in answer.err


def test_a_bundle(ask: Ask, on_sqlite: Recorded, tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    arguments = (FRIDAY, "--database", on_sqlite.url, "--house-key", on_sqlite.key)
    assert ask("export", *arguments, "-o", file).code == 0
    shown = ("--at", 85, "--seat", 2, "--json")
    from_log = ask("state", FRIDAY, *shown, "--database", on_sqlite.url)
    from_file = ask("state", file, *shown)
    assert (from_file.code, from_file.out, from_file.err) == (0, from_log.out, "")
    open_round = ask("state", file, "--seat", 1)
    assert open_round.err == "Round 3 is still open: its hidden cards are not known.\n"
    file.write_bytes(file.read_bytes().replace(b'"Ada"', b'"Eve"'))
    forged = ask("state", file, *shown)
    assert (forged.code, forged.out) == (1, "")
    assert "secrets, line 2: The opening does not match" in forged.err
