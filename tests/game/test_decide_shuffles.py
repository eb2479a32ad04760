"""Starting a shuffle; digests of the players' nonces, then their reveals."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadRequest,
    DeckEmpty,
    EntropyMismatch,
    EntropyOutOfTurn,
    NoRound,
    NoShuffle,
    NotYourSeat,
    ShuffleRunning,
)
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    CommitEntropy,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    Move,
    RevealEntropy,
    Show,
    StartShuffle,
)
from dealer.game.decide.rounds import deadline
from dealer.game.events import (
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    ShuffleStarted,
)

HOST = Actor(host=True)
ONE, TWO, THREE = (Actor(seat=seat) for seat in (1, 2, 3))
SHUFFLE = StartShuffle(HOST)
STARTED = ShuffleStarted(1, 0, "deck", 8, "backward", 7)


# Starting


def test_a_shuffle_starts_and_waits_for_the_players(fresh):
    game = fresh()
    assert game.do(SHUFFLE) == [STARTED]
    assert deadline(game.round) == game.now + 1_000


def test_a_shuffle_with_only_the_houses_entropy_does_not_wait(play):
    game = play(shuffled=False)
    assert game.do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]
    assert deadline(game.round) is None


def test_an_empty_table_waits_for_no_digest(fresh):
    assert fresh(seats=0).do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]


def test_early_digests_close_the_shuffle_immediately(fresh):
    game = fresh()
    for seat in (2, 1):
        commit = game.commit(seat)
        assert game.do(commit) == [EntropyCommitted(1, 0, seat, commit.digest)]
    ahead = dict(game.round.early_digests)
    assert game.do(SHUFFLE) == [STARTED, EntropyClosed(1, 0)]
    assert game.round.shuffle.digests == ahead
    assert game.round.early_digests == {}
    assert game.round.shuffle.closed_version == game.table.version


def test_the_parameters_of_a_shuffle_are_fixed_at_its_start(fresh):
    game = fresh()
    forward = StartShuffle(HOST, algorithm="forward")
    assert game.decide(forward) == [ShuffleStarted(1, 0, "deck", 8, "forward", 7)]
    partial = StartShuffle(HOST, steps=3)
    assert game.decide(partial) == [ShuffleStarted(1, 0, "deck", 8, "backward", 3)]


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (StartShuffle(HOST, "hand:1"), BadRequest, "a hand cannot be shuffled"),
        (StartShuffle(HOST, "heap"), BadRequest, "deck or pile"),
        (StartShuffle(HOST, "pile:none"), DeckEmpty, "no card to shuffle"),
        (StartShuffle(HOST, algorithm="riffle"), BadRequest, "backward or forward"),
        (StartShuffle(HOST, steps=8), BadRequest, "0 to 7 steps"),
        (StartShuffle(HOST, steps=-1), BadRequest, "0 to 7 steps"),
        (StartShuffle(HOST, algorithm="forward", steps=3), BadRequest, "takes all its steps"),
        (DrawAtRandom(ONE, 9), DeckEmpty, "draw 1 to 8"),
        (DrawAtRandom(ONE, 0), DeckEmpty, "draw 1 to 8"),
        (DrawAtRandom(ONE, source="hand:1"), BadRequest, "a hand cannot be shuffled"),
        (DrawAtRandom(HOST), NotYourSeat, "no seat"),
    ],
)
def test_an_invalid_shuffle_is_refused(fresh, command, refusal, saying):
    fresh().refuses(command, refusal, saying)


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
        game.refuses(command, ShuffleRunning, "wait for its DeckSealed")


# Digests


def test_the_last_digest_closes_the_entropy(fresh):
    game = fresh()
    game.do(SHUFFLE)
    first, second = game.commit(2), game.commit(1)
    assert game.do(first) == [EntropyCommitted(1, 0, 2, first.digest)]
    assert game.do(second) == [EntropyCommitted(1, 0, 1, second.digest), EntropyClosed(1, 0)]


def test_a_second_digest_for_a_shuffle_is_refused(fresh):
    game = fresh()
    game.do(game.commit(1))
    game.refuses(game.commit(1), EntropyOutOfTurn, "has already sent its digest")
    game.do(SHUFFLE)
    game.refuses(game.commit(1), EntropyOutOfTurn, "has already sent its digest")


def test_a_digest_after_the_close_is_refused(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.now += 1_000
    assert game.do(CheckDeadlines(game.now)) == [EntropyClosed(1, 0)]
    game.refuses(game.commit(2), EntropyOutOfTurn, "digests of this shuffle are closed")
    game.do(game.reveal(1))
    assert game.round.shuffle.ready()
    assert game.round.shuffle.entropy() == [game.nonce(1)]


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (CommitEntropy(ONE, 1, 1, b"d" * 32), EntropyOutOfTurn, "round 1, shuffle 0 only"),
        (CommitEntropy(ONE, 2, 0, b"d" * 32), EntropyOutOfTurn, "round 1, shuffle 0 only"),
        (CommitEntropy(ONE, 1, 0, b"d" * 31), BadRequest, "32 bytes"),
        (CommitEntropy(THREE, 1, 0, b"d" * 32), NotYourSeat, "no seat"),
        (CommitEntropy(HOST, 1, 0, b"d" * 32), NotYourSeat, "no seat"),
    ],
)
def test_an_invalid_digest_is_refused(fresh, command, refusal, saying):
    fresh().refuses(command, refusal, saying)


def test_a_digest_is_refused_without_players_entropy(play):
    play().refuses(CommitEntropy(ONE, 1, 1, b"d" * 32), EntropyOutOfTurn, "house's entropy")
    play(opened=False).refuses(CommitEntropy(ONE, 1, 0, b"d" * 32), NoRound)


# Reveals


def test_reveals_make_the_shuffle_ready_in_order_of_seats(fresh):
    game = fresh(seats=10)
    game.do(SHUFFLE)
    for seat in range(10, 0, -1):
        game.do(game.commit(seat))
    for seat in (10, 2, 1, 3, 4, 5, 6, 7, 9):
        assert game.do(game.reveal(seat)) == [EntropyRevealed(1, 0, seat, game.nonce(seat))]
    game.refuses(game.finish(), NoShuffle, "still waits for")
    game.do(game.reveal(8))
    assert game.round.shuffle.entropy() == [game.nonce(seat) for seat in range(1, 11)]


def test_a_reveal_before_c1_is_refused(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.refuses(game.reveal(1), EntropyOutOfTurn, "reveal after EntropyClosed")


def test_a_reveal_opens_only_its_own_digest(fresh):
    game = fresh()
    game.do(SHUFFLE)
    game.do(game.commit(1))
    copied = CommitEntropy(TWO, 1, 0, game.round.shuffle.digests[1])
    game.do(copied)
    game.refuses(RevealEntropy(ONE, 1, 0, b"x" * 32), EntropyMismatch, "does not match the digest")
    game.refuses(RevealEntropy(ONE, 1, 0, b""), EntropyMismatch, "does not match the digest")
    game.do(game.reveal(1))
    game.refuses(
        RevealEntropy(TWO, 1, 0, game.nonce(1)), EntropyMismatch, "does not match the digest"
    )


def test_a_reveal_of_another_length_is_refused_even_if_it_opens_the_digest(fresh):
    game = fresh(seats=1)
    digest = game.house.player_digest(k=0, seat=1, nonce=b"short")
    game.do(SHUFFLE)
    game.do(CommitEntropy(ONE, 1, 0, digest))
    game.refuses(RevealEntropy(ONE, 1, 0, b"short"), EntropyMismatch)


def test_an_unexpected_reveal_is_refused(fresh):
    game = fresh(seats=3)
    game.refuses(game.reveal(1), NoShuffle, "No shuffle is running")
    game.do(SHUFFLE)
    game.do(game.commit(1))
    game.do(game.commit(3))
    game.now += 1_000
    game.do(CheckDeadlines(game.now))
    game.do(game.reveal(1))
    game.refuses(game.reveal(1), EntropyOutOfTurn, "No reveal is expected")
    game.refuses(game.reveal(2), EntropyOutOfTurn, "No reveal is expected")
    game.refuses(RevealEntropy(THREE, 1, 1, game.nonce(3)), EntropyOutOfTurn, "shuffle 0 only")
    game.refuses(RevealEntropy(THREE, 2, 0, game.nonce(3)), EntropyOutOfTurn, "shuffle 0 only")
    game.refuses(RevealEntropy(HOST, 1, 0, game.nonce(3)), NotYourSeat)
