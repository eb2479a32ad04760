"""`dealer packs check`, and the settings of the folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from dealer.config.settings import Settings
from dealer.errors import ConfigurationError
from tests.packs.test_readme import DOCUMENT, examples

from .conftest import Ask

GAME = '{"title": "P", "players": {"min": 1, "max": 2}, "deck": {"pack": "tiles"}}'


def test_files_are_summarised(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "tiles.csv").write_text("code,name\n红中,red\n发财,green\n")
    (tmp_path / "pairs.json").write_text('{"game": "pairs", ' + GAME[1:])
    answer = ask("packs", "check", tmp_path / "tiles.csv", "--packs", tmp_path / "none")
    assert answer.code != 0
    (tmp_path / "packs").mkdir()
    (tmp_path / "tiles.csv").rename(tmp_path / "packs" / "tiles.csv")
    answer = ask("packs", "check", tmp_path / "packs" / "tiles.csv", tmp_path / "pairs.json",
                 "--packs", tmp_path / "packs")  # fmt: skip
    assert answer.code == 0
    assert answer.lines[0].endswith("tiles.csv: the pack tiles, 2 cards, codes 1 to 2.")
    assert answer.lines[1].endswith("pairs.json: the game pairs, 1 to 2 players, 2 cards.")


def test_a_game_may_have_a_pack_of_the_files_beside_it(ask: Ask, tmp_path: Path) -> None:
    tiles, pairs = tmp_path / "tiles.csv", tmp_path / "pairs.json"
    tiles.write_text("code,name\na,red\nb,green\n")
    pairs.write_text(GAME)
    for files in ((tiles, pairs), (pairs, tiles)):
        answer = ask("packs", "check", *files)
        assert answer.code == 0, answer
        assert [line.split(":")[0] for line in answer.lines] == [str(file) for file in files]
    missing = f"{pairs}: deck: no pack tiles is known; --packs names the folder of its file."
    assert ask("packs", "check", pairs).lines == [missing]
    tiles.write_text("code,name\na\n")
    wrong = ask("packs", "check", pairs, tiles)
    assert wrong.code == 1
    assert wrong.lines == [missing, f"{tiles}: line 2: 1 cell, but the header has 2."]


def test_the_files_of_the_document_are_checked(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its two commands. The game does not name itself: a file is a game by its members."""
    monkeypatch.chdir(tmp_path)
    folders = {"packs": tmp_path / "packs", "games": tmp_path / "games"}
    names = ("packs/two-suits.json", "games/holdem.json")
    for folder in folders.values():
        folder.mkdir()
    for name, text in zip(names, examples("json"), strict=True):
        assert f"as `{name}`" in DOCUMENT
        (tmp_path / name).write_text(text, encoding="utf-8")
    check, serve = examples("sh")[0].splitlines()
    assert check == "dealer packs check packs/* games/*"
    answer = ask("packs", "check", *names)
    assert answer.code == 0, answer
    assert ": the pack two-suits, 6 cards" in answer.lines[0]
    assert ": the game holdem, " in answer.lines[1]
    assert serve == "dealer serve --packs packs --games games"
    assert Settings(packs=folders["packs"], games=folders["games"]).games == folders["games"]


def test_a_file_with_members_of_a_game_is_a_game(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "least.json").write_text('{"title": "L", "deck": {"standard": 52}}')
    assert ": players" in ask("packs", "check", tmp_path / "least.json").out


def test_columns_that_are_ignored_are_named(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "tiles.csv").write_bytes("Code;Name;Notizen\r\na;ä;alt\r\n".encode("utf-16"))
    answer = ask("packs", "check", tmp_path / "tiles.csv")
    assert answer.code == 0
    summary = "the pack tiles, 1 card, codes a to a. Ignored columns: Notizen."
    assert answer.lines == [f"{tmp_path / 'tiles.csv'}: {summary}"]


def test_a_wrong_file_is_reported_with_its_reason(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "tiles.csv").write_text("code,name\na\n")
    answer = ask("packs", "check", tmp_path / "tiles.csv")
    assert answer.code == 1
    assert answer.lines == [f"{tmp_path / 'tiles.csv'}: line 2: 1 cell, but the header has 2."]


def test_the_folders_are_checked_when_the_server_starts(tmp_path: Path) -> None:
    packs, games = tmp_path / "packs", tmp_path / "games"
    packs.mkdir()
    games.mkdir()
    (games / "pairs.json").write_text(GAME)
    with pytest.raises(ConfigurationError, match=r"pairs\.json: deck: no pack tiles is known"):
        Settings(packs=packs, games=games)
    (packs / "tiles.csv").write_text("code,name\na,b\n")
    assert Settings(packs=packs, games=games).packs == packs
    (packs / "tiles.csv").write_text("code\n")
    with pytest.raises(ConfigurationError, match=r"tiles\.csv: line 1: the header must have"):
        Settings(packs=packs)
