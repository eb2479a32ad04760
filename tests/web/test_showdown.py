"""The hands at the end of a hand of poker: their kinds, the best of them, and who has folded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dealer.packs.catalogue import shipped
from tests.web.js_verifier import FILE, run_module

SHOWDOWN = (FILE.parent / "table" / "showdown.js").as_uri()
KINDS = (
    *("high card", "pair", "two pair", "three", "straight", "flush", "full house", "four"),
    "straight flush",
)
BOARD = "Ts Jh 4d 4c 2s"


def showdown(rules: str, *hands: str, board: str = "") -> list[Any]:
    """Seat, kind, and whether it is the best, of each hand in order; "" is one that folded."""
    cards = [[{"card": code} for code in codes.split()] for codes in (board, *hands)]
    stacks = {"deck": [], **{f"hand:{seat}": hand for seat, hand in enumerate(cards[1:], 1)}}
    found = run_module(f"""
        import {{ handsOf }} from {json.dumps(SHOWDOWN)};
        const rows = handsOf({json.dumps(rules)}, {json.dumps(stacks)}, {json.dumps(cards[0])});
        console.log(JSON.stringify(rows.map(({{ seat, kind, best }}) => [seat, kind, best])));
    """)
    assert isinstance(found, list)
    return [[seat, None if kind is None else KINDS[kind], best] for seat, kind, best in found]


@pytest.mark.parametrize(
    ("hand", "kind"),
    [
        ("As Jh 9d 4c 2s", "high card"),
        ("As Ah 9d 4c 2s", "pair"),
        ("As Ah 9d 9c 2s", "two pair"),
        ("As Ah Ad 4c 2s", "three"),
        ("As Kh Qd Jc Ts", "straight"),
        ("As 2h 3d 4c 5s", "straight"),
        ("Ks Ah 2d 3c 4s", "high card"),
        ("As Js 9s 4s 2s", "flush"),
        ("As Ah Ad 2c 2s", "full house"),
        ("As Ah Ad Ac 2s", "four"),
        ("As 2s 3s 4s 5s", "straight flush"),
    ],
)
def test_five_cards_have_a_kind(hand: str, kind: str) -> None:
    assert showdown("poker", hand, "9h 7d 5c 3s 2h") == [
        [1, kind, True], [2, "high card", False],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("As Ah 9d 4c 2s", "Ks Kh Qd Jc 9s"),  # the pair, not the other cards
        ("As Ah 9d 4c 3s", "Ad Ac 9h 4d 2s"),  # the last card
        ("6s 2h 3d 4c 5s", "As 2d 3h 4s 5d"),  # the ace below the two
        ("3s 3h 3d 2c 2s", "2h 2d 2s Ac Ah"),  # the three, not the two
        ("2s 2h 2d 2c 3s", "As Ah Ad Kc Ks"),
    ],
)
def test_the_better_hand_is_first(better: str, worse: str) -> None:
    assert [row[::2] for row in showdown("poker", worse, better)] == [[2, True], [1, False]]


def test_the_best_five_of_hand_and_board_count() -> None:
    found = showdown("poker", "As Ah", "4h Jd", "", "9s 9h", board=BOARD)
    assert found == [
        [2, "full house", True], [1, "two pair", False], [4, "two pair", False],
        [3, None, False],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hand", "five"),
    [
        ("As Jc", "Jc Jh 4d 4c As"),
        ("4h 4s", "4h 4s 4d 4c Jh"),
    ],
)
def test_the_five_begin_with_the_rank_of_which_there_are_most(hand: str, five: str) -> None:
    board = [{"card": code} for code in BOARD.split()]
    stacks = {"hand:1": [{"card": code} for code in hand.split()]}
    found = run_module(f"""
        import {{ handsOf }} from {json.dumps(SHOWDOWN)};
        const [first] = handsOf("poker", {json.dumps(stacks)}, {json.dumps(board)});
        console.log(JSON.stringify(first.five.map(({{ card }}) => card)));
    """)
    assert found == five.split()


def test_players_share_the_best_hand() -> None:
    board = "Ts Jh Qd Kc As"
    found = showdown("poker", "2h 3h", "4h 5h", board=board)
    assert found == [[1, "straight", True], [2, "straight", True]]


def test_of_an_omaha_hand_two_cards_count() -> None:
    board = "Ts Js Qs 2s 3d"
    found = showdown("omaha", "As 4h 5h 6h", "Th Td 9c 7c", board=board)
    assert found == [[2, "three", True], [1, "high card", False]]


@pytest.mark.parametrize(
    ("hands", "board", "best"),
    [
        (("As Ah", "", ""), "", [1]),  # the others folded
        (("As Ah", "Ks Kh", ""), "2c 3c 4c", []),  # the board is not complete
        (("As Ah", "Ks Kh"), "", []),
        (("As Ah 2c 2d X", "Ks Kh 3c 3d 4s"), "", []),  # a card of another kind
    ],
)
def test_no_hand_is_the_best_of_too_few_cards(
    hands: tuple[str, ...], board: str, best: list[int]
) -> None:
    found = showdown("poker", *hands, board=board)
    assert [seat for seat, kind, is_best in found if is_best] == best
    assert {kind for _, kind, _ in found} == {None}


@pytest.mark.parametrize(
    ("name", "rules"), [("holdem", "poker"), ("omaha", "omaha"), ("five-card-draw", "poker")]
)
def test_the_games_of_poker_say_by_which_rules(name: str, rules: str) -> None:
    _, games = shipped()
    assert games[name]["result"] == {"of": rules}
