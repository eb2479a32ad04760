"""Entropy: stored before it is committed, committed once, revealed only under a covering head."""

from __future__ import annotations

import pytest

from dealer.client.auto_responder import AutoResponder, Entropy
from dealer.client.event_verifier import EventVerifier
from dealer.client.storage import Store, TableStore
from dealer.game.commands import LeaveSeat, TakeSeat

COMMIT, REVEAL = "entropy.commit", "entropy.reveal"


class Player:
    """Ada's client at a house in memory, without a socket."""

    def __init__(self, house, game, store=None, seat=1):
        self.house, self.game = house, game
        self.verifier = EventVerifier(game.table)
        self.verifier.seat = self.seat = seat
        self.store = store or TableStore()
        self.entropy = Entropy(table=bytes.fromhex(game.table), store=self.store)

    def step(self):
        """The request to send after all frames."""
        self.house.feed(self.verifier)
        return self.entropy.next_step(
            self.verifier.state,
            seat=self.seat,
            heads=self.verifier.log.heads,
            leaves=self.verifier.digests,
        )

    def send(self):
        step = self.step()
        actor = self.game.ada if self.seat == 1 else self.game.bob
        method, asked = step
        if method == COMMIT:
            digest = bytes.fromhex(asked["digest"])
            self.house.do(self.game.commit(actor, asked["round"], asked["k"], digest))
        else:
            assert method == REVEAL
            nonce = bytes.fromhex(asked["nonce"])
            self.house.do(self.game.reveal(actor, asked["round"], asked["k"], nonce))
        return step


@pytest.fixture
def ada(house, game):
    return Player(house, game)


@pytest.fixture
def bob(house, game):
    return Player(house, game, seat=2)


def test_each_shuffle_has_new_entropy(house, game, ada, bob):
    house.open_round(entropy="players")
    for _ in range(2):
        assert ada.send()[0] == COMMIT
        assert ada.step() is None
        bob.send()
        house.do(game.start)
        assert ada.send()[0] == REVEAL
        assert ada.step() is None
        bob.send()
        house.finish()
    house.do(game.close)
    assert ada.step() is None
    assert len({nonce.value for nonce in ada.store.nonces.values()}) == 2
    assert all(nonce.revealed_under for nonce in ada.store.nonces.values())


def test_entropy_is_stored_before_it_is_committed(house, ada):
    house.open_round(entropy="players")
    kept = []
    ada.store.save_nonce = lambda key, value: kept.append((key, value))
    step = ada.step()
    assert kept[0][0] == (1, 0, 1, 2)
    assert len(kept[0][1]) == 32
    assert step[0] == COMMIT
    assert ada.step() is None  # the request is pending and is sent once


