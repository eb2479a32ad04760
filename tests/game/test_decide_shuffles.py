"""Entropy from everyone, swaps from the tape, a new slot for every place."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadRequest,
    DeckEmpty,
    EntropyMismatch,
    EntropyOutOfTurn,
    NoRound,
    NoShuffle,
    NotSealed,
    NotYourSeat,
    ShuffleRunning,
)
from dealer.game.commands import (
    Actor,
    CommitEntropy,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    FinishShuffle,
    LeaveSeat,
    Move,
    PassTime,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.game.decide.shuffles import deadline
from dealer.game.events import (
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    SeatLeft,
    ShuffleStarted,
    ShuffleVoided,
)
from dealer.game.shuffle import steps_of
from dealer.game.tape import Tape

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


# Starting


def test_a_shuffle_starts_and_waits_for_the_players(play):
    game = fresh(play)
    assert game.do(SHUFFLE) == [STARTED]
    assert deadline(game.round) == game.now + 1_000


def test_the_houses_entropy_alone_waits_for_nobody(play):
    game = play(shuffled=False)
    assert game.do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]
    assert deadline(game.round) is None


def test_nobody_at_the_table_is_nobody_to_wait_for(play):
    assert fresh(play, seats=0).do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]


def test_digests_may_come_ahead_and_close_at_once(play):
    game = fresh(play)
    for seat in (2, 1):
        commit = game.commit(seat)
        assert game.do(commit) == [EntropyCommitted(1, 0, seat, commit.digest)]
    ahead = dict(game.round.ahead)
    assert game.do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]
    assert game.round.shuffle.digests == ahead
    assert game.round.ahead == {}
    assert game.round.shuffle.closed_version == game.table.version


def test_parameters_are_fixed_when_it_starts(play):
    game = fresh(play)
    forward = StartShuffle(HOST, algorithm="forward")
    assert game.decide(forward) == [ShuffleStarted(1, 0, "deck", 8, "forward", 7)]
    partial = StartShuffle(HOST, steps=3)
    assert game.decide(partial) == [ShuffleStarted(1, 0, "deck", 8, "backward", 3)]


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (StartShuffle(HOST, "hand:1"), BadRequest, "no hand can"),
        (StartShuffle(HOST, "heap"), BadRequest, "deck or pile"),
        (StartShuffle(HOST, "pile:none"), DeckEmpty, "no card to shuffle"),
        (StartShuffle(HOST, algorithm="riffle"), BadRequest, "backward or forward"),
        (StartShuffle(HOST, steps=8), BadRequest, "0 to 7 steps"),
        (StartShuffle(HOST, steps=-1), BadRequest, "0 to 7 steps"),
        (StartShuffle(HOST, algorithm="forward", steps=3), BadRequest, "takes all its steps"),
        (DrawAtRandom(ONE, 9), DeckEmpty, "draw 1 to 8"),
        (DrawAtRandom(ONE, 0), DeckEmpty, "draw 1 to 8"),
        (DrawAtRandom(ONE, source="hand:1"), BadRequest, "no hand can"),
        (DrawAtRandom(HOST), NotYourSeat, "no seat"),
    ],
)
def test_a_shuffle_that_cannot_be_is_refused(play, command, refusal, saying):
    fresh(play).refuses(command, refusal, saying)


def test_until_the_seal_no_card_moves_or_is_shown(play):
    game = play(entropy="players")
    game.do(Draw(ONE))
    game.do(SHUFFLE)
    for command in (
        SHUFFLE,
        DrawAtRandom(ONE),
        Draw(ONE),
        Deal(HOST, 1),
        Cut(HOST, 1),
        Show(ONE, "hand:1"),
        Show(HOST, "deck", to=1),
        Move(ONE, "discard", "hand:1", "pile:discard"),
    ):
        game.refuses(command, ShuffleRunning, "wait for DeckSealed")


# Digests


def test_the_last_digest_closes(play):
    game = fresh(play)
    game.do(SHUFFLE)
    first, second = game.commit(2), game.commit(1)
    assert game.do(first) == [EntropyCommitted(1, 0, 2, first.digest)]
    assert game.do(second) == [EntropyCommitted(1, 0, 1, second.digest), EntropyClosed(1, 0)]


def test_a_digest_comes_once_for_a_shuffle(play):
    game = fresh(play)
    game.do(game.commit(1))
    game.refuses(game.commit(1), EntropyOutOfTurn, "has sent its digest")
    game.do(SHUFFLE)
    game.refuses(game.commit(1), EntropyOutOfTurn, "has sent its digest")


def test_a_digest_after_the_close_is_refused(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.now += 1_000
    assert game.do(PassTime(game.now)) == [EntropyClosed(1, 0)]
    game.refuses(game.commit(2), EntropyOutOfTurn, "digests of this shuffle are closed")
    game.do(game.reveal(1))
    assert game.round.shuffle.ready()
    assert game.round.shuffle.entropy() == [game.nonce(1)]


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (CommitEntropy(ONE, 1, 1, b"d" * 32), EntropyOutOfTurn, "round 1, shuffle 0, and no other"),
        (CommitEntropy(ONE, 2, 0, b"d" * 32), EntropyOutOfTurn, "round 1, shuffle 0, and no other"),
        (CommitEntropy(ONE, 1, 0, b"d" * 31), BadRequest, "32 bytes"),
        (CommitEntropy(THREE, 1, 0, b"d" * 32), NotYourSeat, "no seat"),
        (CommitEntropy(HOST, 1, 0, b"d" * 32), NotYourSeat, "no seat"),
    ],
)
def test_a_digest_that_fits_no_shuffle_is_refused(play, command, refusal, saying):
    fresh(play).refuses(command, refusal, saying)


def test_no_digest_is_taken_where_none_counts(play):
    play().refuses(CommitEntropy(ONE, 1, 1, b"d" * 32), EntropyOutOfTurn, "house's entropy alone")
    play(opened=False).refuses(CommitEntropy(ONE, 1, 0, b"d" * 32), NoRound)


# Reveals


def test_reveals_make_the_shuffle_ready_in_order_of_seats(play):
    game = fresh(play, seats=10)
    game.do(SHUFFLE)
    for seat in range(10, 0, -1):
        game.do(game.commit(seat))
    for seat in (10, 2, 1, 3, 4, 5, 6, 7, 9):
        assert game.do(game.reveal(seat)) == [EntropyRevealed(1, 0, seat, game.nonce(seat))]
    game.refuses(game.finish(), NoShuffle, "still awaited")
    game.do(game.reveal(8))
    assert game.round.shuffle.entropy() == [game.nonce(seat) for seat in range(1, 11)]


def test_a_reveal_before_c1_is_refused(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.refuses(game.reveal(1), EntropyOutOfTurn, "when EntropyClosed has come")


def test_a_reveal_opens_its_own_digest_only(play):
    game = fresh(play)
    game.do(SHUFFLE)
    game.do(game.commit(1))
    copied = CommitEntropy(TWO, 1, 0, game.round.shuffle.digests[1])
    game.do(copied)
    game.refuses(RevealEntropy(ONE, 1, 0, b"x" * 32), EntropyMismatch, "do not open")
    game.refuses(RevealEntropy(ONE, 1, 0, b""), EntropyMismatch, "do not open")
    game.do(game.reveal(1))
    game.refuses(RevealEntropy(TWO, 1, 0, game.nonce(1)), EntropyMismatch, "do not open")


def test_a_reveal_of_another_length_is_refused_even_if_it_opens_the_digest(play):
    game = fresh(play, seats=1)
    digest = game.house.player_digest(k=0, seat=1, nonce=b"short")
    game.do(SHUFFLE)
    game.do(CommitEntropy(ONE, 1, 0, digest))
    game.refuses(RevealEntropy(ONE, 1, 0, b"short"), EntropyMismatch)


def test_a_reveal_nobody_awaits_is_refused(play):
    game = fresh(play, seats=3)
    game.refuses(game.reveal(1), NoShuffle, "No shuffle is running")
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.do(game.commit(3))
    game.now += 1_000
    game.do(PassTime(game.now))
    game.do(game.reveal(1))
    game.refuses(game.reveal(1), EntropyOutOfTurn, "No reveal is awaited")
    game.refuses(game.reveal(2), EntropyOutOfTurn, "No reveal is awaited")
    game.refuses(RevealEntropy(THREE, 1, 1, game.nonce(3)), EntropyOutOfTurn, "and no other")
    game.refuses(RevealEntropy(THREE, 2, 0, game.nonce(3)), EntropyOutOfTurn, "and no other")
    game.refuses(RevealEntropy(HOST, 1, 0, game.nonce(3)), NotYourSeat)


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


# The tape carried out, and the seal


@pytest.mark.parametrize(
    ("algorithm", "steps"), [("backward", 7), ("backward", 3), ("backward", 0), ("forward", 7)]
)
def test_the_house_carries_out_the_tape(play, algorithm, steps):
    game = fresh(play)
    game.do(StartShuffle(HOST, "deck", algorithm, steps))
    for seat in (2, 1):
        game.do(game.commit(seat))
    for seat in (2, 1):
        game.do(game.reveal(seat))
    tape = Tape(
        secret=game.house.secret,
        nonces=[game.nonce(1), game.nonce(2)],
        root=b"R" * 32,
        k=0,
        n=8,
    )
    order = list("abcdefgh")
    swaps = []
    for step, i, j in steps_of(algorithm, n=8, steps=steps, below=tape.below):
        order[i], order[j] = order[j], order[i]
        swaps.append(CardsSwapped(1, 0, step, i, j))
    sealed = DeckSealed(1, 0, 0, tuple(game.house.slot_commitments(0, order)))
    assert game.do(FinishShuffle(b"R" * 32)) == [*swaps, sealed]
    assert game.stack("deck") == list(range(8))
    assert [game.card(slot) for slot in range(8)] == order
    assert game.round.commitment_of(3) == sealed.slots[3]
    assert game.round.k == 1
    assert game.round.shuffle is None


def test_a_shuffle_is_finished_once(play):
    play().refuses(FinishShuffle(b"R" * 32), NoShuffle, "No shuffle is running")


def test_every_seal_gives_new_slots(play):
    """Nobody follows a known card through a reshuffle, not even one that was turned up."""
    game = play()
    game.do(Draw(ONE))
    game.do(Show(HOST, "deck"))
    game.do(Show(HOST, "deck", (0,), to=2))
    held = game.stack("hand:1")
    start, *_ = game.decide(SHUFFLE)
    assert (start.k, start.n) == (1, 7)
    before = [game.card(slot) for slot in game.stack("deck")]
    game.shuffle()
    assert game.stack("deck") == list(range(8, 15))
    assert sorted(game.card(slot) for slot in range(8, 15)) == sorted(before)
    assert not any(game.round.sees(seat, s) for seat in (1, 2) for s in (0, 6, *range(8, 15)))
    assert game.stack("hand:1") == held
    assert game.round.sees(1, held[0])


def test_a_pile_is_shuffled_alone(play):
    game = play()
    game.do(Move(HOST, "burn", "deck", "pile:burn", count=3))
    deck = game.stack("deck")
    assert game.decide(StartShuffle(HOST, "pile:burn"))[0].n == 3
    game.shuffle("pile:burn")
    assert game.stack("pile:burn") == [8, 9, 10]
    assert game.stack("deck") == deck


# Partial shuffles: what they did not reach may not be drawn


def test_only_what_a_partial_shuffle_reached_may_be_drawn(play):
    game = play(steps=3)
    game.refuses(Draw(ONE, 4), NotSealed, "did not reach")
    game.refuses(Draw(ONE, where="bottom"), NotSealed, "did not reach")
    game.refuses(Draw(ONE, cards=(4,)), NotSealed, "did not reach")
    game.refuses(Deal(HOST, 2), NotSealed, "did not reach")
    assert [event.slot for event in game.do(Draw(ONE, 3))] == [7, 6, 5]
    game.refuses(Draw(ONE), NotSealed)


def test_a_card_that_was_not_reached_does_not_get_to_a_hand_by_a_pile(play):
    game = play(steps=2)
    game.do(Move(HOST, "pile", "deck", "pile:x", cards=(0, 7)))
    game.refuses(Draw(ONE, source="pile:x", cards=(0,)), NotSealed)
    game.refuses(Move(ONE, "pile", "pile:x", "hand:1", cards=(0,)), NotSealed)
    game.refuses(Move(ONE, "pile", "pile:x", "hand:2", cards=(7, 0)), NotSealed)
    assert game.do(Draw(ONE, source="pile:x", cards=(7,)))


def test_a_full_shuffle_mends_a_partial_one(play):
    game = play(steps=2)
    game.shuffle()
    assert len(game.do(Draw(ONE, 8))) == 8


def test_a_partial_shuffle_of_a_mixed_deck_leaves_all_drawable(play):
    game = play()
    game.shuffle(steps=1)
    assert len(game.do(Draw(ONE, 8))) == 8


def test_a_partial_shuffle_of_a_deck_that_is_mixed_in_part_reaches_its_own_steps(play):
    game = play(steps=3)
    game.shuffle(steps=2)
    game.refuses(Draw(ONE, 3), NotSealed)
    assert game.do(Draw(ONE, 2))


def test_one_card_is_mixed_by_no_step(play):
    game = play(deck="a", steps=0)
    assert game.do(Draw(ONE))


def test_drawing_at_random_is_a_partial_shuffle(play):
    game = play(shuffled=False)
    started = ShuffleStarted(1, 0, "deck", 8, "backward", 2)
    assert game.do(DrawAtRandom(ONE, 2)) == [started, EntropyClosed(1, 0)]
    game.settle()
    assert [event.slot for event in game.do(Draw(ONE, 2))] == [7, 6]
    game.refuses(Draw(ONE), NotSealed)


def test_drawing_all_at_random_takes_one_step_less(play):
    assert play(shuffled=False).decide(DrawAtRandom(ONE, 8))[0].steps == 7


def test_a_pile_is_drawn_from_at_random(play):
    game = play()
    game.do(Move(HOST, "pile", "deck", "pile:x", count=4))
    started = game.decide(DrawAtRandom(ONE, 1, "pile:x"))[0]
    assert started == ShuffleStarted(1, 1, "pile:x", 4, "backward", 1)
