"""A player moves to another seat: who may, when, and that all follow the player."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dealer.errors import BadRequest, NotHost, NotYourSeat, RoundOpen, SeatOccupied, ShuffleRunning
from dealer.game.commands import (
    Actor,
    AddNote,
    Deal,
    Draw,
    LeaveSeat,
    Move,
    MoveSeat,
    StartShuffle,
    TakeSeat,
    TransferHost,
)
from dealer.game.decide.seats import MOVES_MAX
from dealer.game.events import HostTransferred, NoteAdded, SeatLeft, SeatTaken
from dealer.game.rules import Rules
from dealer.game.state import SeatHolder

HOST, SERVICE = Actor(host=True), Actor(service=True)
ONE, TWO = Actor(seat=1), Actor(seat=2)


def test_a_move_is_three_events_and_keeps_name_key_and_bot(play):
    game = play(seats=1)
    game.do(TakeSeat("bot", 2, b"k" * 32, bot=True))
    assert game.do(MoveSeat(TWO, 5)) == [
        NoteAdded(2, "seat_move", "2-5"), SeatLeft(2), SeatTaken(5, "bot", b"k" * 32, bot=True),
    ]  # fmt: skip


def test_a_player_is_the_same_after_several_moves(play):
    game = play(seats=2)
    first = game.table.holder(2)
    for seat, to in ((2, 4), (4, 3), (3, 2)):
        game.do(MoveSeat(Actor(seat=seat), to))
        now = game.table.holder(to)
        assert game.table.latest(first) == now
        assert game.table.earliest(now) == first
    assert game.table.latest(game.table.holder(1)) == game.table.holder(1)
    game.do(LeaveSeat(TWO))
    assert not game.table.still_seated(game.table.latest(first))
    game.do(TakeSeat("another", 2))
    assert not game.table.still_seated(game.table.latest(first))


def test_each_holder_that_a_player_was_is_known_until_the_player_leaves(play):
    game = play(seats=2)
    seats = [2, 3, 4, 2, 5]
    holders = [game.table.holder(2)]
    for seat, to in pairwise(seats):
        game.do(MoveSeat(Actor(seat=seat), to))
        holders.append(game.table.holder(to))
    assert {game.table.latest(holder) for holder in holders} == {holders[-1]}
    assert game.table.earliest(holders[-1]) == holders[0]
    game.do(LeaveSeat(Actor(seat=5)))
    assert game.table.moved == {}


def test_a_player_moves_so_often_and_no_oftener(play):
    game = play(seats=2)
    seats = [2, 3] * MOVES_MAX
    for seat, to in pairwise(seats[: MOVES_MAX + 1]):
        game.do(MoveSeat(Actor(seat=seat), to))
    assert len(game.table.moved) == MOVES_MAX
    game.refuses(MoveSeat(TWO, 3), BadRequest, "leave the seat")
    game.do(LeaveSeat(TWO))
    game.do(TakeSeat("again", 2))
    assert game.do(MoveSeat(TWO, 3))


def test_the_rules_may_keep_players_in_their_seats(play):
    game = play(seats=2)
    game.table.rules = Rules.check({"move_seat": "host"})
    game.refuses(MoveSeat(TWO, 3), NotHost, "only the host")


def test_a_player_who_withheld_random_bytes_keeps_the_seat_for_the_round(play):
    game = play(seats=2)
    game.round.withheld.add(2)
    game.refuses(MoveSeat(TWO, 3), RoundOpen, "withheld")


def test_a_seat_that_another_player_takes_is_not_that_of_one_who_moved_away(play):
    game = play(seats=2)
    first = game.table.holder(2)
    game.do(MoveSeat(TWO, 3))
    game.do(TakeSeat("late", 2))
    assert game.table.latest(first).seat == 3
    assert game.table.earliest(game.table.holder(2)) == game.table.holder(2)


def test_a_host_who_moves_stays_host(play):
    game = play(seats=3)
    game.do(TransferHost(HOST, 2))
    assert game.do(MoveSeat(TWO, 4))[3:] == [HostTransferred(4)]
    assert game.do(MoveSeat(Actor(seat=3), 2))[3:] == []
    assert game.table.host_seat == 4


def test_cards_before_the_player_and_shuffles_prevent_a_move(play):
    game = play(seats=2)
    game.do(Deal(HOST, 1))
    game.refuses(MoveSeat(TWO, 3), RoundOpen, "cards on this seat")
    slots = tuple(game.round.cards("hand:2"))
    game.do(Move(TWO, "play", "hand:2", "pile:won:2", slots))
    game.refuses(MoveSeat(TWO, 3), RoundOpen, "cards on this seat")
    game.do(Move(TWO, "pile", "pile:won:2", "pile:x", slots))
    game.do(StartShuffle(HOST, "deck", "backward", None))
    game.refuses(MoveSeat(TWO, 3), ShuffleRunning)
    game.settle()
    assert len(game.do(MoveSeat(TWO, 3))) == 3
    assert game.decide(Draw(Actor(seat=3)))


def test_a_digest_that_was_sent_ahead_is_dropped_as_by_leaving(play):
    game = play(seats=2, entropy="players")
    game.do(game.commit(2))
    game.do(MoveSeat(TWO, 3))
    assert 2 not in game.round.early_digests
    game.do(game.commit(3))
    game.shuffle()
    assert game.round.k == 2
    assert game.round.withheld == set()


def test_only_free_seats_of_the_table(play):
    game = play(seats=2)
    game.refuses(MoveSeat(TWO, 1), SeatOccupied)
    game.refuses(MoveSeat(TWO, 2), SeatOccupied)
    for seat in (0, 99):
        game.refuses(MoveSeat(TWO, seat), BadRequest, "has the seats 1 to")
    game.refuses(MoveSeat(Actor(), 3), NotYourSeat)


@pytest.mark.parametrize(("actor", "author"), [(HOST, 0), (SERVICE, 0), (Actor(True, 1), 1)])
def test_the_host_asks_another_player_by_a_note(play, actor, author):
    game = play(seats=2)
    asked = game.do(MoveSeat(actor, 3, seat=2))
    assert asked == [NoteAdded(author, "seat_offer", "2-3")]
    assert set(game.table.seats) == {1, 2}
    game.refuses(MoveSeat(actor, 3, seat=7), BadRequest, "not taken")
    game.refuses(MoveSeat(actor, 1, seat=2), SeatOccupied)


def test_another_player_may_not_ask_nor_write_such_notes(play):
    game = play(seats=3)
    game.refuses(MoveSeat(ONE, 4, seat=2), NotHost)
    for kind in ("seat_move", "seat_offer"):
        game.refuses(AddNote(TWO, kind, "2-3"), BadRequest, "by seat.move")


def test_a_note_of_an_earlier_release_moves_no_player(play):
    game = play(seats=2)
    for seat, text in ((2, "1-3"), (2, "2"), (0, "2-3"), (5, "5-6")):
        game.take(NoteAdded(seat, "seat_move", text))
    assert game.table.moved == {}
    game.take(NoteAdded(2, "seat_move", "2-3"))
    game.take(SeatLeft(2))
    assert not game.table.still_seated(game.table.latest(SeatHolder(2, 3)))
