"""The packs and games of this version, and folders of an operator's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import ConfigurationError
from dealer.game.cards import check_deck
from dealer.game.rules import ACTIONS
from dealer.packs.catalogue import read_folders, shipped
from dealer.packs.game import dealt_cards

WEB = Path(__file__).parents[2] / "dealer" / "web"
PACKS, GAMES = shipped()
FILES = sorted([*WEB.glob("packs/*.json"), *WEB.glob("games/*.json")])
LANGUAGES = {path.stem for path in (WEB / "texts").glob("*.json")}


def test_what_is_shipped() -> None:
    assert {name: len(one["deck"]) for name, one in PACKS.items()} == {
        "colours-and-numbers": 108,
        "german-32": 32,
        "spanish-40": 40,
        "spanish-48": 48,
        "tarot": 78,
    }
    assert set(GAMES) >= {
        *("holdem", "omaha", "five-card-draw", "hearts", "spades", "bridge", "gin-rummy"),
        *("go-fish", "crazy-eights", "blackjack", "klondike", "colours-and-numbers"),
    }


@pytest.mark.parametrize("name", PACKS)
def test_every_card_of_a_pack_has_a_name_an_index_and_an_equal_length(name: str) -> None:
    pack = PACKS[name]
    check_deck(pack["deck"])
    ranks = {one["rank"]: one for one in pack["ranks"]}
    for card in pack["cards"].values():
        assert "name" in card or {"suit", "rank"} <= set(card)
        assert card.get("corner") or ranks[card["rank"]].get("corner")


@pytest.mark.parametrize("name", PACKS)
def test_suits_differ_without_their_colours(name: str) -> None:
    marks = [suit.get("svg") or suit.get("sign") for suit in PACKS[name]["suits"]]
    assert None not in marks
    without_colours = [re.sub(r"#[0-9a-f]{6}", "", mark) for mark in marks]
    assert len(set(without_colours)) == len(marks)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_can_be_dealt_for_every_number_of_players(name: str) -> None:
    game = GAMES[name]
    assert game["help"]
    assert "deal" in game["buttons"]
    for players in range(game["players"]["min"], game["players"]["max"] + 1):
        assert sum(dealt_cards(deal, players) for deal in game["deal"]) <= game["cards"]


@pytest.mark.parametrize("name", GAMES)
def test_the_buttons_of_a_game_are_allowed_by_its_rules(name: str) -> None:
    game = GAMES[name]
    for button in game["buttons"]:
        assert button in ACTIONS
        assert game["rules"].get(button) != "nobody", button


def texts_of(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """The texts of a pack or game, each with the members that lead to it."""
    if isinstance(value, list):
        for n, one in enumerate(value):
            yield from texts_of(one, f"{at}/{n}")
    elif isinstance(value, dict):
        for member, one in value.items():
            if member in ("title", "name", "named", "text"):
                yield f"{at}/{member}", one
            elif member == "help":
                yield from ((f"{at}/help/{n}", text) for n, text in enumerate(one))
            else:
                yield from texts_of(one, f"{at}/{member}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_text_is_in_every_language(path: Path) -> None:
    """Signs and numbers are the same in all; the name of a pile is that of the log."""
    for at, text in texts_of(json.loads(path.read_text())):
        if isinstance(text, dict):
            assert set(text) == LANGUAGES, at
            placeholders = {tuple(sorted(re.findall(r"{[a-z]+}", one))) for one in text.values()}
            assert len(placeholders) == 1, at
        elif not re.fullmatch(r"/(piles|deal)/.*name", at):
            assert not re.search(r"[^\W\d_]", re.sub(r"{[a-z]+}", "", text)), at


def test_the_files_are_small_and_name_their_licence() -> None:
    for path in (WEB / "packs").iterdir():
        assert path.stat().st_size < 24_576
        assert json.loads(path.read_text())["licence"]
    courts = list((WEB / "cards").glob("[JQK]?.svg"))
    assert {path.stem for path in courts} == {rank + suit for rank in "JQK" for suit in "shdc"}
    assert all(path.stat().st_size < 20_000 for path in courts)
    assert "CC0" in (WEB / "cards" / "LICENCE.md").read_text()


def test_an_operators_folders_are_added(tmp_path: Path) -> None:
    packs, games = tmp_path / "packs", tmp_path / "games"
    packs.mkdir()
    games.mkdir()
    (packs / "tiles.csv").write_text("code,name\n红中,red\n发财,green\n")
    (packs / "tarot.json").write_text('{"title": "Mine", "cards": {"a": {"name": "x"}}}')
    (games / "pairs.json").write_text(
        '{"title": "P", "players": {"min": 1, "max": 2}, "deck": {"pack": "tiles"}}'
    )
    found = read_folders(packs, games)
    assert found.packs["tiles"]["deck"] == ["1", "2"]
    assert found.packs["tarot"]["title"] == "Mine"
    assert found.games["pairs"]["deck"] == ["1", "2"]
    assert set(found.games) > set(GAMES)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", r"a\.json: line 1, column 2: this is not JSON"),
        ("A b.json", "{}", "the name of the file must be a name of 1 to 64"),
        ("a.csv", "code\n", r"a\.csv: line 1: the header"),
        ("a.json", '{"title": "x"}', r"a\.json: cards must be an object"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=sentence):
        read_folders(tmp_path, None)


def test_a_folder_must_be_there_and_its_names_differ(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_folders(tmp_path / "none", None)
    (tmp_path / "a.json").write_text('{"title": "x", "cards": {"a": {"name": "x"}}}')
    (tmp_path / "a.csv").write_text("code,name\na,b\n")
    with pytest.raises(ConfigurationError, match="there is another file of this name"):
        read_folders(tmp_path, None)
