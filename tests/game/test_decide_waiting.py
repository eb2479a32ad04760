"""Deadlines of a shuffle, and players who leave during it."""

from __future__ import annotations

from dealer.errors import (
    EntropyOutOfTurn,
    NotYourSeat,
)
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    CloseEntropy,
    CommitEntropy,
    LeaveSeat,
    StartShuffle,
    TakeSeat,
)
from dealer.game.events import (
    EntropyClosed,
    EntropyCommitted,
    SeatLeft,
    ShuffleStarted,
    ShuffleVoided,
)

HOST = Actor(host=True)
ONE, TWO, THREE = (Actor(seat=seat) for seat in (1, 2, 3))
SHUFFLE = StartShuffle(HOST)
STARTED = ShuffleStarted(1, 0, "deck", 8, "backward", 7)


def voided(fresh):
    """Both seats committed, seat 2 did not reveal: shuffle 0 is void and shuffle 1 has begun."""
    game = fresh()
    game.do(SHUFFLE)
    for seat in sorted(game.table.seats):
        game.do(game.commit(seat))
    game.do(game.reveal(1))
    game.now += 2_000
    game.do(CheckDeadlines(game.now))
    return game


# Deadlines


def test_the_deadline_closes_the_digests_at_its_millisecond(fresh):
    game = fresh()
    game.do(SHUFFLE)
    assert game.do(CheckDeadlines(game.now + 999)) == []
    assert game.do(CheckDeadlines(game.now + 1_000)) == [EntropyClosed(1, 0)]


def test_digests_close_early_if_only_absent_players_sent_none(fresh):
    game = fresh()
    game.do(SHUFFLE)
    both = frozenset((seat, player.taken_at) for seat, player in game.table.seats.items())
    two = frozenset(one for one in both if one[0] == 2)
    assert game.do(CloseEntropy(1, 0, two)) == []
    game.do(game.commit(1))
    for nothing in (
        CloseEntropy(1, 0, frozenset()),
        CloseEntropy(1, 0, frozenset([(2, 99)])),
        CloseEntropy(1, 0, both - two),
        CloseEntropy(1, 1, two),
        CloseEntropy(2, 0, two),
    ):
        assert game.do(nothing) == []
    assert game.do(CloseEntropy(1, 0, two)) == [EntropyClosed(1, 0)]
    assert game.do(CloseEntropy(1, 0, two)) == []
    game.do(game.reveal(1))
    assert game.do(game.finish())[-1].slots
    assert game.do(CloseEntropy(1, 1, both)) == []


def test_digests_may_close_without_any(fresh):
    game = fresh()
    game.do(SHUFFLE)
    both = frozenset((seat, player.taken_at) for seat, player in game.table.seats.items())
    assert game.do(CloseEntropy(1, 0, both)) == [EntropyClosed(1, 0)]
    assert game.round.shuffle.ready()


def test_without_digests_the_shuffle_uses_only_the_houses_entropy(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.do(CheckDeadlines(game.now + 1_000))
    assert game.round.shuffle.ready()
    assert game.do(game.finish())[-1].slots


def test_the_deadline_voids_a_shuffle_with_a_withheld_reveal_and_starts_the_next(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.now += 500  # the reveals' time runs from the close, not from the start
    for seat in (1, 2):
        game.do(game.commit(seat))
    game.do(game.reveal(1))
    assert game.do(CheckDeadlines(game.now + 1_999)) == []
    again = ShuffleStarted(1, 1, "deck", 8, "backward", 7)
    assert game.do(CheckDeadlines(game.now + 2_000)) == [ShuffleVoided(1, 0), again]
    assert game.round.withheld == {2}
    assert game.round.shuffle.digests == {}


def test_a_withholding_seat_sends_no_entropy_in_the_rest_of_the_round(fresh):
    game = voided(fresh)
    game.refuses(game.commit(2), EntropyOutOfTurn, "failed to reveal")
    commit = game.commit(1)
    assert game.do(commit) == [EntropyCommitted(1, 1, 1, commit.digest), EntropyClosed(1, 1)]
    game.settle()
    game.refuses(game.commit(2), EntropyOutOfTurn, "failed to reveal")
    game.do(game.commit(1))
    assert EntropyClosed(1, 2) in game.do(SHUFFLE)


def test_the_next_shuffle_needs_new_nonces(fresh):
    game = voided(fresh)
    game.refuses(CommitEntropy(ONE, 1, 0, b"d" * 32), EntropyOutOfTurn, "shuffle 1")
    assert game.round.shuffle.nonces == {}


def test_if_all_seats_withhold_only_the_houses_entropy_is_used(fresh):
    game = fresh()
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    again = ShuffleStarted(1, 1, "deck", 8, "backward", 7)
    then = game.do(CheckDeadlines(game.now + 2_000))
    assert then == [ShuffleVoided(1, 0), again, EntropyClosed(1, 1)]


def test_a_deadline_does_not_affect_a_complete_shuffle(fresh):
    game = fresh()
    assert game.do(CheckDeadlines(10**12)) == []
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    for seat in (1, 2):
        game.do(game.reveal(seat))
    assert game.do(CheckDeadlines(10**12)) == []


# Players who leave or join


def test_a_player_who_leaves_before_the_close_is_not_waited_for(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.do(game.commit(1))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2), EntropyClosed(1, 0)]


def test_leaving_drops_the_digest(fresh):
    game = fresh(seats=3)
    game.do(game.commit(1))
    game.do(LeaveSeat(ONE))
    assert game.round.early_digests == {}
    game.do(SHUFFLE)
    game.do(game.commit(2))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2)]
    game.do(TakeSeat("again", 2))
    assert game.do(game.commit(2))
    assert set(game.round.shuffle.digests) == {2}


def test_the_last_missing_player_closes_the_digests_by_leaving(fresh):
    game = fresh(seats=1)
    game.do(SHUFFLE)
    assert game.do(LeaveSeat(ONE)) == [SeatLeft(1), EntropyClosed(1, 0)]


def test_a_player_who_leaves_after_the_close_has_withheld(fresh):
    game = fresh()
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2)]
    game.refuses(game.reveal(2), NotYourSeat)
    game.do(game.reveal(1))
    game.now += 2_000
    assert game.do(CheckDeadlines(game.now))[0] == ShuffleVoided(1, 0)
    assert game.round.withheld == {2}


def test_the_nonce_of_a_player_who_left_stays_in_the_shuffle(fresh):
    game = fresh()
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    game.do(game.reveal(2))
    game.do(LeaveSeat(TWO))
    game.do(game.reveal(1))
    assert game.round.shuffle.entropy() == [game.nonce(1), game.nonce(2)]


def test_a_player_who_joins_during_the_digests_is_waited_for(fresh):
    game = fresh(seats=1)
    game.do(SHUFFLE)
    game.do(TakeSeat("late", 2))
    assert len(game.do(game.commit(1))) == 1
    assert game.do(game.commit(2))[-1] == EntropyClosed(1, 0)
