"""A player's bytes: promised once, kept before, shown only under a signed head with the promise."""

from __future__ import annotations

import pytest

from dealer.client.duties import Duties
from dealer.client.entropy import Entropy, Promise, Reveal
from dealer.client.store import Store, TableStore
from dealer.client.witness import Witness
from dealer.game.commands import LeaveSeat, TakeSeat


class Player:
    """Ada's client at a small house, without a socket."""

    def __init__(self, house, game, store=None, seat=1):
        self.house, self.game = house, game
        self.witness = Witness(game.table)
        self.witness.seat = self.seat = seat
        self.store = store or TableStore()
        self.entropy = Entropy(table=bytes.fromhex(game.table), store=self.store)

    def step(self):
        """What is to be sent now that all has been seen."""
        self.house.show(self.witness)
        return self.entropy.next_step(
            self.witness.state,
            seat=self.seat,
            heads=self.witness.story.heads,
            leaves=self.witness.digests,
        )

    def send(self):
        step = self.step()
        actor = self.game.ada if self.seat == 1 else self.game.bob
        if isinstance(step, Promise):
            self.house.do(self.game.commit(actor, step.round, step.k, step.digest))
        else:
            assert isinstance(step, Reveal)
            self.house.do(self.game.reveal(actor, step.round, step.k, step.nonce))
        return step


@pytest.fixture
def ada(house, game):
    return Player(house, game)


@pytest.fixture
def bob(house, game):
    return Player(house, game, seat=2)


def test_bytes_go_ahead_of_each_shuffle_and_are_fresh(house, game, ada, bob):
    house.open_round(entropy="players")
    for _ in range(2):
        assert isinstance(ada.send(), Promise)
        assert ada.step() is None
        bob.send()
        house.do(game.start)
        assert isinstance(ada.send(), Reveal)
        assert ada.step() is None
        bob.send()
        house.finish()
    house.do(game.close)
    assert ada.step() is None
    assert len({nonce.value for nonce in ada.store.nonces.values()}) == 2
    assert all(nonce.revealed_under for nonce in ada.store.nonces.values())


def test_bytes_are_kept_before_the_promise_leaves(house, ada):
    house.open_round(entropy="players")
    kept = []
    ada.store.keep_nonce = lambda sitting, value: kept.append((sitting, value))
    step = ada.step()
    assert kept[0][0] == (1, 0, 1, 2)
    assert len(kept[0][1]) == 32
    assert isinstance(step, Promise)
    assert ada.step() is None  # it is on its way, and goes once


