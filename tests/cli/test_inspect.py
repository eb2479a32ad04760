"""`dealer tables`, `log`, `export` and `audit`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import HouseKeys
from dealer.game.shuffle import backward
from dealer.proof import bundle, canonical
from dealer.proof.checkpoint import Signer
from dealer.proof.tree import Tree, leaf_hash
from dealer.proof.verify import verify
from dealer.service.build import open_service

from .conftest import Ask, Played

pytestmark = pytest.mark.slow


def test_tables_are_listed_with_escaped_names(ask: Ask, played: Played) -> None:
    answer = ask("tables", "--database", played.url)
    assert answer.code == 0
    first, second = answer.lines
    assert first.startswith(played.open)
    assert "open" in first
    assert first.endswith("Still \N{REPLACEMENT CHARACTER}playing")
    assert second.startswith(played.closed)
    assert "closed" in second
    assert len(ask("tables", "--limit", 1, "--database", played.url).lines) == 1


def test_tables_as_json_agree_with_the_log(ask: Ask, played: Played) -> None:
    answer = ask("tables", "--json", "--database", played.url)
    open_, closed = map(json.loads, answer.lines)
    assert (open_["table"], open_["seated"], open_["rounds"]) == (played.open, 2, 1)
    assert not open_["closed"]
    assert (closed["table"], closed["name"], closed["seated"]) == (
        played.closed, "Demonstration", 4,
    )  # fmt: skip
    assert closed["rounds"] == 2
    assert closed["closed"]
    assert closed["version"] == len(
        ask("audit", "--events", played.closed, "--database", played.url).lines
    )


def test_tables_show_open_rounds_and_disabled_tables(ask: Ask, played: Played) -> None:
    def settings_of(table: str) -> tuple[str, dict[str, Any]]:
        listed = ask("tables", "--database", played.url).lines
        script = map(json.loads, ask("tables", "--json", "--database", played.url).lines)
        line = next(line for line in listed if line.startswith(table))
        return line, next(one for one in script if one["table"] == table)

    line, members = settings_of(played.open)
    assert "  1 round   version" in line
    assert "  round open  " in line
    assert (members["round_open"], members["disabled"]) == (True, False)
    line, members = settings_of(played.closed)
    assert "round open" not in line
    assert "2 rounds" in line
    assert not members["round_open"]
    ask("tables", "disable", played.open, "--why", "x", "--database", played.url)
    assert "  round open, disabled  " in settings_of(played.open)[0]
    assert not settings_of(played.closed)[1]["disabled"]
    ask("tables", "enable", played.open, "--database", played.url)
    ask("tables", "disable", "--house", "--why", "x", "--database", played.url)
    assert settings_of(played.open)[1]["disabled"]
    assert "The whole server is disabled" in ask("tables", "--database", played.url).out


def test_tables_include_events_that_are_not_projected(ask: Ask, played: Played) -> None:
    before = ask("tables", "--json", "--database", played.url)
    models = ("tables", "seats", "rounds", "shuffles", "swaps", "moves", "deck", "hands", "piles")
    with closing(sqlite3.connect(played.file)) as other, other:
        for model in models:
            other.execute(f"DELETE FROM {model}")
        other.execute("UPDATE stream SET projected = 0")
    assert ask("tables", "--json", "--database", played.url) == before


def test_a_log_has_one_line_for_each_version(ask: Ask, played: Played) -> None:
    answer = ask("audit", "--events", played.closed, "--database", played.url)
    assert answer.code == 0
    assert [int(line.split()[0]) for line in answer.lines] == list(range(1, len(answer.lines) + 1))
    assert answer.lines[0].split()[3] == "TableOpened"
    assert answer.lines[-1].split()[3] == "TableClosed"
    assert '"name":"Ada","seat":1}' in answer.lines[1]
    later = ask("audit", "--events", played.closed, "--after", 3, "--database", played.url)
    assert later.lines == answer.lines[3:]
    assert "\u202e" not in ask("audit", "--events", played.open, "--database", played.url).out


def test_a_log_as_json_has_the_leaves(ask: Ask, played: Played) -> None:
    leaves = ask("audit", "--events", played.closed, "--json", "--database", played.url).lines
    exported = ask("export", played.closed, "--database", played.url).lines
    assert exported[1 : len(leaves) + 1] == leaves


def test_no_line_reader_splits_json(ask: Ask, played: Played) -> None:
    text = "a\x0b\x1c\x85\u2028\u2029b"
    disabled = ask("tables", "disable", played.open, "--why", text, "--database", played.url)
    assert disabled.code == 0
    (line,) = ask("journal", "--json", "--limit", "1", "--database", played.url).lines
    assert json.loads(line)["why"] == text


async def _table_with(text: str, url: str) -> str:
    async with open_service(url) as service:
        live_table, _ = await service.open_table({"variant": text})
        return live_table.table_id


def test_a_leaf_can_be_hashed_from_its_escaped_line(ask: Ask, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    table = asyncio.run(_table_with("a\x85b\u2028\u2029c", url))
    (line,) = ask("audit", "--events", table, "--json", "--database", url).lines
    exported = ask("export", table, "--database", url).out.encode()
    leaf = bundle.read(exported)[1]
    assert len(exported.decode().splitlines()) > len(bundle.read(exported))
    assert line.encode() != leaf
    assert canonical.encode(json.loads(line)) == leaf


def test_a_table_is_found_by_a_unique_prefix(ask: Ask, played: Played) -> None:
    whole = ask("audit", "--events", played.closed, "--database", played.url)
    assert ask("audit", "--events", played.closed[:20].upper(), "--database", played.url) == whole
    unknown = ask("audit", "--events", "f" * 32, "--database", played.url)
    assert unknown.code == 1
    assert "has no table" in unknown.err
    for wrong in ("xyz", "0" * 33, ""):
        assert ask("audit", "--events", wrong, "--database", played.url).code == 2


def test_an_ambiguous_prefix_is_refused(ask: Ask, played: Played) -> None:
    with closing(sqlite3.connect(played.file)) as other, other:
        twin = bytes.fromhex(played.closed[:-2]) + b"\xff"
        other.execute("INSERT INTO stream (table_id, version, projected) VALUES (?, 0, 0)", (twin,))
    answer = ask("audit", "--events", played.closed[:8], "--database", played.url)
    assert answer.code == 1
    assert "Several" in answer.err


def test_the_database_can_be_set_by_a_variable(
    ask: Ask, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEALER_DATABASE_URL", played.url)
    assert len(ask("tables").lines) == 2


def test_a_bundle_is_complete_and_verifies(ask: Ask, played: Played, tmp_path: Path) -> None:
    file = tmp_path / "game.jsonl"
    answer = ask("export", played.closed, "-o", file, "--database", played.url)
    assert (answer.code, answer.out) == (0, "")
    assert str(file) in answer.err
    report = verify(bundle.read(file.read_bytes()), key=played.key, saved=played.saved)
    assert report.ok, report.fault
    assert ask("export", played.closed, "--database", played.url).out.encode() == file.read_bytes()
    assert [path.name for path in tmp_path.glob("game*")] == ["game.jsonl"]


def test_the_bundle_of_an_open_round_is_signed_to_its_last_event(ask: Ask, played: Played) -> None:
    answer = ask("export", played.open, "--database", played.url)
    assert (answer.code, answer.err) == (0, "")
    report = verify(answer.lines)
    assert report.ok, report.fault
    assert report.remarks.open_rounds == 1
    log = ask("audit", "--events", played.open, "--json", "--database", played.url).lines
    assert answer.lines[-2:] != log[-2:]
    assert f"\\n{len(log)}\\n" in answer.lines[-1]


@pytest.mark.parametrize("key", [None, bytes(32), b"short"])
def test_without_the_key_a_bundle_ends_at_the_last_checkpoint(
    ask: Ask, played: Played, key: bytes | None
) -> None:
    file = played.folder / "dealer.db.key"
    file.unlink()
    if key is not None:
        file.write_bytes(key)
    answer = ask("export", played.open, "--database", played.url)
    assert answer.code == 0
    assert "the last that the house has signed" in answer.err
    assert verify(answer.lines).ok
    whole = ask("export", played.closed, "--database", played.url)
    assert (whole.code, whole.err) == (0, "")


def test_without_key_and_checkpoint_there_is_no_bundle(ask: Ask, played: Played) -> None:
    (played.folder / "dealer.db.key").unlink()
    with closing(sqlite3.connect(played.file)) as other, other:
        other.execute("DELETE FROM checkpoint")
    answer = ask("export", played.open, "--database", played.url)
    assert (answer.code, answer.out) == (1, "")
    assert "signed nothing" in answer.err


def _alter(played: Played, sql: str) -> None:
    """Alter a row without the triggers, as an attacker with database access can."""
    with closing(sqlite3.connect(played.file)) as other, other:
        for (name,) in other.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            other.execute(f"DROP TRIGGER {name}")
        assert other.execute(sql).rowcount == 1


EVE = """UPDATE event SET public = '{"name":"Eva","seat":1}'
WHERE public = '{"name":"Eve","seat":1}'"""


CUT = """UPDATE event SET public = replace(public, '"at":', '"at":1') WHERE type = 'StackCut'"""


def test_altered_rows_are_not_signed(ask: Ask, played: Played) -> None:
    _alter(played, EVE)
    answer = ask("export", played.open, "--database", played.url)
    assert answer.code == 1
    assert "altered" in answer.err


def test_an_audit_of_altered_rows_fails(ask: Ask, played: Played) -> None:
    (played.folder / "dealer.db.key").unlink()
    _alter(played, CUT)
    answer = ask("audit", played.closed, "--database", played.url)
    assert answer.code == 1
    assert "failed: The house has signed (heads): line" in answer.out


def test_an_audit_shows_no_altered_name(ask: Ask, played: Played) -> None:
    """The name is no part of the leaf, which has a commitment to it."""
    (played.folder / "dealer.db.key").unlink()
    _alter(played, EVE)
    answer = ask("audit", played.open, "--database", played.url)
    assert answer.code == 1
    assert "altered" in answer.err
    assert "Eva" not in answer.out


def test_an_audit_prints_the_events_before_the_fault(ask: Ask, played: Played) -> None:
    """The house alters a cut and signs it: the cards no longer match the seals."""
    _alter(played, CUT)
    leaves = ask("audit", "--events", played.closed, "--json", "--database", played.url).lines
    signer = Signer(HouseKeys((played.folder / "dealer.db.key").read_bytes()).signing_seed)
    roots = dict(_roots(leaves))
    with closing(sqlite3.connect(played.file)) as other, other:
        for stream, size, note in other.execute("SELECT * FROM checkpoint").fetchall():
            if played.closed in note:
                origin = note.partition("\n")[0]
                signed = signer.sign(origin=origin, size=size, root=roots[size])
                other.execute(
                    "UPDATE checkpoint SET note = ? WHERE stream = ? AND size = ?",
                    (signed, stream, size),
                )
    answer = ask("audit", played.closed, "--database", played.url)
    assert answer.code == 1
    found = re.search(r"^failed: .+ \((seals|moves)\): line (\d+): ", answer.out, re.MULTILINE)
    assert found is not None, answer.out
    numbers = [line.split()[0] for line in answer.lines if re.match(r" {1,6}\d+  \d\d:", line)]
    versions = list(map(int, numbers))
    assert versions[0] == 1
    assert versions[-1] == int(found[2]) - 1


def _roots(leaves: list[str]) -> Iterator[tuple[int, bytes]]:
    tree = Tree()
    for size, leaf in enumerate(leaves, 1):
        tree.append(leaf_hash(leaf.encode()))
        yield size, tree.root()


def test_an_audit_as_json_has_every_swap(ask: Ask, played: Played) -> None:
    answer = ask("audit", played.closed, "--json", "--database", played.url)
    report = json.loads(answer.out)
    assert report["ok"]
    swaps = [one for one in report["story"] if one["type"] == "CardsSwapped"]
    first = [one for one in swaps if (one["round"], one["k"]) == (1, 0)]
    opened = next(one for one in report["story"] if one["type"] == "RoundOpened")
    log = ask("audit", "--events", played.closed, "--json", "--database", played.url).lines
    deck = json.loads(log[opened["version"] - 1])["public"]["deck"]
    words = iter([one["words"][-1] for one in first])
    assert len(first) == len(deck) - 1
    for one, (step, i, j) in zip(
        first, backward(len(deck), len(deck) - 1, lambda bound: next(words) % bound), strict=True
    ):
        assert (one["step"], one["i"], one["j"]) == (step, i, j)
        assert one["cards"] == [deck[i], deck[j]]
        deck[i], deck[j] = deck[j], deck[i]
    drawn = [one["cards"][0] for one in report["story"] if one["type"] == "CardDrawn"]
    assert drawn[:3] == deck[:-4:-1]


def test_an_audit_as_text(ask: Ask, played: Played) -> None:
    answer = ask("audit", played.closed, "--key", played.key, "--database", played.url)
    assert answer.code == 0
    checks = ("form", "heads", "saved", "secrets", "tape", "seals", "moves")
    for check in checks:
        assert re.search(rf"^(passed|not checked): .+ \({check}\): ", answer.out, re.MULTILINE)
    assert "The table's key is the one you gave." in answer.lines
    for words in (
        "Ada sits down at seat 1",
        "Cleo (seat 3) commits to random bytes for shuffle 0",
        "Dan (seat 4) draws ",
        " is discarded from the hand of Bob (seat 2)",
        " goes from the discard pile to the deck",
        "the deck is cut: the cards from place ",
        "shuffle 1 begins: the deck, ",
        "is turned up for all",
        "round 2 closes",
        "the table closes",
    ):
        assert words in answer.out
    assert "??" not in answer.out


def test_an_audit_of_one_round(ask: Ask, played: Played) -> None:
    answer = ask("audit", played.closed, "--round", 2, "--database", played.url)
    assert answer.code == 0
    assert "round 2 opens" in answer.lines[0]
    assert "round 1" not in answer.out
    wrong = ask("audit", played.closed, "--round", 3, "--database", played.url)
    assert wrong.code == 2
    assert "2 rounds" in wrong.err


def test_an_open_round_keeps_its_cards(ask: Ask, played: Played) -> None:
    answer = ask("audit", played.open, "--database", played.url)
    assert answer.code == 0
    assert "draws ?? from the deck" in answer.out
    assert "is swapped with a hidden place" in answer.out
    assert "Rounds: 1, 1 of them still open and so not proved." in answer.lines


def test_reading_commands_change_no_file(ask: Ask, played: Played, tmp_path: Path) -> None:
    """The write-ahead log of a killed server stays unchanged as well."""
    left = tmp_path / "left"
    with closing(sqlite3.connect(played.file)) as other:
        with other:
            other.execute("INSERT INTO house VALUES ('left', x'00')")
        shutil.copytree(played.folder, left, ignore=shutil.ignore_patterns("*-shm"))
    url, files = f"sqlite:///{left}/dealer.db", ("dealer.db", "dealer.db-wal", "dealer.db.key")
    before = [sha256((left / name).read_bytes()).hexdigest() for name in files]
    for arguments in (
        ("tables",),
        ("audit", "--events", played.closed),
        ("export", played.open),
        ("audit", played.open),
    ):
        assert ask(*arguments, "--database", url).code == 0
    assert [sha256((left / name).read_bytes()).hexdigest() for name in files] == before


@pytest.mark.parametrize(
    "arguments",
    [("tables",), ("audit", "--events", "00"), ("export", "00"), ("audit", "00"), ("rebuild",)],
)
def test_databases_that_cannot_be_read(
    ask: Ask, played: Played, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    nowhere = ask(*arguments, "--database", f"sqlite:///{tmp_path}/none.db")
    assert nowhere.code == 1
    assert "There is no database" in nowhere.err
    assert not (tmp_path / "none.db").exists()

    with closing(sqlite3.connect(played.file)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = '0001'")
    old = ask(*arguments, "--database", played.url)
    assert old.code == 1
    assert "dealer migrate" in old.err

    played.file.write_bytes(b"no database at all, but long enough to be one" * 100)
    damaged = ask(*arguments, "--database", played.url)
    assert damaged.code == 1
    assert "damaged" in damaged.err
    for answer in (nowhere, old, damaged):
        assert answer.out == ""
        assert answer.err.count("\n") == 1


def test_an_empty_database_has_no_tables(ask: Ask, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    assert ask("migrate", "--database", url).code == 0
    assert ask("tables", "--database", url).out == "This database has no tables yet.\n"
    assert ask("tables", "--json", "--database", url).out == ""


def test_an_output_file_that_cannot_be_written(ask: Ask, played: Played) -> None:
    file = played.folder / "nowhere" / "game.jsonl"
    answer = ask("export", played.closed, "-o", file, "--database", played.url)
    assert answer.code == 1
    assert "cannot be written" in answer.err
    # A failed export leaves the earlier file unchanged.
    kept = played.folder / "kept.jsonl"
    kept.write_text("kept")
    assert ask("export", "f" * 32, "-o", kept, "--database", played.url).code == 1
    assert kept.read_text() == "kept"
    assert not list(played.folder.glob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_database_in_a_read_only_folder_can_be_read(ask: Ask, played: Played) -> None:
    played.folder.chmod(0o500)
    try:
        assert len(ask("tables", "--database", played.url).lines) == 2
    finally:
        played.folder.chmod(0o700)
