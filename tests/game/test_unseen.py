"""Exchanging two cards that a viewer may not see changes nothing that the viewer receives."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dealer.errors import Refused
from dealer.game import commands as c
from dealer.game.decide import decide
from dealer.game.events import CardShown, CardsSwapped, DeckSealed
from dealer.game.state import SeatHolder, Table, evolve
from dealer.game.view import SPECTATOR, Viewer, snapshot
from tests.game.test_state import replay
from tests.harness.card_truth import may_see

CODES = "abcdefgh"
HOST = c.Actor(host=True)
ACTORS = [HOST, c.Actor(seat=1), c.Actor(seat=2), c.Actor(host=True, seat=1)]
VIEWERS = [SPECTATOR, SeatHolder(1, 2), SeatHolder(2, 3)]

actors = st.sampled_from(ACTORS)
stacks = st.sampled_from(["deck", "deck", "pile:x", "hand:1", "hand:2"])
names = st.integers(0, 20) | st.sampled_from(CODES)
cards = st.none() | st.lists(names, min_size=1, max_size=2).map(tuple)
count = st.sampled_from([1, 1, 2, 3])
actions = st.sampled_from(["pile", "discard", "play", "give", "return", "collect", "burn"])
any_command = st.one_of(
    st.builds(c.Draw, actors, count, stacks, st.sampled_from(["top", "bottom"]), cards),
    st.builds(c.Show, actors, stacks, cards, st.sampled_from([None, 1, 2])),
    st.builds(
        c.Move, actors, actions, stacks, stacks, cards, st.none() | count,
        st.sampled_from(["top", "bottom", 1]), st.sampled_from(["up", "down", "down"]),
    ),
    st.builds(c.Deal, st.just(HOST), st.just(1)),
    st.builds(c.TakeBack, actors),
    st.builds(c.Pass, actors, cards, st.sampled_from([1, 2])),
    st.builds(c.Pass, actors),
    st.builds(c.Cut, actors, st.integers(0, 8), stacks),
    st.builds(c.StartShuffle, st.just(HOST), stacks, st.just("backward"), st.none() | count),
)  # fmt: skip


def received(event, viewer: Viewer, version: int):
    """The event as a viewer receives it: the public part and their private face, no commitments."""
    if isinstance(event, DeckSealed):
        return replace(event, slots=(b"",) * len(event.slots))
    if isinstance(event, CardsSwapped):
        return replace(event, j=None)
    if isinstance(event, CardShown):
        return event
    face = event.private_face()
    mine = face is not None and may_see(viewer, face.seat, version)
    hidden = replace(event, card=None) if getattr(event, "card", None) else event
    return hidden, face if mine else None


def seen_by(viewer: Viewer, events) -> set[str]:
    seen = set()
    for version, (event, _) in enumerate(events, start=1):
        face = event.private_face()
        if isinstance(event, CardShown):
            seen.add(event.card)
        elif face is not None and may_see(viewer, face.seat, version):
            seen.add(face.card)
    return seen


def exchanged(events, one: str, other: str):
    """The same game with two cards exchanged: a different first shuffle, the same moves."""
    names = {one: other, other: one}
    first = next(n for n, (event, _) in enumerate(events) if isinstance(event, DeckSealed))
    before = replay(events[:first])
    assert before.round is not None
    faces = [str(before.round.face(card)) for card in before.round.cards("deck")]
    order = [names.get(face, face) for face in faces]
    deck = list(CODES)
    other_events = []
    for n, (event, at) in enumerate(events):
        if isinstance(event, CardsSwapped) and n < first:
            j = deck.index(order[event.i])
            deck[event.i], deck[j] = deck[j], deck[event.i]
            event = replace(event, j=j)
        elif (card := getattr(event, "card", None)) is not None:
            event = replace(event, card=names.get(card, card))
        other_events.append((event, at))
    assert deck == order
    return other_events


def without_commitments(view):
    if "round" in view:
        view["round"]["commitments"] = [slot for slot, _ in view["round"]["commitments"]]
    return view


def outcome(command, table: Table, house, viewer: Viewer):
    """The result of a viewer's own command: the message of a refusal, or the events received."""
    try:
        events = decide(command, table, house)
    except Refused as refusal:
        return type(refusal), str(refusal)
    return [type(event) for event in events], [
        received(event, viewer, table.version + n)
        for n, event in enumerate(events, start=1)
        if not isinstance(event, CardShown) and event.private_face() is None
    ]


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(
    commands=st.lists(any_command, min_size=3, max_size=25),
    viewer=st.sampled_from(VIEWERS),
    pick=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    attempts=st.lists(any_command, min_size=8, max_size=8),
    collect=st.sampled_from(["host", "nobody"]),
)
def test_a_viewer_cannot_distinguish_two_unseen_cards(
    play, commands, viewer, pick, attempts, collect
):
    game = play(rules={"preset": "shared", "collect": collect})
    for command in commands:
        with contextlib.suppress(Refused):
            game.do(command)
            game.settle()
    unseen = sorted(set(CODES) - seen_by(viewer, game.events))
    assume(len(unseen) >= 2)
    one = unseen[pick[0] % len(unseen)]
    other = unseen[pick[1] % len(unseen)]
    assume(one != other)
    others = exchanged(game.events, one, other)
    assert others != game.events

    here, there = Table(), Table()
    for version, ((a, at), (b, _)) in enumerate(zip(game.events, others, strict=True), start=1):
        assert received(a, viewer, version) == received(b, viewer, version)
        evolve(here, a, at)
        evolve(there, b, at)
        for table in (here, there):
            assert table.round is None or None not in table.round.faces
        assert without_commitments(snapshot(here, viewer)) == without_commitments(
            snapshot(there, viewer)
        )
    names: dict[str | None, str] = {one: other, other: one}
    assert here.round is not None
    assert there.round is not None
    assert there.round.faces == [names.get(face, face) for face in here.round.faces]

    me = HOST if viewer is None else c.Actor(seat=viewer.seat)
    for command in attempts:
        mine = replace(command, actor=me)
        assert outcome(mine, here, game.house, viewer) == outcome(mine, there, game.house, viewer)


def test_a_viewer_distinguishes_cards_they_have_seen(play):
    """A control of the comparison: it finds a difference if the viewer may see one."""
    game = play()
    game.do(c.Draw(c.Actor(seat=1)))
    card = game.card(7)
    other = next(code for code in CODES if code != card)
    there = replay(exchanged(game.events, card, other))
    for viewer, equal in ((SPECTATOR, True), (VIEWERS[2], True), (VIEWERS[1], False)):
        views = [without_commitments(snapshot(table, viewer)) for table in (game.table, there)]
        assert (views[0] == views[1]) is equal