def test_no_reveal_without_the_signed_head(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    note = house.notes.pop(house.table.version)
    assert ada.step() is None
    ada.witness.checkpoint(note)
    assert isinstance(ada.step(), Reveal)


def test_no_reveal_without_the_own_digest_as_a_leaf(house, game, ada, bob):
    """A snapshot may say that our digest is there: the head proves it only of leaves."""
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    again = Player(house, game, ada.store)
    again.witness.begin(**house.describe())
    assert house.table.version in again.witness.story.heads
    assert again.step() is None


def test_no_bytes_of_who_was_left_out(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.step()
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    assert ada.step() is None
    assert ada.entropy.doubts == ["Shuffle 0 of round 1 goes without our bytes."]


def test_a_shuffle_that_left_no_time_to_promise_is_doubted(house, game, ada, bob):
    """The house says that there is more to tell, so that this client never promises."""
    house.open_round(entropy="players")
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    ada.store.learn(since=2)
    duties = Duties(game.table, ada.store, None)
    house.show(ada.witness)
    assert duties.due(ada.witness, live=False) == []
    assert duties.entropy.doubts == ["Shuffle 0 of round 1 goes without our bytes."]


def test_who_is_kept_behind_sees_a_digest_that_is_not_theirs(house, game, ada, bob):
    """A house that says that more is to come keeps a client from acting, not from looking."""
    house.open_round(entropy="players")
    house.do(game.commit(game.ada, 1, 0, bytes(32)))
    bob.send()
    house.do(game.start)
    ada.store.learn(since=2)
    duties = Duties(game.table, ada.store, None)
    house.show(ada.witness)
    assert duties.due(ada.witness, live=False) == []
    assert duties.entropy.doubts == ["Another digest than ours stands for shuffle 0."]


def test_who_sat_down_later_does_not_doubt(house, game, bob):
    house.open_round(entropy="players")
    bob.send()
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    house.do(TakeSeat("Cleo"))
    cleo = Player(house, game, seat=3)
    assert cleo.step() is None
    assert cleo.entropy.doubts == []


def test_no_bytes_of_who_withheld(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    house.do(game.start)
    bob.send()
    assert isinstance(ada.step(), Reveal)  # and it is lost on the way
    house.do(game.late(house.clock + 10_000))
    assert ada.step() is None
    assert "counts us as silent in shuffle 0" in ada.entropy.doubts[0]
    assert isinstance(bob.send(), Promise)


def test_a_digest_that_is_not_ours_is_never_opened(house, game, ada, bob):
    house.open_round(entropy="players")
    house.do(game.commit(game.ada, 1, 0, bytes(32)))
    bob.send()
    assert ada.step() is None
    house.do(game.start)
    assert ada.step() is None
    assert "Another digest" in ada.entropy.doubts[0]


def test_after_a_restart_the_kept_bytes_are_shown(house, game, bob, tmp_path):
    ada = Player(house, game, Store(tmp_path).table(game.table))
    house.open_round(entropy="players")
    promised = ada.send()
    bob.send()
    house.do(game.start)
    again = Player(house, game, Store(tmp_path).table(game.table))
    step = again.send()
    assert isinstance(step, Reveal)
    assert house.secret.player_digest(k=0, seat=1, nonce=step.nonce) == promised.digest
    # The answer was lost with the process: the same bytes under the same head may go again.
    third = Player(house, game, Store(tmp_path).table(game.table))
    assert third.store.nonces[1, 0, 1, 2].revealed_under == house.root_at(
        house.table.round.shuffle.closed_version
    )


def test_bytes_that_were_shown_are_not_shown_in_another_history(house, game, ada, bob):
    house.open_round(entropy="players")
    ada.send(), bob.send()
    other = house.fork()
    house.do(game.start)
    assert isinstance(ada.send(), Reveal)
    other.do(TakeSeat("Eve"))
    other.do(game.commit(game.bob.__class__(seat=3), 1, 0, bytes(32)))
    other.do(game.start)
    again = Player(other, game, ada.store)
    assert again.step() is None
    assert "another signed head" in again.entropy.doubts[0]


def test_bytes_that_were_shown_are_not_promised_again(house, game, ada, bob):
    house.open_round(entropy="players")
    older = house.fork()
    first = ada.send()
    bob.send()
    house.do(game.start)
    ada.send()
    again = Player(older, game, ada.store)
    assert again.step().digest != first.digest


def test_a_new_sitting_brings_new_bytes(house, game, ada):
    house.open_round(entropy="players")
    first = ada.send()
    house.do(LeaveSeat(game.ada))
    house.do(TakeSeat("Ada", seat=1))
    second = ada.step()
    assert isinstance(second, Promise)
    assert second.digest != first.digest


def test_none_in_a_round_of_the_houses_entropy(dealt, ada):
    assert ada.step() is None


def test_a_seat_that_is_somebody_elses_is_given_nothing(house, ada):
    """The seat has our number, but who sits there took it at another time."""
    house.open_round(entropy="players")
    house.show(ada.witness)
    duties = Duties(ada.game.table, ada.store, None)
    ada.store.learn(since=99)
    assert duties.due(ada.witness, live=True) == []
    ada.store.learn(since=2)
    assert duties.due(ada.witness, live=False) == []
    ((method, params),) = duties.due(ada.witness, live=True)
    assert method == "entropy.commit"
    assert params.keys() == {"round", "k", "digest"}
