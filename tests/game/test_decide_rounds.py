"""Opening a round with a fresh deck, and closing it."""

from __future__ import annotations

from typing import Any

import pytest

from dealer.errors import BadRequest, NoRound, NotHost, RoundOpen, ShuffleRunning
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    CloseRound,
    CloseTable,
    Cut,
    Draw,
    OpenRound,
    Show,
    StartShuffle,
)
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import RoundClosed, RoundOpened, TableClosed

HOST = Actor(host=True)
ONE = Actor(seat=1)
ROUND = OpenRound(HOST, ("a", "b"), "players", 1_000, 2_000)


def test_a_round_opens_with_its_deck_and_the_houses_commitment(play):
    game = play(opened=False)
    commitment = game.house.commitment
    opened = RoundOpened(1, ("a", "b"), "players", 1_000, 2_000, commitment)
    assert game.do(ROUND) == [opened]
    assert game.stack("deck") == [-1, -2]
    assert [game.round.face(card) for card in game.stack("deck")] == ["a", "b"]


def test_rounds_are_numbered_and_each_has_new_cards(play):
    game = play()
    game.do(Draw(ONE))
    assert game.do(CloseRound(HOST)) == [RoundClosed(1, game.house.secret)]
    assert game.table.round is None
    assert game.do(ROUND)[0].round == 2
    assert game.round.stacks == {"deck": [-1, -2]}
    assert game.round.k == 0


def test_only_one_round_is_open(play):
    play().refuses(ROUND, RoundOpen, "Round 1 is open")


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        ({"deck": ()}, "1 to 1024 cards"),
        ({"deck": ("a", "a")}, "distinct"),
        ({"entropy": "dice"}, "players or house"),
        ({"commit_ms": 99}, "commit_ms is 100 to 3600000"),
        ({"reveal_ms": 3_600_001}, "reveal_ms is 100 to 3600000"),
    ],
)
def test_an_invalid_round_is_refused(play, change, saying):
    valid: dict[str, Any] = {
        "deck": ("a",),
        "entropy": "house",
        "commit_ms": 100,
        "reveal_ms": 3_600_000,
    }
    game = play(opened=False)
    game.refuses(OpenRound(HOST, **(valid | change)), BadRequest, saying)
    assert game.do(OpenRound(HOST, **valid))


def test_between_rounds_commands_on_cards_are_refused(play):
    game = play(opened=False)
    for command in (Draw(ONE), Cut(HOST, 0), Show(HOST, "deck"), StartShuffle(HOST)):
        game.refuses(command, NoRound, "No round is open")
    game.refuses(CloseRound(HOST), NoRound)
    assert game.do(CheckDeadlines(10**9)) == []


def test_a_round_is_not_closed_during_a_shuffle(play):
    game = play(entropy="players")
    game.do(StartShuffle(HOST))
    game.refuses(CloseRound(HOST), ShuffleRunning)
    game.refuses(CloseTable(HOST), ShuffleRunning)
    game.settle()
    assert game.do(CloseRound(HOST))


def test_closing_a_table_closes_its_round(play):
    secret = RoundClosed(1, play().house.secret)
    assert play().do(CloseTable(HOST)) == [secret, TableClosed()]
    game = play(opened=False)
    assert game.do(CloseTable(HOST)) == [TableClosed()]
    assert game.table.closed


def test_only_the_host_opens_and_closes(play):
    game = play()
    game.refuses(CloseRound(ONE), NotHost, "only the host to close")
    game.refuses(CloseTable(ONE), NotHost)
    game.do(CloseRound(HOST))
    game.refuses(OpenRound(ONE, ("a",), "house", 100, 100), NotHost, "only the host to open")


def test_between_rounds_the_house_has_no_secret():
    house = NoRoundSecrets()
    for ask in (
        lambda: house.secret,
        lambda: house.commitment,
        lambda: house.slot_salt(0),
        lambda: house.slot_commitments(0, ["a"]),
        lambda: house.player_digest(k=0, seat=1, nonce=b""),
    ):
        with pytest.raises(NoRound):
            ask()
