"""Who is host after a host has left, and what players may do when another one is absent."""

from __future__ import annotations

import pytest

from dealer.errors import NotHost
from dealer.game.absence import HOST_TOKEN, Absence, minutes
from dealer.game.commands import Actor, Cut, LeaveSeat, TakeSeat, TransferHost, VacateSeat
from dealer.game.events import HostTransferred, SeatLeft, SeatVacated
from dealer.game.rules import Rules
from dealer.game.state import SeatHolder

HOST, SERVICE = Actor(host=True), Actor(service=True)
ONE, TWO, THREE = Actor(seat=1), Actor(seat=2), Actor(seat=3)
OPENER = Actor(host=True, seat=1)
LONG = 120.0


def away(game, *seats: int, seconds: float = 1.0, token: float | None = None, opener=False):
    """The absence of these seats' players, and of the host token's holder for `token` seconds."""
    holders = {SeatHolder(seat, game.table.seats[seat].taken_at): seconds for seat in seats}
    if token is not None:
        holders[HOST_TOKEN] = token
    return Absence(holders, LONG, opener)


def test_the_player_who_sits_longest_follows_a_host_who_leaves(play):
    game = play(seats=3)
    game.do(LeaveSeat(TWO))
    game.do(TakeSeat("late", 2))
    assert game.do(LeaveSeat(OPENER, away(game))) == [SeatLeft(1), HostTransferred(3)]
    assert game.do(LeaveSeat(THREE, away(game))) == [SeatLeft(3), HostTransferred(2)]
    assert game.do(LeaveSeat(TWO, away(game))) == [SeatLeft(2)]
    assert game.table.host_seat is None


def test_a_player_with_a_connection_comes_before_one_who_sits_longer(play):
    game = play(seats=3)
    assert game.decide(LeaveSeat(OPENER, away(game, 2)))[1:] == [HostTransferred(3)]
    assert game.decide(LeaveSeat(OPENER, away(game, 2, 3)))[1:] == [HostTransferred(2)]


def test_a_bot_does_not_become_host(play):
    game = play(seats=3)
    game.table.seats[2].bot = True
    assert game.decide(LeaveSeat(OPENER, away(game, 3)))[1:] == [HostTransferred(3)]
    game.table.seats[3].bot = True
    assert game.decide(LeaveSeat(OPENER, away(game)))[1:] == []


def test_another_player_who_leaves_changes_no_host(play):
    game = play(seats=3)
    assert game.do(LeaveSeat(THREE, away(game))) == [SeatLeft(3)]
    game.do(TransferHost(HOST, 2))
    assert game.do(LeaveSeat(OPENER, away(game))) == [SeatLeft(1)]


def test_the_opener_without_a_seat_is_host_again(play):
    game = play(seats=3)
    game.do(TransferHost(HOST, 1))
    assert game.do(LeaveSeat(ONE, away(game, opener=True))) == [SeatLeft(1)]
    assert game.table.host_seat is None


def test_at_the_table_of_a_service_no_host_follows(play):
    game = play(seats=3)
    game.do(TransferHost(SERVICE, 1))
    assert game.do(LeaveSeat(ONE)) == [SeatLeft(1)]
    game.refuses(VacateSeat(TWO, 3), NotHost, "Only the host may remove a player.$")
    game.refuses(TransferHost(TWO, 2), NotHost, "Only the host may make another player the host.$")


@pytest.mark.parametrize("actor", [SERVICE, ONE, TWO])
def test_another_host_follows_one_who_is_removed(play, actor):
    game = play(seats=3)
    game.do(TransferHost(HOST, 1))
    events = game.do(VacateSeat(actor, 1, "", away(game, 1, seconds=LONG)))
    assert events[1:] == [HostTransferred(2)]
    assert game.table.host_seat == 2


def test_players_free_the_seat_of_one_who_was_away_for_long(play):
    game = play(seats=3)
    soon, due = away(game, 1, seconds=LONG - 0.1), away(game, 1, seconds=301.0)
    game.refuses(VacateSeat(TWO, 1, "", soon), NotHost, "who has been away for 2 minutes")
    game.refuses(VacateSeat(TWO, 3, "", due), NotHost)
    game.refuses(VacateSeat(Actor(), 1, "", due), NotHost)
    game.refuses(VacateSeat(Actor(seat=4), 1, "", due), NotHost)
    hand = game.stack("hand:1")
    freed = game.do(VacateSeat(TWO, 1, "I do not like you", due))
    assert freed == [SeatVacated(1, "service", "away for 5 minutes")]
    assert game.stack("hand:1") == hand


def test_an_absence_is_not_that_of_the_seats_next_player(play):
    game = play(seats=2)
    due = away(game, 1, seconds=LONG)
    game.do(LeaveSeat(ONE))
    game.do(TakeSeat("eve", 1))
    game.refuses(VacateSeat(TWO, 1, "", due), NotHost)


@pytest.mark.parametrize("by_token", [True, False])
def test_a_player_follows_a_host_who_is_away_for_long(play, by_token):
    game = play(seats=3, rules={"cut": "host"})
    if not by_token:
        game.do(TransferHost(HOST, 1))

    def host_away(seconds):
        return away(game, token=seconds) if by_token else away(game, 1, seconds=seconds)

    due = host_away(LONG)
    game.refuses(TransferHost(TWO, 2, host_away(LONG - 1)), NotHost, "away for 2 minutes")
    game.refuses(TransferHost(TWO, 3, due), NotHost)
    game.refuses(TransferHost(Actor(), 2, due), NotHost)
    assert game.do(TransferHost(TWO, 2, due)) == [HostTransferred(2)]
    game.table.rules = Rules.check({"cut": "host"})
    game.refuses(Cut(THREE, 1), NotHost)
    assert game.do(Cut(TWO, 1))
    game.refuses(TransferHost(THREE, 3, due), NotHost)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 second"), (59.9, "59 seconds"), (60, "1 minute"), (179, "2 minutes")],
)
def test_a_time_in_words(seconds, text):
    assert minutes(seconds) == text
