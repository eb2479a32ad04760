"""A shuffle waits for its players, but not for ever, and not for who has left."""

from __future__ import annotations

from dealer.errors import (
    EntropyOutOfTurn,
    NotYourSeat,
)
from dealer.game.commands import (
    Actor,
    CommitEntropy,
    LeaveSeat,
    PassTime,
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


def fresh(play, **asked):
    return play(**({"entropy": "players", "shuffled": False} | asked))


def voided(play, **asked):
    """Both seats committed, seat 2 did not reveal: shuffle 0 is void and shuffle 1 has begun."""
    game = fresh(play, **asked)
    game.do(SHUFFLE)
    for seat in sorted(game.table.seats):
        game.do(game.commit(seat))
    game.do(game.reveal(1))
    game.now += 2_000
    game.do(PassTime(game.now))
    return game


# Time


def test_time_closes_the_digests_on_its_millisecond_and_not_before(play):
    game = fresh(play)
    game.do(SHUFFLE)
    assert game.do(PassTime(game.now + 999)) == []
    assert game.do(PassTime(game.now + 1_000)) == [EntropyClosed(1, 0)]


def test_nobody_committed_is_a_shuffle_with_nobodys_bytes(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.do(PassTime(game.now + 1_000))
    assert game.round.shuffle.ready()
    assert game.do(game.finish())[-1].slots


def test_time_voids_a_shuffle_that_somebody_withheld_and_starts_the_next(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.now += 500  # the reveals' time runs from the close, not from the start
    for seat in (1, 2):
        game.do(game.commit(seat))
    game.do(game.reveal(1))
    assert game.do(PassTime(game.now + 1_999)) == []
    again = ShuffleStarted(1, 1, "deck", 8, "backward", 7)
    assert game.do(PassTime(game.now + 2_000)) == [ShuffleVoided(1, 0), again]
    assert game.round.withheld == {2}
    assert game.round.shuffle.digests == {}


def test_who_withheld_brings_no_entropy_for_the_rest_of_the_round(play):
    game = voided(play)
    game.refuses(game.commit(2), EntropyOutOfTurn, "withheld a reveal")
    commit = game.commit(1)
    assert game.do(commit) == [EntropyCommitted(1, 1, 1, commit.digest), EntropyClosed(1, 1)]
    game.settle()
    game.refuses(game.commit(2), EntropyOutOfTurn, "withheld a reveal")
    game.do(game.commit(1))
    assert EntropyClosed(1, 2) in game.do(SHUFFLE)


def test_the_next_shuffle_wants_fresh_bytes(play):
    game = voided(play)
    game.refuses(CommitEntropy(ONE, 1, 0, b"d" * 32), EntropyOutOfTurn, "shuffle 1")
    assert game.round.shuffle.nonces == {}


def test_everybody_withheld_leaves_the_house_alone(play):
    game = fresh(play)
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    again = ShuffleStarted(1, 1, "deck", 8, "backward", 7)
    then = game.do(PassTime(game.now + 2_000))
    assert then == [ShuffleVoided(1, 0), again, EntropyClosed(1, 1)]


def test_time_passes_over_a_shuffle_that_has_all_it_needs(play):
    game = fresh(play)
    assert game.do(PassTime(10**12)) == []
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    for seat in (1, 2):
        game.do(game.reveal(seat))
    assert game.do(PassTime(10**12)) == []


# Coming and going


def test_who_leaves_before_the_close_is_not_waited_for(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.do(game.commit(1))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2), EntropyClosed(1, 0)]


def test_leaving_drops_the_digest(play):
    game = fresh(play, seats=3)
    game.do(game.commit(1))
    game.do(LeaveSeat(ONE))
    assert game.round.ahead == {}
    game.do(SHUFFLE)
    game.do(game.commit(2))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2)]
    game.do(TakeSeat("again", 2))
    assert game.do(game.commit(2))
    assert set(game.round.shuffle.digests) == {2}


def test_the_last_to_leave_closes(play):
    game = fresh(play, seats=1)
    game.do(SHUFFLE)
    assert game.do(LeaveSeat(ONE)) == [SeatLeft(1), EntropyClosed(1, 0)]


def test_who_leaves_after_the_close_has_withheld(play):
    game = fresh(play)
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    assert game.do(LeaveSeat(TWO)) == [SeatLeft(2)]
    game.refuses(game.reveal(2), NotYourSeat)
    game.do(game.reveal(1))
    game.now += 2_000
    assert game.do(PassTime(game.now))[0] == ShuffleVoided(1, 0)
    assert game.round.withheld == {2}


def test_who_revealed_and_left_stays_in_the_shuffle(play):
    game = fresh(play)
    game.do(SHUFFLE)
    for seat in (1, 2):
        game.do(game.commit(seat))
    game.do(game.reveal(2))
    game.do(LeaveSeat(TWO))
    game.do(game.reveal(1))
    assert game.round.shuffle.entropy() == [game.nonce(1), game.nonce(2)]


def test_who_sits_down_during_the_digests_is_waited_for(play):
    game = fresh(play, seats=1)
    game.do(SHUFFLE)
    game.do(TakeSeat("late", 2))
    assert len(game.do(game.commit(1))) == 1
    assert game.do(game.commit(2))[-1] == EntropyClosed(1, 0)
