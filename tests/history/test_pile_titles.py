"""Piles in histories have the titles of the game's file, or those that players wrote."""

from __future__ import annotations

import pytest

from dealer.history.pile_titles import title_of
from dealer.history.sentences import describe_all
from dealer.history.text import write
from dealer.languages.language import languages
from dealer.packs.catalogue import shipped
from tests.history.poker import Poker, game_of

TITLES = {"board": "Board", "won:{seat}": "Tricks of seat {seat}", "{seat}-meld": "Meld {seat}"}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("board", "Board"),
        ("won:12", "Tricks of seat 12"),
        ("won:", None),
        ("won:0", None),
        ("won:{seat}", "Tricks of seat {seat}"),
        ("3-meld", "Meld 3"),
        ("kitty", None),
        ("~5byD54mM", "弃牌"),
        ("~YWJj", None),  # that is plain
        ("~_w", None),
        ("~", None),
    ],
)
def test_titles_by_plain_name(name: str, title: str | None) -> None:
    assert title_of(name, TITLES) == title


def titled(game: str | None) -> list[str]:
    poker = Poker(game, players=2)
    poker.deal(1)
    poker.board(1)
    poker.close()
    german = languages()["de"]
    titles = shipped().pile_titles("de")
    return list(write(game_of(poker.played), language=german, games=titles))


def test_the_history_of_a_game_has_its_titles_in_the_readers_language() -> None:
    text = "\n".join(titled("holdem"))
    title = shipped().pile_titles("de")["holdem"]["board"]
    assert f"„{title}“" in text
    assert "board" not in text


@pytest.mark.parametrize("game", [None, "unknown"])
def test_without_the_games_file_a_pile_has_its_plain_name(game: str | None) -> None:
    assert "board" in "\n".join(titled(game))


def test_the_audit_has_the_same_titles() -> None:
    poker = Poker("holdem", players=2)
    poker.deal(1)
    poker.board(1)
    poker.close()
    game = game_of(poker.played)
    sentences = [one.sentence for one in describe_all(game.leaves, game.swaps,
                                                      shipped().pile_titles("en"))]  # fmt: skip
    assert any("to “Board”" in sentence for sentence in sentences)
