"""Views: which event shows which face to which seat."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import get_args

import pytest

from dealer.game import events as e
from dealer.game.commands import Actor, Draw, Move, Show, StartShuffle
from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR, faces, snapshot

HOST, ONE, TWO = Actor(host=True), Actor(seat=1), Actor(seat=2)
B = b"x" * 32

# Every type of event, and the face that it shows to one seat only.
SHOWS = [
    (e.TableOpened("o", B, {"card": "As"}), None),
    (e.SeatTaken(1, "As", B), None),
    (e.SeatLeft(1), None),
    (e.SeatVacated(1, "host", "As"), None),
    (e.HostTransferred(1), None),
    (e.NoteAdded(1, "chat", "As"), None),
    (e.RoundOpened(1, ("As",), "house", 1, 1, B), None),
    (e.ShuffleStarted(1, 0, "deck", 1, "backward", 0), None),
    (e.EntropyCommitted(1, 0, 1, B), None),
    (e.EntropyClosed(1, 0), None),
    (e.ShuffleVoided(1, 0), None),
    (e.EntropyRevealed(1, 0, 1, B), None),
    (e.CardsSwapped(1, 0, 0, 0, 0), None),
    (e.DeckSealed(1, 0, 0, (B,)), None),
    (e.CardDrawn(1, 2, "deck", 7, "As"), e.PrivateFace(2, 7, "As")),
    (e.CardDrawn(1, 2, "deck", 7, None), None),
    (e.CardMoved(1, 7, "hand:1", "hand:2", 0, "As"), e.PrivateFace(2, 7, "As")),
    (e.CardMoved(1, 7, "hand:1", "hand:2", 0, None), None),
    (e.CardMoved(1, 7, "hand:1", "pile:x", 0, "As"), None),
    (e.CardMoved(1, 7, "hand:1", "deck", 0, "As"), None),
    (e.CardShown(1, 7, "As", B), None),
    (e.CardPeeked(1, 7, 2, "As"), e.PrivateFace(2, 7, "As")),
    (e.CardPeeked(1, 7, 2, None), None),
    (e.StackCut(1, "deck", 0), None),
    (e.RoundClosed(1, B), None),
    (e.TableClosed(), None),
]


@pytest.mark.parametrize(("event", "face"), SHOWS)
def test_an_event_shows_its_face_to_one_seat(event, face):
    assert event.private_face() == face


def test_every_type_of_event_is_listed():
    assert {type(event) for event, _ in SHOWS} == set(get_args(e.Event))


def test_a_new_type_of_event_shows_nothing():
    @dataclass(frozen=True)
    class CardWhispered(e.EventType):
        round: int
        seat: int
        source: str
        slot: int
        card: str

    assert CardWhispered(1, 2, "deck", 7, "As").private_face() is None


def cards(game, viewer):
    return dict(snapshot(game.table, viewer)["round"]["cards"])


def test_a_snapshot_shows_a_hand_only_to_its_seat(play):
    game = play()
    game.do(Draw(ONE, 2))
    game.do(Draw(TWO))
    assert cards(game, SeatHolder(1, 2)) == {6: game.card(6), 7: game.card(7)}
    assert cards(game, SeatHolder(2, 3)) == {5: game.card(5)}
    assert cards(game, SeatHolder(3, 0)) == cards(game, SPECTATOR) == {}


def test_a_snapshot_shows_what_was_turned_up_and_peeked_at(play):
    game = play()
    game.do(Show(HOST, "deck", (4,)))
    game.do(Show(HOST, "deck", (2,), to=2))
    game.do(Draw(ONE))
    game.do(Move(ONE, "play", "hand:1", "pile:table", face="up"))
    assert cards(game, SPECTATOR) == {4: game.card(4), 7: game.card(7)}
    assert cards(game, SeatHolder(2, 0)) == {2: game.card(2), 4: game.card(4), 7: game.card(7)}
    assert list(faces(game.round, SeatHolder(2, 0))) == [2, 4, 7]
    assert snapshot(game.table, SPECTATOR)["round"]["shown"] == [4, 7]


def test_a_snapshot_hides_cards_after_a_new_shuffle(play):
    game = play()
    game.do(Show(HOST, "deck"))
    game.do(Show(HOST, "deck", (0,), to=1))
    game.shuffle()
    assert cards(game, SeatHolder(1, 0)) == {}


def test_a_snapshot_is_json_with_the_public_state(play):
    game = play(entropy="players", rules={"preset": "dealer"}, steps=3)
    for seat in (1, 2):
        game.do(game.commit(seat))
    view = snapshot(game.table, SPECTATOR)
    assert json.loads(json.dumps(view)) == view
    assert view["version"] == game.table.version
    assert view["seats"] == [
        {"seat": 1, "name": "player 1", "since": 2},
        {"seat": 2, "name": "player 2", "since": 3},
    ]
    assert view["rules"] == {"preset": "dealer"}
    round_ = view["round"]
    assert round_["stacks"] == {"deck": list(range(8))}
    assert round_["drawable"] == [5, 6, 7]
    assert round_["deck"] == list("abcdefgh")
    assert [slot for slot, _ in round_["commitments"]] == list(range(8))
    assert [seat for seat, _ in round_["ahead"]] == [1, 2]
    assert (round_["k"], round_["slots"]) == (1, 8)
    assert "shuffle" not in round_


def test_a_snapshot_during_a_shuffle_has_its_progress(play):
    game = play(entropy="players", shuffled=False)
    game.do(StartShuffle(HOST, steps=2))
    for seat in (2, 1):
        game.do(game.commit(seat))
    game.do(game.reveal(2))
    view = snapshot(game.table, SeatHolder(1, 0))
    assert json.loads(json.dumps(view)) == view
    shuffle = view["round"]["shuffle"]
    assert shuffle["nonces"] == [[2, game.nonce(2).hex()]]
    assert [seat for seat, _ in shuffle["digests"]] == [1, 2]
    assert shuffle["closed_version"] == game.table.version - 1
    assert (shuffle["stack"], shuffle["n"], shuffle["steps"]) == ("deck", 8, 2)
    assert view["round"]["stacks"] == {"deck": [-1, -2, -3, -4, -5, -6, -7, -8]}


def test_between_rounds_a_snapshot_has_no_round(play):
    view = snapshot(play(opened=False).table, SPECTATOR)
    assert "round" not in view
    assert view["rounds"] == 0
