"""Presets of games: what is accepted, and what is refused with which sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dealer.errors import ConfigurationError
from dealer.packs.game import dealt_cards, read

PACKS: dict[str, Any] = {"tiles": {"deck": ["a1", "a2", "a3"]}}


def game(**members: Any) -> dict[str, Any]:
    return read(
        {"title": "A game", "players": {"min": 2, "max": 4}} | members, name="mine", packs=PACKS
    )


@pytest.mark.parametrize(
    ("deck", "opened", "cards"),
    [
        ({"standard": 52}, "52", 52),
        ({"standard": 54}, "54", 54),
        ({"standard": 52, "decks": 2}, {"decks": 2, "jokers": 0}, 104),
        ({"standard": 54, "decks": 2}, {"decks": 2, "jokers": 2}, 108),
        ({"cards": ["aa", "bb"]}, ["aa", "bb"], 2),
        ({"pack": "tiles", "decks": 3}, {"decks": 3, "cards": ["a1", "a2", "a3"]}, 9),
    ],
)
def test_a_deck_is_as_a_table_is_opened_with(deck: Any, opened: Any, cards: int) -> None:
    found = game(deck=deck)
    assert (found["deck"], found["cards"]) == (opened, cards)
    assert found.get("pack") == deck.get("pack")


def test_a_short_deck_has_the_codes_of_its_ranks() -> None:
    found = game(deck={"standard": 24})
    assert found["deck"][:2] == ["As", "9s"]
    assert found["cards"] == 24


def test_cards_of_each_player_by_their_number() -> None:
    each = {"4": 5, "2": 7}
    found = game(deal={"each": each})
    assert [dealt_cards(found["deal"][0], players) for players in (2, 3, 4)] == [14, 21, 20]


def test_a_picture_has_cards_of_the_deck() -> None:
    assert game(picture=["As", "Kh"])["picture"] == ["As", "Kh"]
    assert game(picture=["X1"], deck={"standard": 54})["picture"] == ["X1"]
    assert game(picture=["As"], deck={"standard": 52, "decks": 2})["picture"] == ["As"]
    assert game(picture=["9s"], deck={"standard": 24})["picture"] == ["9s"]
    assert game(picture=["a2"], deck={"pack": "tiles", "decks": 3})["picture"] == ["a2"]
    assert "picture" not in game()


def test_turns_and_tricks_are_there_only_if_the_game_has_them() -> None:
    assert {"turns", "tricks"}.isdisjoint(game())
    found = game(turns=[], tricks={})
    assert (found["turns"], found["tricks"]) == ([], {"trumps": ""})
    found = game(turns=["play", "draw"], tricks={"trumps": "s"})
    assert (found["turns"], found["tricks"]) == (["play", "draw"], {"trumps": "s"})


def test_words_and_the_cards_that_ask_for_a_suit() -> None:
    assert {"suit", "words"}.isdisjoint(game())
    words = {"discard": {"en": "Fold"}, "your_turn": "Bet", "before_deal": "After it:"}
    found = game(suit="8*", words=words)
    assert (found["suit"], found["words"]) == ("8*", words)


PILE = {"name": "board", "title": "Board"}


WON = {"name": "won:{seat}", "title": "Tricks"}


def test_a_result_keeps_the_order_of_its_points() -> None:
    points = {"Qs": 13, "*h": 1, "*": 0}
    found = game(piles=[WON], result={"of": "won:{seat}", "points": points, "best": "least"})
    assert found["result"] == {
        "of": "won:{seat}", "points": [["Qs", 13], ["*h", 1], ["*", 0]], "best": "least",
    }  # fmt: skip
    assert game(result={"of": "hand"})["result"] == {"of": "hand"}
    assert "result" not in game()


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        ([], "result must be an object"),
        ({"of": "won:{seat}", "pints": {}}, 'unknown member "pints"; did you mean points?'),
        ({}, "result: of must be hand, poker, omaha or the name of a pile with {seat}"),
        ({"of": "board"}, "result: of must be"),
        ({"of": "lost:{seat}"}, "result: of must be"),
        ({"of": "hand", "points": {}}, "result: points must have 1 to 100 members"),
        ({"of": "hand", "points": {"": 1}}, "result: points must be a text of 1 to 16"),
        ({"of": "hand", "points": {"Qs": "13"}}, "result: points, Qs must be a whole number"),
        ({"of": "hand", "points": {"Qs": 1001}}, "from -1000 to 1000"),
        ({"of": "hand", "best": "none"}, "result: best must be least or most"),
        ({"of": "won:{seat}", "all": 26}, "result: all needs points"),
        ({"of": "hand", "points": {"QS": 13}}, 'points, "QS": no card has that code'),
        ({"of": "hand", "points": {"Q?": 13}}, 'points, "Q?": no card has that code'),
        ({"of": "hand", "points": {"*h.2": 1}}, 'points, "*h.2": no card has that code'),
        (
            {"of": "hand", "points": {"*h": 1, "Q*": 2, "Qh": 3}},
            'points, "Qh": an earlier pattern fits all its cards',
        ),
        ({"of": "hand", "points": {"Qs": 1}, "all": 2.5}, "result: all must be a whole number"),
    ],
)
def test_a_wrong_result_is_refused(result: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        game(piles=[WON, PILE], result=result)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"game": "other"}, 'game must be "mine", like the name of the file'),
        ({"players": {"min": 3, "max": 2}}, "players: max must be a whole number from 3"),
        ({"picture": ["X1"]}, 'picture: "X1" is not a card of the deck'),
        ({"picture": ["8s"], "deck": {"standard": 24}}, 'picture: "8s" is not a card of the deck'),
        ({"picture": []}, "picture must be a list of 1 to 5"),
        ({"picture": [["As"]]}, "is not a card of the deck"),
        ({"deck": {}}, "deck must have one of standard, cards and pack"),
        ({"deck": {"standard": 40}}, "deck: standard must be 52, 54, 36, 32 or 24"),
        ({"deck": {"pack": "none"}}, "deck: no pack none is known; --packs"),
        ({"deck": {"cards": ["a", "bb"]}}, "deck: All codes of a deck must have the same length"),
        ({"rules": {"preset": "x"}}, "rules: The rules' preset must be one of"),
        ({"rules": {"preste": "free"}}, "rules: Unknown rule preste"),
        ({"rules": {"seats": 4}}, "rules: seats is not for a game file"),
        (
            {"rules": {"broadcast": 86_401}},
            "rules: The rule 'broadcast' must be 0 to 86400 seconds, a whole number.",
        ),
        ({"piles": [{"name": "стол", "title": "x"}]}, "piles, 1: name must be 1 to 32 printable"),
        ({"piles": [PILE, PILE]}, "piles: each name occurs once"),
        ({"piles": [PILE | {"spread": 1}]}, "piles, 1: spread must be true, false or"),
        ({"piles": [PILE], "turn": "elsewhere"}, 'turn: "elsewhere" is none of the game\'s piles'),
        ({"turn": 7}, "turn: 7 is none of the game's piles"),
        ({"suit": "9*", "deck": {"cards": ["8s", "8h"]}}, 'suit, "9*": no card has that code'),
        ({"suit": 8}, "suit must be a text of 1 to 16"),
        ({"words": {"fold": "Fold"}}, 'words: unknown member "fold"'),
        ({"words": {"discard": 7}}, "words: discard must be a text, or texts by language"),
        ({"turns": ["play", "pass"]}, 'turns: "pass" is none of play, discard, draw'),
        ({"turns": [["play"]]}, 'turns: ["play"] is none of'),
        ({"turns": "play"}, "turns must be a list"),
        ({"tricks": {"trumps": "S"}}, "tricks: trumps must be one of s, h, d, c"),
        ({"tricks": {"trump": "s"}}, "trump"),
        ({"tricks": True}, "tricks must be"),
        ({"deal": {"each": 14}}, "deal: for 4 players it takes 56 cards, but the deck has 52"),
        ({"deal": {"each": {"3": 5}}}, "deal, 1: each: it says nothing for 2 players"),
        ({"deal": {"each": {"x": 5}}}, 'deal, 1: each: "x" is not a number of players'),
        ({"deal": {"each": {"01000": 2}}}, 'each: "01000" is not a number of players'),
        ({"deal": {}}, "deal, 1: it deals no card"),
        ({"deal": {"piles": [{"name": "board"}]}}, '"board" is none of the game\'s piles'),
        ({"deal": [{"each": 1}, {"each": 1}]}, "deal, 2: every deal but the first has when"),
        (
            {"piles": [PILE], "deal": {"piles": [{"name": "board", "face": "side"}]}},
            "deal, 1: piles, 1: face must be up or down",
        ),
        ({"buttons": ["fold"]}, 'buttons: "fold" is none of'),
        ({"tricks": {"lead": "xx"}}, "tricks: lead must be a card of the deck"),
        ({"tricks": {"lead": ["2c"]}}, "tricks: lead must be a card of the deck"),
        ({"pass": {"count": 3}}, "pass: to"),
        ({"pass": {"count": 0, "to": ["left"]}}, "pass: count"),
        ({"pass": {"count": 3, "to": ["up"]}}, 'pass: to: "up" is none of left, right'),
        ({"help": "text"}, "help must be a list"),
    ],
)
def test_a_fault_is_one_sentence_with_its_place(members: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        game(**members)
    assert sentence in str(caught.value)
