"""A spectator's verifier rejects events that the rules do not allow."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dealer.client.event_verifier import EventVerifier
from dealer.errors import HouseCheated
from dealer.game.commands import Draw, LeaveSeat
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    RoundClosed,
    RoundOpened,
    SeatLeft,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableClosed,
    TableOpened,
)
from dealer.proof import canonical, codec
from dealer.proof.opened import opened_commitment, separate

SALT = bytes(32)
REFUSED = "cannot have happened|cannot be a leaf of this log|something malformed"
SLOTS = (SALT,) * 52


def frame_of(house, event, version):
    """The frame of an event that the rules do not allow."""
    to_hand = isinstance(event, CardMoved) and event.to.startswith("hand:")
    hides = to_hand or isinstance(event, CardsSwapped | CardDrawn)
    kind, table = type(event).__name__, house.frames[0]["table"]
    public, part = separate(kind, codec.public(event))
    commit = "ab" * 32 if hides else None
    if part:
        commit = opened_commitment(
            table=bytes.fromhex(table), version=version, salt=SALT, part=part
        ).hex()
    leaf = codec.leaf(
        at=house.clock + 100,
        commit=commit,
        public=canonical.dump(public),
        table=table,
        type=kind,
        v=codec.SCHEMAS[kind],
        version=version,
    )
    opening = {"opened": {"part": part, "salt": SALT.hex()}} if part else {}
    return json.loads(leaf) | opening


def assert_cheat(house, event, swaps=0):
    """The event raises HouseCheated after the frames of the house and `swaps` shuffle steps."""
    watcher = EventVerifier(house.frames[0]["table"])
    house.feed(watcher)
    if swaps:
        fork = house.fork()
        fork.finish()
        for frame in fork.frames[watcher.version :][:swaps]:
            watcher.event(frame)
    with pytest.raises(HouseCheated, match=REFUSED):
        watcher.event(frame_of(house, event, watcher.version + 1))


OPENED = RoundOpened(1, ("As", "Ks"), "house", 100, 100, SALT)


@pytest.mark.parametrize(
    "event",
    [
        TableOpened("x", SALT, {}),
        SeatTaken(1, "Eve"),
        SeatTaken(0, "Eve"),
        SeatLeft(3),
        RoundClosed(1, SALT),
        CardDrawn(1, 1, "deck", 0, None),
        replace(OPENED, round=2),
        replace(OPENED, deck=("As", "As")),
        replace(OPENED, entropy="clock"),
        replace(OPENED, commitment=b""),
        replace(OPENED, commit_ms=-1),
    ],
)
def test_between_rounds(house, event):
    assert_cheat(house, event)


STARTED = ShuffleStarted(1, 0, "deck", 52, "backward", 51)


@pytest.mark.parametrize(
    "event",
    [
        OPENED,
        TableClosed(),
        replace(STARTED, k=1),
        replace(STARTED, n=51),
        replace(STARTED, steps=52),
        replace(STARTED, algorithm="riffle"),
        replace(STARTED, algorithm="forward", steps=50),
        replace(STARTED, stack="hand:1"),
        replace(STARTED, round=2),
        EntropyCommitted(1, 0, 1, SALT),
        EntropyClosed(1, 0),
        CardsSwapped(1, 0, 0, 51, None),
        DeckSealed(1, 0, 0, SLOTS),
        CardDrawn(1, 1, "deck", -1, None),
        CardMoved(1, -1, "deck", "pile:burn", 0, None),
        StackCut(1, "deck", 53),
    ],
)
def test_before_a_shuffle(house, event):
    house.open_round()
    assert_cheat(house, event)


@pytest.mark.parametrize(
    ("event", "swaps"),
    [
        (STARTED, 0),
        (RoundClosed(1, SALT), 0),
        (StackCut(1, "deck", 1), 0),
        (EntropyClosed(1, 0), 0),
        (ShuffleVoided(1, 0), 0),
        (EntropyRevealed(1, 0, 1, SALT), 0),
        (CardsSwapped(1, 0, 1, 50, None), 0),
        (CardsSwapped(1, 0, 0, 50, None), 0),
        (CardsSwapped(1, 1, 0, 51, None), 0),
        (CardsSwapped(1, 0, 51, 0, None), 51),
        (DeckSealed(1, 0, 0, SLOTS), 50),
        (DeckSealed(1, 0, 1, SLOTS), 51),
        (DeckSealed(1, 0, 0, SLOTS[1:]), 51),
        (DeckSealed(1, 0, 0, (b"",) * 52), 51),
    ],
)
def test_during_a_shuffle(house, game, event, swaps):
    house.open_round()
    house.do(game.start)
    assert_cheat(house, event, swaps)


@pytest.mark.parametrize(
    "event",
    [
        CardsSwapped(1, 0, 0, 51, None),
        DeckSealed(1, 0, 0, SLOTS),
        EntropyCommitted(1, 0, 2, SALT),
        EntropyRevealed(1, 0, 1, SALT),
        EntropyRevealed(1, 0, 2, b"short"),
        EntropyCommitted(1, 0, 1, SALT),
    ],
)
def test_while_a_reveal_is_missing(house, game, event):
    """Bob has committed, Ada has not, and the deadline has passed."""
    house.open_round(entropy="players")
    house.do(game.commit(game.bob, 1, 0, SALT))
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    assert_cheat(house, event)


@pytest.mark.parametrize(
    "event",
    [
        EntropyCommitted(1, 1, 2, SALT),
        EntropyCommitted(1, 0, 1, SALT),
        EntropyCommitted(1, 1, 3, SALT),
        EntropyCommitted(1, 1, 1, b"short"),
    ],
)
def test_after_a_void(house, game, event):
    """Bob has withheld his nonce."""
    house.open_round(entropy="players")
    house.do(game.commit(game.bob, 1, 0, SALT))
    house.do(game.start)
    house.do(game.late(house.clock + 10_000))
    house.do(game.late(house.clock + 20_000))
    assert_cheat(house, event)


@pytest.mark.parametrize(
    "event",
    [
        CardDrawn(1, 1, "deck", 51, None),
        CardDrawn(1, 1, "deck", 52, None),
        CardDrawn(1, 1, "hand:2", 50, None),
        CardDrawn(1, 3, "deck", 40, None),
        CardMoved(1, 51, "deck", "pile:burn", 0, None),
        CardMoved(1, 40, "deck", "pile:burn", 1, None),
        CardMoved(1, 40, "deck", "deck", 48, None),
        CardMoved(1, 40, "deck", "the floor", 0, None),
        CardShown(1, 52, "As", SALT),
        CardShown(1, 40, "XX", SALT),
        CardPeeked(1, -1, 1, None),
        StackCut(1, "hand:1", 0),
        StackCut(1, "pile:none", 1),
    ],
)
def test_after_the_deal(dealt, event):
    assert_cheat(dealt, event)


def test_cards_that_no_shuffle_reached(house, game):
    house.open_round()
    house.shuffle(steps=2)
    house.do(Draw(game.ada, 2))
    assert_cheat(house, CardDrawn(1, 1, "deck", 49, None))
    assert_cheat(house, CardMoved(1, 49, "deck", "hand:1", 0, None))


def test_after_the_end(house, game):
    house.do(LeaveSeat(game.bob))
    house.record(TableClosed())
    assert_cheat(house, SeatTaken(2, "Eve"))
