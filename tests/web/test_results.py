"""What the sheet at the end of a round says that each player has: points, tricks or cards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.packs.catalogue import shipped
from tests.web.js_verifier import FILE, run_module

RESULT = (FILE.parent / "table" / "result.js").as_uri()
HEARTS = {"of": "won:{seat}", "points": [["Qs", 13], ["*h", 1]], "best": "least", "all": 26}
ALL_HEARTS = [f"{rank}h" for rank in "A23456789TJQK"]


def result(rule: dict[str, Any], stacks: dict[str, list[str]]) -> list[Any]:
    """The unit, and the seat, value and whether it is the best of each score."""
    cards = {name: [{"card": code} for code in codes] for name, codes in stacks.items()}
    found = run_module(f"""
        import {{ resultOf }} from {json.dumps(RESULT)};
        const {{ unit, scores }} = resultOf({json.dumps(rule)}, {json.dumps(cards)});
        const rows = scores.map(({{ seat, value, best }}) => [seat, value, best]);
        console.log(JSON.stringify([unit, ...rows]));
    """)
    assert isinstance(found, list)
    return found


HANDS: dict[str, list[str]] = {"hand:1": [], "hand:2": [], "hand:3": [], "deck": []}


def test_hearts_counts_hearts_and_the_queen_of_spades() -> None:
    won = {"pile:won:1": ["Qs", "2c", "Kh"], "pile:won:3": ["Ah", "2h", "As"]}
    rest = {"pile:table": ALL_HEARTS[2:12]}
    assert result(HEARTS, HANDS | won | rest) == [
        "points", [2, 0, True], [3, 2, False], [1, 14, False],
    ]  # fmt: skip


def test_a_player_who_takes_all_points_gets_none() -> None:
    won = {"pile:won:2": ["Qs", *ALL_HEARTS], "pile:won:3": ["As"]}
    assert result(HEARTS, HANDS | won) == ["points", [2, 0, True], [1, 26, False], [3, 26, False]]
    without = {name: value for name, value in HEARTS.items() if name != "all"}
    assert result(without, HANDS | won)[-1] == [2, 26, False]


def test_several_players_may_win_and_none_does_before_the_end() -> None:
    won = {"pile:won:1": ["2h"], "pile:table": ["3h"]}
    assert result(HEARTS, HANDS | won)[1:] == [[2, 0, True], [3, 0, True], [1, 1, False]]
    held = {"hand:2": ["3c"]}
    assert [row[2] for row in result(HEARTS, HANDS | won | held)[1:]] == [False, False, False]


def test_tricks_are_counted_by_the_number_of_players() -> None:
    won = {"pile:won:1": ["2c"] * 6, "pile:won:2": ["2c"] * 3}
    rows = [[1, 2, False], [2, 1, False], [3, 0, False]]
    assert result({"of": "won:{seat}"}, HANDS | won) == ["tricks", *rows]
    assert result({"of": "won:{seat}", "best": "most"}, HANDS | won)[1] == [1, 2, True]


def test_cards_that_are_left_are_counted_once_a_hand_is_empty() -> None:
    rule = {"of": "hand", "best": "least"}
    hands = {"hand:1": ["2c", "3c"], "hand:2": [], "hand:10": ["2d"], "pile:table": ["2s"]}
    assert result(rule, hands) == ["cards", [2, 0, True], [10, 1, False], [1, 2, False]]
    assert result(rule, hands | {"hand:2": ["2h"]})[1] == [2, 1, False]


def test_the_first_pattern_that_fits_counts() -> None:
    points = [["W*", 50], ["*.+", 7], ["*", 1]]
    rule = {"of": "hand", "points": points, "best": "most"}
    hands = {"hand:1": ["W4.1", "R5.1"], "hand:2": ["x.+"]}
    assert result(rule, hands) == ["points", [1, 51, False], [2, 7, False]]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        *[("hearts", "points"), ("spades", "tricks"), ("bridge", "tricks")],
        *[("crazy-eights", "cards"), ("colours-and-numbers", "cards")],
    ],
)
def test_the_games_of_this_version_say_what_counts(name: str, unit: str) -> None:
    _, games = shipped()
    assert result(games[name]["result"], HANDS)[0] == unit
