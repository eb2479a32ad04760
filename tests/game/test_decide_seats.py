"""Opening a table, taking and leaving seats."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadRequest,
    NotYourSeat,
    SeatOccupied,
    TableFull,
    TableIsClosed,
    UnknownTable,
    VersionConflict,
)
from dealer.game.commands import Actor, CloseTable, Draw, LeaveSeat, OpenTable, Show, TakeSeat
from dealer.game.events import SeatLeft, SeatTaken, TableOpened

HOST = Actor(host=True)
ONE = Actor(seat=1)
KEY = b"k" * 32


def test_a_table_opens_with_its_rules(play):
    game = play(seats=0, opened=False)
    game.table.version = 0
    opened = game.decide(OpenTable("origin", KEY, {"preset": "dealer", "house": "rule"}))
    assert opened == [TableOpened("origin", KEY, {"preset": "dealer", "house": "rule"})]


def test_a_table_cannot_be_opened_twice(play):
    play(seats=0, opened=False).refuses(
        OpenTable("origin", KEY, {}), VersionConflict, "exists already"
    )


@pytest.mark.parametrize(
    ("rules", "saying"),
    [
        ({"draw": "dogs"}, "'draw' must be one of host, players, nobody"),
        ({"draw": ["host"]}, "'draw' must be one of"),
        ({"preset": "fancy"}, "preset must be one of"),
        ({"preset": ["free"]}, "preset must be one of"),
        ({"preset": 3}, "preset must be one of"),
        ({"seats": 0}, "1 to 100 seats"),
        ({"seats": 101}, "1 to 100 seats"),
        ({"seats": True}, "1 to 100 seats"),
        ({"seats": "4"}, "1 to 100 seats"),
        ({"join": "friends"}, "'join'"),
        ({"watch": "friends"}, "'watch'"),
    ],
)
def test_invalid_rules_are_refused(play, rules, saying):
    game = play(seats=0, opened=False)
    game.table.version = 0
    game.refuses(OpenTable("origin", KEY, rules), BadRequest, saying)


def test_commands_to_an_unknown_table_are_refused(play):
    game = play(seats=0, opened=False)
    game.table.version = 0
    game.refuses(Draw(ONE), UnknownTable, "no such table")


def test_commands_to_a_closed_table_are_refused(play):
    game = play(opened=False)
    game.do(CloseTable(HOST))
    game.refuses(TakeSeat("late"), TableIsClosed, "stays closed")
    game.refuses(LeaveSeat(ONE), TableIsClosed)


def test_the_lowest_free_seat_is_taken_if_none_is_named(play):
    game = play(seats=3, opened=False)
    game.do(LeaveSeat(Actor(seat=2)))
    assert game.do(TakeSeat("ann", key=KEY)) == [SeatTaken(2, "ann", KEY)]
    assert game.do(TakeSeat("bob")) == [SeatTaken(4, "bob")]
    assert game.table.seats[2].taken_at == game.table.version - 1


def test_a_seat_may_be_chosen(play):
    assert play(opened=False).do(TakeSeat("ann", 10)) == [SeatTaken(10, "ann")]


def test_a_taken_seat_is_refused(play):
    play(opened=False).refuses(TakeSeat("ann", 2), SeatOccupied, "Seat 2 is taken")


@pytest.mark.parametrize("seat", [0, -1, 4])
def test_a_seat_outside_the_table_is_refused(play, seat):
    game = play(opened=False, rules={"seats": 3})
    game.refuses(TakeSeat("ann", seat), BadRequest, "seats 1 to 3")


def test_a_full_table_refuses_players(play):
    play(seats=2, opened=False, rules={"seats": 2}).refuses(TakeSeat("ann"), TableFull, "All 2")


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "\x7f", "\ud800", "\x00"])
def test_a_name_is_short_and_printable(play, name):
    play(opened=False).refuses(TakeSeat(name), BadRequest, "A name has 1 to 64")


@pytest.mark.parametrize("name", ["x" * 64, "Ann Ö", "🂡", "a'\"\\b"])
def test_other_names_are_valid(play, name):
    assert play(opened=False).do(TakeSeat(name)) == [SeatTaken(3, name)]


@pytest.mark.parametrize("key", [b"", b"k" * 31, b"k" * 33])
def test_a_players_key_has_32_bytes(play, key):
    play(opened=False).refuses(TakeSeat("ann", key=key), BadRequest, "32 bytes")


def test_only_its_player_leaves_a_seat(play):
    game = play(opened=False)
    assert game.do(LeaveSeat(ONE)) == [SeatLeft(1)]
    game.refuses(LeaveSeat(ONE), NotYourSeat, "no seat")
    game.refuses(LeaveSeat(HOST), NotYourSeat)


def test_a_hand_stays_with_its_seat_and_peeked_cards_do_not(play):
    """The next player at the seat sees its hand, but not the cards that the last one peeked at."""
    game = play()
    game.do(Draw(ONE))
    top = game.stack("deck")[-1]
    game.do(Show(HOST, "deck", to=1))
    assert game.round.sees(1, top)
    hand = game.stack("hand:1")
    game.do(LeaveSeat(ONE))
    assert game.stack("hand:1") == hand
    assert game.round.sees(1, hand[0])
    assert not game.round.sees(1, top)
