"""`dealer verify`: bundles from files, results and exit codes."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest

from dealer.game.commands import Actor, CloseRound, OpenRound, StartShuffle
from dealer.proof.bundle import DECOMPRESSED, LAST_NEWLINE, LINE_ENDS, UNMARKED
from dealer.proof.note import ED25519, Verifier
from dealer.proof.verify import CHECKS
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.harness.programs import output_of
from tests.web.js_verifier import node

from .conftest import Ask, Played

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def game(ask: Ask, played: Played, tmp_path: Path) -> Path:
    file = tmp_path / "game.jsonl"
    assert ask("export", played.closed, "-o", file, "--database", played.url).code == 0
    return file


def test_a_deck_of_one_card_was_sealed_without_a_swap(ask: Ask, tmp_path: Path) -> None:
    """Both verifiers: a shuffle of a closed round is reached by its seal as well as by a swap."""
    for closes, state in ((True, "passed"), (False, "not checked")):
        url = f"sqlite:///{tmp_path / f'{closes}.db'}"
        table = asyncio.run(_one_card(url, closes=closes))
        file = tmp_path / f"{closes}.jsonl"
        ask("export", table, "-o", file, "--database", url)
        answer = ask("verify", file)
        assert answer.code == 0
        for check in ("tape", "seals"):
            assert re.search(rf"^{state}: .*\({check}\)", answer.out, re.M), answer.out
        assert output_of(node(), "dealer/web/verify.js", str(file), cwd=ROOT) == answer.out


async def _one_card(url: str, *, closes: bool) -> str:
    host = Actor(host=True)
    async with open_service(url, ServiceOptions(house="house.example")) as service:
        live_table, _ = await service.open_table({})
        commands = (OpenRound(host, ("As",), "house", 1000, 1000), StartShuffle(host))
        for command in commands:
            await service.execute(live_table, command)
        if closes:
            await service.execute(live_table, CloseRound(host))
        return live_table.table_id


def test_a_fair_game(ask: Ask, game: Path) -> None:
    answer = ask("verify", game)
    assert (answer.code, answer.err) == (0, "")
    assert [line.split(":")[0] for line in answer.lines[:7]] == [
        "not checked" if check == "saved" else "passed" for check in CHECKS
    ]
    assert (
        "The table's key was taken from the bundle; give the key you know to be sure."
        in answer.lines
    )


def test_a_fair_game_as_json(ask: Ask, game: Path, played: Played) -> None:
    result = json.loads(ask("verify", game, "--json", "--key", played.key).out)
    assert result["ok"]
    assert result["fault"] is None
    assert result["key"] == played.key
    assert result["remarks"]["rounds"] == 2
    assert result["remarks"]["shuffles"] >= 3
    assert result["remarks"]["pinned"]
    assert result["swaps"] > 51 + 51


def test_standard_input(ask: Ask, game: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(game.read_bytes())))
    assert ask("verify", "-") == ask("verify", game)


def test_the_key_may_be_hex_or_a_verifier_key(ask: Ask, game: Path, played: Played) -> None:
    key = bytes.fromhex(played.key)
    origin = json.loads(game.read_text().splitlines()[0])["origin"]
    assert origin == f"house.example/t/{played.closed}"
    for good in (played.key, played.key.upper(), Verifier(origin, ED25519, key).vkey):
        answer = ask("verify", game, "--key", good)
        assert answer.code == 0
        assert "The table's key is the one you gave." in answer.lines
    other = bytes(31) + b"\x01"
    for wrong in (other.hex(), Verifier(origin, ED25519, other).vkey):
        answer = ask("verify", game, "--key", wrong)
        assert answer.code == 1
        assert "failed: The house has signed (heads): line 0" in answer.out
    answer = ask("verify", game, "--key", Verifier("else/t/" + "0" * 32, ED25519, key).vkey)
    assert answer.code == 1
    assert "another origin" in answer.out
    for nonsense in ("abc", "x" * 64, "name+00000000+AAAA"):
        assert ask("verify", game, "--key", nonsense).code == 2


def test_saved_checkpoints(ask: Ask, game: Path, played: Played, tmp_path: Path) -> None:
    note, kept = tmp_path / "note.txt", tmp_path / "checkpoints.jsonl"
    note.write_text(played.saved[0])
    kept.write_text("".join(json.dumps({"note": one}) + "\n" for one in played.saved))
    answer = ask("verify", game, "--saved", note, "--saved", kept)
    assert answer.code == 0
    assert "(saved): the log agrees with the checkpoints you saved." in answer.out
    note.write_text(played.saved[0].replace("\n", "\nx", 1))
    answer = ask("verify", game, "--saved", kept, "--saved", note)
    assert answer.code == 1
    assert "failed: The log is the one you saw (saved): " in answer.out
    kept.write_text('{"size": 3}\n')
    assert ask("verify", game, "--saved", kept).code == 2
    assert ask("verify", game, "--saved", tmp_path / "none").code == 2


def test_what_other_tools_changed_is_undone_and_noted(
    ask: Ask, game: Path, played: Played, tmp_path: Path
) -> None:
    unchanged = ask("verify", game)
    game.write_bytes(gzip.compress(game.read_bytes().replace(b"\n", b"\r\n")))
    answer = ask("verify", game)
    assert (answer.code, answer.err) == (0, "")
    notes = [DECOMPRESSED, LINE_ENDS]
    assert answer.lines == [*unchanged.lines, *(f"note: {note}." for note in notes)]
    note, kept = tmp_path / "note.txt", tmp_path / "checkpoints.jsonl"
    note.write_bytes(b"\xef\xbb\xbf" + played.saved[0].replace("\n", "\r\n").encode())
    lines = (json.dumps({"note": each}, ensure_ascii=False) for each in played.saved)
    kept.write_bytes("\r\n".join(lines).encode())
    result = json.loads(ask("verify", game, "--saved", note, "--saved", kept, "--json").out)
    assert result["ok"]
    notes += [f"{note}: {UNMARKED}", f"{note}: {LINE_ENDS}"]
    assert result["notes"] == [*notes, f"{kept}: {LINE_ENDS}", f"{kept}: {LAST_NEWLINE}"]


@pytest.mark.parametrize("command", [["history"], ["state"], ["lab", "table"]])
def test_other_commands_read_such_a_file_too(ask: Ask, game: Path, command: list[str]) -> None:
    unchanged = ask(*command, game)
    assert unchanged.code == 0
    game.write_bytes(gzip.compress(b"\xef\xbb\xbf" + game.read_bytes().replace(b"\n", b"\r\n")))
    assert ask(*command, game) == unchanged


def test_a_page_of_an_error_is_no_tampering(ask: Ask, game: Path) -> None:
    game.write_text("<html><body>502 Bad Gateway</body></html>")
    answer = ask("verify", game)
    assert answer.code == 1
    assert answer.lines[0] == (
        "failed: Each line is well formed (form): line 0: "
        "This is an HTML page, not a bundle. Download the bundle again."
    )


def _forge(game: Path, old: str, new: str) -> None:
    text = game.read_text()
    assert old in text
    game.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ('{"bundle"', '{ "bundle"', "(form): line 0"),
        ('"name":"Ada"', '"name":"Eve"', "(secrets): line"),
        ('"type":"SeatTaken","v":2', '"type":"SeatLeft","v":1', "(form): line"),
        ('"type":"SeatTaken"', '"type":"SeatStolen"', "(form): line 2"),
    ],
)
def test_a_forged_bundle_is_reported_with_its_fault(
    ask: Ask, game: Path, old: str, new: str, verdict: str
) -> None:
    _forge(game, old, new)
    answer = ask("verify", game)
    assert answer.code == 1
    assert verdict in answer.out
    result = json.loads(ask("verify", game, "--json").out)
    assert not result["ok"]
    assert result["fault"]["check"] == verdict[1 : verdict.index(")")]


@pytest.mark.parametrize("data", [b"", b"\x00\xff\n", b"[1]\n", b"a bundle\n"])
def test_malformed_bundles(ask: Ask, tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "none.jsonl"
    file.write_bytes(data)
    answer = ask("verify", file)
    assert answer.code == 1
    assert answer.out.startswith("failed: Each line is well formed (form): line 0")


def test_a_missing_file(ask: Ask, tmp_path: Path) -> None:
    answer = ask("verify", tmp_path / "none.jsonl")
    assert answer.code == 2
    assert "cannot be read" in answer.err
    assert ask("verify").code == 2


def test_verify_imports_no_database_and_no_network_library(game: Path) -> None:
    code = f"""
import sys
from dealer.cli import main
try:
    main(["verify", {str(game)!r}, "--json"])
except SystemExit as ended:
    assert not ended.code
heavy = {{"sqlalchemy", "websockets", "msgspec", "uvloop", "alembic", "prometheus_client"}}
print(*(heavy & sys.modules.keys()))
"""
    printed = output_of(sys.executable, "-c", code, cwd=Path(__file__).parents[2])
    assert printed.splitlines()[-1] == ""
