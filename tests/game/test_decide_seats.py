"""Opening a table, taking and leaving seats."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadRequest,
    NameTaken,
    NotEntitled,
    NotHost,
    NotYourSeat,
    SeatOccupied,
    TableFull,
    TableIsClosed,
    UnknownTable,
    VersionConflict,
)
from dealer.game.commands import (
    Actor,
    AddNote,
    CloseTable,
    Cut,
    Draw,
    LeaveSeat,
    OpenTable,
    Show,
    TakeSeat,
    TransferHost,
    VacateSeat,
)
from dealer.game.events import (
    HostTransferred,
    NoteAdded,
    SeatLeft,
    SeatTaken,
    SeatVacated,
    TableOpened,
)
from dealer.game.rules import Rules
from dealer.game.state import evolve

HOST = Actor(host=True)
ONE, TWO = Actor(seat=1), Actor(seat=2)
SERVICE = Actor(service=True)
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
        ({"commit_ms": 99}, "'commit_ms' must be 100 to 600000"),
        ({"commit_ms": 600_001}, "'commit_ms' must"),
        ({"reveal_ms": "100"}, "'reveal_ms' must"),
        ({"reveal_ms": True}, "'reveal_ms' must"),
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
    one = play(seats=1, opened=False, rules={"seats": 1})
    one.refuses(TakeSeat("ann"), TableFull, "The one seat of this table is taken")


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "\x7f", "\ud800", "\x00"])
def test_a_name_is_short_and_printable(play, name):
    play(opened=False).refuses(TakeSeat(name), BadRequest, "A name has 1 to 64")


@pytest.mark.parametrize("name", ["x" * 64, "Ann Ö", "🂡", "a'\"\\b"])
def test_other_names_are_valid(play, name):
    assert play(opened=False).do(TakeSeat(name)) == [SeatTaken(3, name)]


@pytest.mark.parametrize("name", ["Änne B", "ÄNNE b", "  Änne   B ", "A\u0308nne\u2003B"])
def test_a_seated_players_name_is_taken_until_the_seat_is_left(play, name):
    game = play(opened=False)
    game.do(TakeSeat("Änne B"))
    game.refuses(TakeSeat(name), NameTaken, "choose another one")
    assert game.do(TakeSeat("Anne B")) == [SeatTaken(4, "Anne B")]
    game.do(LeaveSeat(Actor(seat=3)))
    assert game.do(TakeSeat(name)) == [SeatTaken(3, name)]


def test_a_log_with_a_name_twice_still_loads(play):
    game = play(opened=False)
    for seat in (3, 4):
        evolve(game.table, SeatTaken(seat, "Ann"), at=0)
    assert game.table.seats[4].name == "Ann"
    game.refuses(TakeSeat("ann"), NameTaken)


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


# Removing a player, and another host


@pytest.mark.parametrize(("actor", "by"), [(HOST, "host"), (SERVICE, "service")])
def test_the_host_and_a_service_remove_a_player(play, actor, by):
    game = play()
    game.do(Draw(ONE))
    hand = game.stack("hand:1")
    assert game.do(VacateSeat(actor, 1, "away")) == [SeatVacated(1, by, "away")]
    assert 1 not in game.table.seats
    assert game.stack("hand:1") == hand
    game.refuses(Draw(ONE), NotYourSeat)
    game.refuses(VacateSeat(actor, 1), BadRequest, "Seat 1 is not taken")


def test_a_player_removes_no_other_player(play):
    play().refuses(VacateSeat(ONE, 2), NotHost, "Only the host may remove a player")


@pytest.mark.parametrize("reason", ["x" * 257, "\u00e9" * 129, "two\nlines"])
def test_a_reason_is_short_and_on_one_line(play, reason):
    play().refuses(VacateSeat(HOST, 1, reason), BadRequest, "A reason has at most 256 bytes")


def test_the_new_host_acts_in_place_of_the_old_one(play):
    game = play()
    cut = {"preset": "dealer"}
    game.table.rules = Rules.check(cut)
    game.refuses(Cut(ONE, 1), NotHost)
    assert game.do(TransferHost(HOST, 1)) == [HostTransferred(1)]
    game.refuses(Cut(HOST, 1), NotHost)
    game.refuses(Cut(TWO, 1), NotHost)
    assert game.do(Cut(ONE, 1))
    assert game.do(TransferHost(ONE, 2)) == [HostTransferred(2)]
    assert game.do(Cut(TWO, 1))
    game.refuses(TransferHost(TWO, 9), BadRequest, "Seat 9 is not taken")


@pytest.mark.parametrize("leave", [LeaveSeat(ONE), VacateSeat(SERVICE, 1)])
def test_a_table_whose_host_left_has_its_first_host_again(play, leave):
    """The next player of that seat is not the host."""
    game = play()
    game.do(TransferHost(HOST, 1))
    game.do(leave)
    game.do(TakeSeat("eve", 1))
    game.refuses(VacateSeat(ONE, 2), NotHost)
    assert game.do(VacateSeat(HOST, 1)) == [SeatVacated(1, "host", "")]


# Notes


@pytest.mark.parametrize(("actor", "seat"), [(ONE, 1), (HOST, 0), (SERVICE, 0)])
def test_a_note_is_of_a_seat_or_of_the_host(play, actor, seat):
    game = play()
    before = game.round.stacks
    added = game.do(AddNote(actor, "poker.bet", "5 \u2660"))
    assert added == [NoteAdded(seat, "poker.bet", "5 \u2660")]
    assert game.round.stacks == before


def test_spectators_add_no_notes_and_rules_may_forbid_them(play):
    game = play()
    game.refuses(AddNote(Actor(), "chat", "hello"), NotEntitled, "take a seat")
    game.table.rules = Rules.check({"annotate": "nobody"})
    for actor in (ONE, HOST, SERVICE):
        game.refuses(AddNote(actor, "chat", "hello"), NotEntitled, "do not allow anyone")


@pytest.mark.parametrize("kind", ["", "Chat", "a b", "a" * 65, "chat\n"])
def test_the_kind_of_a_note_is_a_word(play, kind):
    play().refuses(AddNote(ONE, kind, "hello"), BadRequest, "The kind of a note")


@pytest.mark.parametrize("text", ["x" * 2049, "\u00e9" * 1025, "two\nlines", "\x7f"])
def test_a_note_has_no_more_than_2048_bytes(play, text):
    play().refuses(AddNote(ONE, "chat", text), BadRequest, "A note has at most 2048 bytes")
    assert play().do(AddNote(ONE, "chat", "\u00e9" * 1024))