def test_no_reveal_without_the_signed_head(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    note = house.notes.pop(house.table.version)
    assert ada.step() is None
    ada.verifier.checkpoint(note)
    assert ada.step()[0] == REVEAL


def test_no_reveal_without_the_own_digest_as_a_leaf(house, game, ada, bob):
    """A digest in a snapshot is no proof: a head covers only leaves."""
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    again = Player(house, game, ada.store)
    again.verifier.begin(**house.describe())
    assert house.table.version in again.verifier.log.heads
    assert again.step() is None


def test_a_seat_that_was_left_out_does_not_reveal(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.step()
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    assert ada.step() is None
    assert ada.entropy.doubts == ["Shuffle 0 of round 1 does not use our bytes."]


def test_a_shuffle_without_time_to_commit_is_doubted(house, game, ada, bob):
    """The house claims a backlog, so that this client never commits."""
    house.open_round(entropy="players")
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    ada.store.update(since=2)
    duties = AutoResponder(game.table, ada.store, None)
    house.feed(ada.verifier)
    assert duties.due(ada.verifier, live=False, away=False) == []
    assert duties.entropy.doubts == ["Shuffle 0 of round 1 does not use our bytes."]


def test_a_foreign_digest_is_doubted_while_catching_up(house, game, ada, bob):
    """A claimed backlog stops a client from committing, not from checking."""
    house.open_round(entropy="players")
    house.do(game.commit(game.ada, 1, 0, bytes(32)))
    bob.send()
    house.do(game.start)
    ada.store.update(since=2)
    duties = AutoResponder(game.table, ada.store, None)
    house.feed(ada.verifier)
    assert duties.due(ada.verifier, live=False, away=False) == []
    assert duties.entropy.doubts == ["Shuffle 0 has another digest than ours."]


def test_a_player_who_joined_later_does_not_doubt(house, game, bob):
    house.open_round(entropy="players")
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    house.do(TakeSeat("Cleo"))
    cleo = Player(house, game, seat=3)
    assert cleo.step() is None
    assert cleo.entropy.doubts == []


def test_a_seat_that_withheld_does_not_commit(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    bob.send()
    assert ada.step()[0] == REVEAL  # and the request is lost
    house.do(game.late(house.clock + 10_000))
    assert ada.step() is None
    assert "recorded that we withheld our bytes in shuffle 0" in ada.entropy.doubts[0]
    assert bob.send()[0] == COMMIT


def test_a_foreign_digest_is_never_revealed(house, game, ada, bob):
    house.open_round(entropy="players")
    house.do(game.commit(game.ada, 1, 0, bytes(32)))
    bob.send()
    assert ada.step() is None
    house.do(game.start)
    assert ada.step() is None
    assert "another digest" in ada.entropy.doubts[0]


def test_stored_entropy_is_revealed_after_a_restart(house, game, bob, tmp_path):
    ada = Player(house, game, Store(tmp_path).table(game.table))
    house.open_round(entropy="players")
    digest = ada.send()[1]["digest"]
    bob.send()
    house.do(game.start)
    again = Player(house, game, Store(tmp_path).table(game.table))
    step = again.send()
    assert step[0] == REVEAL
    nonce = bytes.fromhex(step[1]["nonce"])
    assert house.secret.player_digest(k=0, seat=1, nonce=nonce).hex() == digest
    # The answer was lost with the process: the bytes may be revealed again under this head.
    third = Player(house, game, Store(tmp_path).table(game.table))
    assert third.store.nonces[1, 0, 1, 2].revealed_under == house.root_at(
        house.table.round.shuffle.closed_version
    )


def test_revealed_entropy_is_not_revealed_in_another_log(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    other = house.fork()
    house.do(game.start)
    assert ada.send()[0] == REVEAL
    other.do(TakeSeat("Eve"))
    other.do(game.commit(game.bob.__class__(seat=3), 1, 0, bytes(32)))
    other.do(game.start)
    again = Player(other, game, ada.store)
    assert again.step() is None
    assert "another signed head" in again.entropy.doubts[0]


def test_revealed_entropy_is_not_committed_again(house, game, ada, bob):
    house.open_round(entropy="players")
    older = house.fork()
    first = ada.send()
    bob.send()
    house.do(game.start)
    ada.send()
    again = Player(older, game, ada.store)
    assert again.step()[1]["digest"] != first[1]["digest"]


def test_a_seat_that_is_taken_again_has_new_entropy(house, game, ada):
    house.open_round(entropy="players")
    first = ada.send()
    house.do(LeaveSeat(game.ada))
    house.do(TakeSeat("Ada", seat=1))
    second = ada.step()
    assert second[0] == COMMIT
    assert second[1]["digest"] != first[1]["digest"]


def test_no_entropy_in_a_round_with_house_entropy(dealt, ada):
    assert ada.step() is None


def test_no_entropy_for_another_players_seat(house, ada):
    """The seat has our number, but another player took it at another version."""
    house.open_round(entropy="players")
    house.feed(ada.verifier)
    duties = AutoResponder(ada.game.table, ada.store, None)
    ada.store.update(since=99)
    assert duties.due(ada.verifier, live=True, away=False) == []
    ada.store.update(since=2)
    assert duties.due(ada.verifier, live=False, away=False) == []
    ((method, params),) = duties.due(ada.verifier, live=True, away=False)
    assert method == "entropy.commit"
    assert params.keys() == {"round", "k", "digest"}
