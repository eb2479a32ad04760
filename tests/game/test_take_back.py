"""Taking back: a move that showed no card to anyone is reversed by further moves."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dealer.errors import BadRequest, NothingToTakeBack, NotHost, Refused, ShuffleRunning
from dealer.game import commands as c
from dealer.game.events import CardDrawn, CardMoved, NoteAdded
from dealer.game.rules import Rules
from dealer.game.stacks import DECK, DISCARD
from dealer.game.state import evolve
from tests.harness.depth import amount

HOST, ONE, TWO = c.Actor(host=True), c.Actor(seat=1), c.Actor(seat=2)
OWN = {"collect": "nobody"}


@pytest.fixture
def game(play):
    """Seat 1 holds the slots 7, 6 and 5, seat 2 the slot 4; the slot 3 lies face up on pile:x."""
    game = play(rules=OWN)
    game.do(c.Draw(ONE, 3))
    game.do(c.Draw(TWO))
    game.do(c.Move(HOST, "pile", DECK, "pile:x", face="up"))
    game.now += 1
    return game


def knowledge(game):
    """The slots that each viewer may know: of everyone, and of each seat."""
    round_ = game.round
    return {
        seat: {slot for slot in range(len(round_.faces)) if round_.sees(seat, slot)}
        for seat in (None, 1, 2, 3)
    }


def stacks(game):
    return {name: list(cards) for name, cards in game.round.stacks.items() if cards}


def refuses(game, actor, saying):
    game.refuses(c.TakeBack(actor), NothingToTakeBack, saying)


@pytest.mark.parametrize(
    "move",
    [
        c.Move(ONE, "discard", "hand:1", DISCARD, (6,)),
        c.Move(ONE, "discard", "hand:1", DISCARD, (5, 7)),
        c.Move(ONE, "return", "hand:1", DECK, (7, 6), where=1),
        c.Move(ONE, "pile", "hand:1", "pile:x", (7, 6), where="bottom"),
        c.Move(ONE, "pile", "hand:1", "hand:1", (5, 7, 6), where=0),
        c.Move(ONE, "pile", "hand:1", "pile:y", whole=True),
        c.Move(ONE, "pile", "pile:x", "hand:1", (3,), where=1),
        c.Move(ONE, "pile", "pile:x", "pile:y"),
        c.Draw(ONE, 1, "pile:x"),
    ],
)
def test_the_cards_return_to_their_places(game, move):
    before, knew = stacks(game), knowledge(game)
    done = game.do(move)
    first = game.table.version - len(done) + 1
    assert stacks(game) != before
    *moves, note = game.do(c.TakeBack(ONE))
    assert stacks(game) == before
    assert knowledge(game) == knew
    assert [type(event) for event in moves] == [CardMoved] * len(done)
    last = first + len(done) - 1
    text = str(first) if first == last else f"{first}-{last}"
    assert note == NoteAdded(1, "take_back", text)


def test_a_card_that_returns_to_a_hand_has_its_face_for_that_seat(game):
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (6,)))
    back, _ = game.do(c.TakeBack(ONE))
    assert back == CardMoved(1, 6, DISCARD, "hand:1", 1, game.card(6))
    assert back.private_face().seat == 1


@pytest.mark.parametrize(
    ("move", "saying"),
    [
        (c.Draw(ONE), "no move to take back"),
        (c.Move(ONE, "play", "hand:1", "pile:x", (6,), face="up"), "cannot be taken back"),
        (c.Move(ONE, "play", "hand:1", "pile:x", (6, 5), face="up"), "cannot be taken back"),
        (c.Move(ONE, "give", "hand:1", "hand:2", (6,)), "cannot be taken back"),
        (c.Move(HOST, "burn", DECK, "pile:burn"), "no move to take back"),
        (c.Show(ONE, "hand:1", (6,)), "no move to take back"),
        (c.Show(ONE, "hand:1", (6,), to=2), "no move to take back"),
        (c.Cut(ONE, 1), "no move to take back"),
        (c.Move(TWO, "discard", "hand:2", DISCARD), "another seat's"),
        (c.Deal(HOST, 1), "no move to take back"),
    ],
)
def test_other_commands_cannot_be_taken_back(game, move, saying):
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.now += 1
    game.do(move)
    refuses(game, ONE, saying)


def test_a_face_down_card_that_is_drawn_from_a_pile_stays_drawn(game):
    game.do(c.Move(ONE, "discard", "hand:1", "pile:x", (7,)))
    game.do(c.Move(TWO, "discard", "hand:2", "pile:x", (4,)))
    game.now += 1
    game.do(c.Draw(TWO, 3, "pile:x"))  # its own card, an unknown one, and one that is face up
    refuses(game, TWO, "has been seen")
    game.now += 1
    game.do(c.Move(TWO, "discard", "hand:2", "pile:x", (4,)))
    game.now += 1
    game.do(c.Draw(TWO, 1, "pile:x"))
    assert game.do(c.TakeBack(TWO))


def test_a_card_shown_on_its_way_is_not_given_a_second_chance(game):
    """The events of one command: the first card was face up before, the second is turned up."""
    game.do(c.Show(ONE, "hand:1", (7,)))
    game.now += 1
    moved = game.do(c.Move(ONE, "play", "hand:1", "pile:y", (7, 6, 5), face="up"))
    assert [type(event).__name__ for event in moved] == [
        "CardMoved", "CardMoved", "CardShown", "CardMoved", "CardShown",
    ]  # fmt: skip
    refuses(game, ONE, "has been seen")


def test_neither_a_taken_back_move_nor_a_take_back_is_reversed_again(game):
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.now += 1
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (6,)))
    game.do(c.TakeBack(ONE))
    refuses(game, ONE, "no move to take back")


def test_the_last_of_two_moves_is_taken_back_alone(game):
    """Two commands have different times, whatever the clock says."""
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    assert game.table.next_at(game.now) == game.now + 1
    game.now = game.table.next_at(game.now)
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (6,)))
    game.do(c.TakeBack(ONE))
    assert (game.stack("hand:1"), game.stack(DISCARD)) == ([6, 5], [7])
    assert game.table.next_at(game.now) == game.now


def test_moves_of_one_time_with_another_event_between_them_are_two_commands(game):
    """So they are in logs of earlier releases, which did not give each command its time."""
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.do(c.AddNote(ONE, "chat", "and"))
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (6,)))
    game.do(c.TakeBack(ONE))
    assert (game.stack("hand:1"), game.stack(DISCARD)) == ([6, 5], [7])


def test_notes_and_other_players_do_not_end_the_right_to_take_back(game):
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.do(c.AddNote(TWO, "chat", "really?"))
    game.do(c.TakeSeat("late", 3))
    game.do(c.LeaveSeat(TWO))
    assert game.decide(c.TakeBack(ONE))


def test_a_shuffle_ends_it(fresh):
    game = fresh(rules=OWN)
    game.shuffle()
    game.do(c.Draw(ONE, 2))
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.do(c.StartShuffle(HOST))
    game.refuses(c.TakeBack(ONE), ShuffleRunning)
    game.settle()
    refuses(game, ONE, "no move to take back")


def test_a_player_does_not_take_back_what_the_one_before_did(game):
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    game.do(c.LeaveSeat(ONE))
    game.do(c.TakeSeat("new", 1))
    refuses(game, ONE, "no move to take back")


def test_a_move_between_piles_is_of_all_who_may_move_them(game):
    game.table.rules = Rules.check(OWN | {"pile": "host"})
    game.do(c.Move(HOST, "pile", "pile:x", "pile:y"))
    refuses(game, ONE, "not one of your hand")
    *_, note = game.do(c.TakeBack(HOST))
    assert note.seat == 0
    assert game.stack("pile:x") == [3]


def test_where_cards_are_collected_moves_out_of_hands_stay(play):
    game = play(rules={"collect": "host"})
    game.do(c.Draw(ONE, 2))
    game.do(c.Move(HOST, "collect", "hand:1", DISCARD))
    refuses(game, ONE, "host may move cards of hands")
    game.now += 1
    game.do(c.Move(ONE, "pile", "hand:1", "hand:1", where=0))
    assert game.decide(c.TakeBack(ONE))


def test_the_rule_is_of_its_own(play):
    game = play(rules=OWN | {"preset": "dealer"})
    game.do(c.Deal(HOST, 1))
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD))
    game.refuses(c.TakeBack(ONE), NotHost, "only the host to take_back")


def test_the_note_is_the_servers(game):
    game.refuses(c.AddNote(ONE, "take_back", "5"), BadRequest, "hand.take_back")
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (7,)))
    assert game.decide(c.TakeBack(ONE))


targets = st.sampled_from(["deck", "pile:x", "pile:y", "hand:1", "hand:2"])
slots = st.none() | st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).map(tuple)
any_move = st.one_of(
    st.builds(c.Draw, st.sampled_from([ONE, TWO]), st.sampled_from([1, 2]),
              st.sampled_from(["deck", "pile:x", "pile:y"])),
    st.builds(c.Show, st.sampled_from([ONE, TWO]), targets, slots, st.sampled_from([None, 1, 2])),
    *[
        st.builds(c.Move, st.sampled_from([ONE, TWO]), st.just("pile"), targets, targets, slots,
                  where=st.sampled_from(["top", "bottom", 0, 1]),
                  face=st.sampled_from(["up", "down", "down"]), whole=st.just(whole))
        for whole in (False, False, True)
    ],
)  # fmt: skip


@settings(
    max_examples=amount(100, many=500),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(moves=st.lists(any_move, min_size=1, max_size=12))
def test_taking_back_restores_the_table_and_no_viewers_knowledge_changes(play, moves):
    game = play(rules=OWN)
    game.do(c.Deal(HOST, 2))
    for move in moves:
        game.now = game.table.next_at(game.now)
        before, knew = stacks(game), knowledge(game)
        with contextlib.suppress(Refused):
            game.do(move)
        learned = knowledge(game) != knew
        try:
            back = game.decide(c.TakeBack(move.actor))
        except Refused:
            own = isinstance(move, c.Move) and move.source == f"hand:{move.actor.seat}"
            gave = isinstance(move, c.Move) and move.to.startswith("hand:") and own
            assert learned or stacks(game) == before or not own or gave
            continue
        if stacks(game) == before:
            continue  # the command was refused: an earlier move can be taken back
        assert not learned
        size = len(game.events)
        for event in back:
            game.take(event)
        assert stacks(game) == before
        assert knowledge(game) == knew
        assert len(game.events) == size + len(back)


def test_a_draw_counts_as_a_move_only_where_all_cards_were_known(game):
    """The record is of the whole command: one unknown card makes all of it final."""
    game.do(c.Move(TWO, "discard", "hand:2", "pile:x", (4,), where="bottom"))
    game.now += 1
    for slot in (3, 4):
        evolve(game.table, CardDrawn(1, 1, "pile:x", slot, game.card(slot)), game.now)
    refuses(game, ONE, "has been seen")
