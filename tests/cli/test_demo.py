"""`dealer demo`: a whole game whose checks all pass."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import signal
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from dealer.cli.commands.verify import from_house
from dealer.cli.demo_game import NAMES, kept, play, strength
from dealer.config.settings import Settings
from dealer.proof.verify import verify

from .conftest import Ask, Serve

pytestmark = pytest.mark.slow


def test_a_demo_passes_every_check(ask: Ask, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/demo.db"
    answer = ask("demo", "--database", url)
    assert answer.code == 0, answer
    checks = ("form", "heads", "saved", "secrets", "tape", "seals", "moves", "rebuild")
    for check in checks:
        assert re.search(rf"^passed: .* \({check}\): ", answer.out, re.MULTILINE)
    assert not re.search("^(failed|not checked): ", answer.out, re.MULTILINE)
    # All four cosigned the last checkpoint of the table, and earlier ones.
    closed = re.search(r"The table closes at version (\d+)\.", answer.out)
    assert closed is not None
    for name in NAMES:
        assert re.search(rf"Cosigned by {name} \d+ times, last at size {closed[1]},", answer.out)
    for words in (
        "sit down at table",
        "Cleo's connection is cut",
        "without missing an event (socket 1 became 2)",
        "shuffled again with new random bytes",
        "the house reveals its secret",
        "dealer audit",
    ):
        assert words in answer.out
    with closing(sqlite3.connect(tmp_path / "demo.db")) as log:
        types = {kind for (kind,) in log.execute("SELECT DISTINCT type FROM events")}
        shuffles = log.execute("SELECT stack, n FROM shuffles WHERE outcome = 'sealed'").fetchall()
    assert {"CardDrawn", "CardMoved", "CardShown", "StackCut", "TableClosed"} <= types
    assert len(shuffles) >= 3
    assert ask("rebuild", "--database", url).code == 0


def test_a_demo_fails_when_a_row_was_altered(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dealer.cli.commands.play as module

    whole = module.__dict__["_rebuild"]

    async def meddle(service: object) -> bool:
        with closing(sqlite3.connect(tmp_path / "demo.db", timeout=30)) as other, other:
            other.execute("INSERT INTO piles VALUES (1, 1, 'sleeve', 0, 51, 'As')")
        same: bool = await whole(service)
        return same

    monkeypatch.setattr(module, "_rebuild", meddle)
    answer = ask("demo", "--database", f"sqlite:///{tmp_path}/demo.db")
    assert answer.code == 1
    assert "(rebuild): 1 row differs" in answer.out


def test_a_demo_takes_a_server_or_a_database(ask: Ask) -> None:
    assert ask("demo", "--url", "http://127.0.0.1:1/", "--database", "sqlite:///x.db").code == 2


def test_a_demo_is_played_at_the_server_that_runs_here(
    ask: Ask, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = serve("--port", 0, "--ops-port", 0)
    address = server.address
    monkeypatch.setattr(Settings, "port", int(address.rstrip("/").rpartition(":")[2]))
    answer = ask("demo")
    assert answer.code == 0, answer
    assert answer.lines[0] == f"The game is played at the server {address}."
    page = re.search(rf"{address}tables/([0-9a-f]{{32}})/audit", answer.out)
    assert page
    with urlopen(page[0], timeout=30) as shown:
        assert shown.status == 200
    commands = [shlex.split(line)[1:] for line in answer.lines if line.startswith("  ")][-4:]
    monkeypatch.chdir(tmp_path)
    for words, name in zip(commands, ("audit", "history", "export", "verify"), strict=True):
        assert words[0] == name
        assert ask(*words).code == 0, words


def test_the_database_of_a_demo_is_kept(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as none:
        monkeypatch.setattr(Settings, "port", none.getsockname()[1])
    answer = ask("demo")
    assert answer.code == 0, answer
    kept_at = re.search(r"The database is kept: (sqlite:///(\S+)/dealer\.db)", answer.out)
    assert kept_at
    assert "closed" in ask("tables", "--database", kept_at[1]).out
    shutil.rmtree(kept_at[2])


async def test_a_game_survives_repeated_kills_of_the_server(
    serve: Serve,
) -> None:
    server = serve("--port", 0, "--ops-port", 0)
    address = await asyncio.to_thread(lambda: server.address)
    port = address.rstrip("/").rpartition(":")[2]
    sentences: list[str] = []

    def report(sentence: str) -> None:
        nonlocal server
        sentences.append(sentence)
        if len(sentences) in (2, 9):
            server.end(signal.SIGKILL)
            server = serve("--port", port, "--ops-port", 0)

    table = await play(f"ws://127.0.0.1:{port}/ws", report)
    assert "The table closes" in sentences[-1]
    lines = await asyncio.to_thread(from_house, address, table)
    report_ = verify(lines)
    assert report_.ok, report_.fault
    assert report_.remarks.rounds == 2
    assert server.end().code == 0


@pytest.mark.parametrize(
    ("hand", "name"),
    [
        ("As Kd 9c 5h 2s", "high card"),
        ("As Ad 9c 5h 2s", "a pair"),
        ("As Ad 9c 9h 2s", "two pairs"),
        ("As Ad Ac 9h 2s", "three of a kind"),
        ("As 2d 3c 4h 5s", "a straight"),
        ("As Kd Qc Jh Ts", "a straight"),
        ("As Ks 9s 5s 2s", "a flush"),
        ("As Ad Ac 9h 9s", "a full house"),
        ("As Ad Ac Ah 9s", "four of a kind"),
        ("9s 8s 7s 6s 5s", "a straight flush"),
    ],
)
def test_hands_have_names(hand: str, name: str) -> None:
    assert strength(hand.split())[1] == name


def test_hands_are_ordered_as_in_poker() -> None:
    rising = [
        "7s 5d 4c 3h 2s", "As Kd Qc Jh 9s", "2s 2d 5c 4h 3s", "As Ad 5c 4h 3s", "2s 2d 3c 3h 4s",
        "2s 2d 2c 4h 3s", "As 2d 3c 4h 5s", "2s 3d 4c 5h 6s", "2s 3s 4s 5s 7s", "2s 2d 2c 3h 3s",
        "2s 2d 2c 2h 3s", "As 2s 3s 4s 5s",
    ]  # fmt: skip
    ranked = [strength(hand.split())[0] for hand in rising]
    assert ranked == sorted(ranked)
    assert kept(["As", "Ad", "9c", "5h", "2s"]) == ["As", "Ad"]
    assert sorted(kept(["As", "Kd", "9c", "5h", "2s"])) == ["As", "Kd"]
