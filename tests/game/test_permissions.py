"""Permissions: every action under every preset, and rules that override it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dealer.errors import BadRequest, NotEntitled, NotHost, NotYourSeat
from dealer.game.commands import (
    Actor,
    AddNote,
    CloseRound,
    CloseTable,
    Command,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    Move,
    MoveSeat,
    OpenRound,
    Pass,
    Show,
    StartShuffle,
    TakeBack,
)
from dealer.game.rules import ACTIONS, KNOWN, PRESETS, Rules, check_names
from dealer.game.stacks import BURN, DECK, DISCARD

HOST, ONE, GONE, STRANGER = Actor(host=True), Actor(seat=1), Actor(seat=9), Actor()
HOST_AT_ONE = Actor(host=True, seat=1)

# The commands that need each action. Seat 1 holds the slots 7 and 6, pile:x the slots 5 and 4.
NEEDS: dict[str, list[Callable[..., Command]]] = {
    "open": [lambda a: OpenRound(a, ("a",), "house", 100, 100)],
    "close": [CloseRound, CloseTable],
    "shuffle": [StartShuffle, lambda a: StartShuffle(a, "pile:x")],
    "deal": [lambda a: Deal(a, 1), lambda a: Move(a, "pile", DECK, "hand:2")],
    "collect": [lambda a: Move(a, "collect", "hand:2", DISCARD)],
    "draw": [Draw, DrawAtRandom, lambda a: Move(a, "pile", DECK, "hand:1")],
    "burn": [lambda a: Move(a, "burn", DECK, BURN)],
    "cut": [lambda a: Cut(a, 1)],
    "pile": [
        lambda a: Draw(a, source="pile:x"),
        lambda a: DrawAtRandom(a, source="pile:x"),
        lambda a: Move(a, "pile", "pile:x", DECK),
        lambda a: Move(a, "pile", DECK, "pile:x"),
        lambda a: Move(a, "pile", "hand:1", "pile:x"),
    ],
    "turn": [lambda a: Show(a, DECK), lambda a: Show(a, "pile:x", to=2)],
    "discard": [lambda a: Move(a, "discard", "hand:1", DISCARD)],
    "play": [lambda a: Move(a, "play", "hand:1", "pile:x", face="up")],
    "give": [
        lambda a: Move(a, "give", "hand:1", "hand:2"),
        lambda a: Move(a, "pile", "hand:1", "hand:2"),
    ],
    "show": [lambda a: Show(a, "hand:1"), lambda a: Show(a, "hand:1", to=2)],
    "annotate": [lambda a: AddNote(a, "chat", "hello")],
    "return": [
        lambda a: Move(a, "return", "hand:1", DECK),
        lambda a: Move(a, "pile", "hand:1", DECK),
    ],
    "pass": [lambda a: Pass(a, (7,), 2)],
    "take_back": [TakeBack],
    "move_seat": [lambda a: MoveSeat(a, 9)],
}
HANDS = ("discard", "play", "give", "show", "return", "pass")
PLAYERS = (*HANDS, "annotate", "move_seat")
CASES = [(action, command) for action, commands in NEEDS.items() for command in commands]

EXPECTED = {
    "free": {"open": "host", "close": "host", "shuffle": "host", "deal": "host", "collect": "host"},
    "dealer": {
        action: "host" for action in ACTIONS if action not in PLAYERS
    },
    "shared": {"collect": "host"},
}  # fmt: skip


def at_table(play, rules):
    game = play()
    game.do(Draw(ONE, 2))
    game.do(Draw(Actor(seat=2)))
    game.do(Move(HOST, "pile", DECK, "pile:x", count=2))
    game.do(Move(ONE, "pile", "hand:1", "hand:1", where=0))  # it can be taken back
    game.table.rules = Rules.check(rules)
    return game


def test_every_action_is_tested():
    assert set(NEEDS) == set(ACTIONS)
    assert all(set(preset) == set(ACTIONS) for preset in PRESETS.values())


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_permits_each_action_to_its_actors(preset):
    who = Rules.check({"preset": preset}).who
    assert who == {action: EXPECTED[preset].get(action, "players") for action in ACTIONS}


def test_the_default_rules_are_free():
    assert Rules.check({}).who == PRESETS["free"]
    assert Rules.read({"preset": "unheard of"}).who == PRESETS["free"]


@pytest.mark.parametrize(("action", "command"), CASES)
@pytest.mark.parametrize("who", ["host", "players", "nobody"])
def test_a_rule_of_its_own_overrides_the_preset(play, action, command, who):
    """For each kind of actor only the rule of the action decides."""
    everything = dict.fromkeys(ACTIONS, "nobody")
    if action in ("open", "move_seat"):  # no round, or no cards
        game = play(opened=action != "open")
        game.table.rules = Rules.check(everything | {action: who})
    else:
        game = at_table(play, everything | {action: who})

    collect = action == "collect"
    if who == "nobody":
        game.refuses(command(HOST_AT_ONE), NotEntitled, "do not allow anyone to")
        game.refuses(command(ONE), NotYourSeat if collect else NotEntitled)
    elif who == "host":
        assert game.decide(command(HOST_AT_ONE))
        game.refuses(command(ONE), NotYourSeat if collect else NotHost)
    else:
        assert game.decide(command(HOST_AT_ONE))
        if collect:
            game.refuses(command(ONE), NotYourSeat)
        else:
            assert game.decide(command(ONE))
    for actor in (STRANGER, GONE):
        with pytest.raises((NotEntitled, NotYourSeat)):
            game.decide(command(actor))


@pytest.mark.parametrize("action", ["discard", "play", "give", "show", "return"])
def test_actions_on_a_hand_are_for_its_seat(play, action):
    game = at_table(play, {"preset": "shared"})
    for command in NEEDS[action]:
        game.refuses(command(Actor(seat=2)), NotYourSeat)
    if action == "show":
        game.refuses(Show(HOST, "hand:1"), NotYourSeat)


def test_permission_for_piles_is_no_permission_to_draw(play):
    """A move from the deck into a hand is a draw or a deal, whatever action it names."""
    game = at_table(play, {"preset": "dealer", "pile": "players"})
    game.refuses(Move(ONE, "pile", DECK, "hand:1"), NotHost, "only the host to draw")
    game.refuses(Move(ONE, "pile", DECK, "hand:2"), NotHost, "only the host to deal")
    assert game.decide(Move(ONE, "pile", DECK, "pile:x"))


def test_moving_a_card_face_up_is_turning_it(play):
    game = at_table(play, {"turn": "host"})
    for source, to in ((DECK, "pile:y"), ("pile:x", "pile:y"), ("pile:x", "pile:x")):
        game.refuses(Move(ONE, "pile", source, to, face="up"), NotHost, "only the host to turn")
        assert game.decide(Move(ONE, "pile", source, to))
        assert game.decide(Move(HOST, "pile", source, to, face="up"))


def test_moving_a_card_face_up_into_a_hand_is_showing_it(play):
    game = at_table(play, {"show": "host"})
    for to in ("hand:1", "hand:2"):
        game.refuses(Move(ONE, "pile", "hand:1", to, face="up"), NotHost, "only the host to show")
        assert len(game.decide(Move(ONE, "pile", "hand:1", to))) == 1
        moved, shown = game.decide(Move(HOST_AT_ONE, "pile", "hand:1", to, face="up"))
        assert (moved.slot, moved.to) == (shown.slot, to)
    assert game.decide(Move(ONE, "play", "hand:1", "pile:x", face="up"))  # that is playing


def test_collected_cards_are_not_shown(play):
    game = at_table(play, {"collect": "host"})
    up = Move(HOST, "collect", "hand:1", DISCARD, face="up")
    game.refuses(up, NotEntitled, "collected face down")
    assert game.decide(Move(HOST, "collect", "hand:1", DISCARD))


def test_unknown_members_of_the_rules_are_kept():
    rules = Rules.check({"seats": 4, "stakes": "matches", "join": "invite", "watch": "nobody"})
    assert rules.given["stakes"] == "matches"
    assert (rules.seats, rules.invited, rules.watched) == (4, True, False)
    assert (Rules.check({}).seats, Rules.check({}).invited, Rules.check({}).watched) == (
        10,
        False,
        True,
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [("comit_ms", "commit_ms"), ("presets", "preset"), ("seat", "seats"), ("watched", "watch")],
)
def test_a_misspelled_rule_is_refused_with_the_name_that_was_meant(name, meant):
    with pytest.raises(BadRequest, match=f"^Unknown rule {name}; did you mean {meant}\\?"):
        check_names({"stakes": 1, name: 1})
    assert Rules.read({name: 1}).given == {name: 1}  # old logs have it


def test_a_rule_in_another_case_is_refused():
    with pytest.raises(BadRequest, match="Unknown rule Deck; did you mean deck"):
        Rules.check({"Deck": "54"})


def test_free_names_are_not_compared_with_known_ones():
    names = ("x_seat", "x_presets", "stakes", "note", "player", "dealer", "variant", "turn_ms")
    check_names(dict.fromkeys((*names, *KNOWN)))


@pytest.mark.parametrize("name", ["commit_ms", "reveal_ms"])
def test_waits_are_from_a_tenth_of_a_second_to_ten_minutes(name):
    for wait in (100, 600_000):
        Rules.check({name: wait})
    for refused in (99, 600_001, 1000.0, True, "1000", None):
        with pytest.raises(BadRequest, match=f"'{name}' must be 100 to 600000"):
            Rules.check({name: refused})


@pytest.mark.parametrize("seats", [0, -1, "4", True, None, 2.5])
def test_a_log_with_invalid_rules_is_still_read(seats):
    odd = {"seats": seats, "draw": "dogs", "preset": 3, "join": [], "watch": {}}
    rules = Rules.read(odd)
    assert rules.seats == 10
    assert rules.who == PRESETS["free"]


def test_a_pack_is_a_name_and_listed_is_true_or_false():
    given = {"pack": "spanish-40", "listed": False, "game": "Whist, as at home"}
    assert Rules.check(given).given == given
    assert (Rules.check({}).listed, Rules.check({"listed": True}).listed) == (True, True)
    assert not Rules.check(given).listed
    for pack in ("Spanish", "", "a" * 65, "a/b", 5, None):
        with pytest.raises(BadRequest, match="The rule 'pack' must be the name of a pack"):
            Rules.check({"pack": pack})
    for listed in ("false", 0, None):
        with pytest.raises(BadRequest, match="The rule 'listed' must be true or false"):
            Rules.check({"listed": listed})


VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    "",
    "x",
    "free",
    [],
    ["free"],
    {},
    {"free": 1},
    [[1]],
)
ALLOWED = {
    "preset": ("free",),
    "seats": (1,),
    "name": ("x", "free"),
    "pack": ("x", "free"),
    "game": ("", "x", "free"),
    "listed": (True, False),
    "insecure_test_deck": (True,),
    "broadcast": (0, 1),
    "deck": VALUES,  # `deck_codes` of the gateway looks at them
}
"""Of these values."""


@pytest.mark.parametrize("name", KNOWN)
def test_no_rule_of_a_new_table_has_a_value_of_another_type(name):
    allowed = [repr(value) for value in ALLOWED.get(name, ())]
    for value in VALUES:
        if repr(value) not in allowed:
            with pytest.raises(BadRequest, match=r"rule|seats|The name"):
                Rules.check({name: value})
        Rules.read({name: value})  # an old log may have any


def test_old_logs_have_other_values_of_the_newer_members():
    read = Rules.read({"pack": {"mine": 1}, "listed": "no", "game": 5})
    assert read.listed


def test_names_like_those_of_newer_members_stay_free():
    names = dict.fromkeys(("packs", "Pack", "games", "Game", "gamer", "list", "listened"))
    check_names(names)
    Rules.check(names)
