"""Random commands in random order: no card is lost, duplicated or seen too early."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dealer.errors import Refused, UnknownTable
from dealer.game import commands as c
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import CardShown, CardsSwapped, RoundOpened
from dealer.game.state import SeatHolder, Table, evolve
from dealer.game.view import SPECTATOR, Viewer, snapshot
from tests.harness.card_truth import may_see
from tests.harness.depth import amount

pytestmark = pytest.mark.slow

SEATS = (1, 2, 3)
CODES = "abcdefgh"
HOST = c.Actor(host=True)

actors = st.sampled_from(
    [HOST, *(c.Actor(seat=seat) for seat in SEATS), c.Actor(True, 1), c.Actor(), c.Actor(seat=9)]
)
stacks = st.sampled_from(
    ["deck", "deck", "pile:x", "pile:burn", "hand:1", "hand:2", "hand:3", "hand:9"]
)
odd_stacks = st.sampled_from(["hand:0", "hand:x", "pile:", "heap", ""])
bytes_32 = st.sampled_from([b"d" * 32, b"e" * 32, b""])
small = st.integers(-1, 9)
seats = st.sampled_from([None, 0, *SEATS, 9])


dealt_piles = st.builds(c.DealtPile, stacks | odd_stacks, small, st.sampled_from(["up", "down"]))


def refs(table: Table, stack: str):
    """References to cards by slot or code, mostly to cards of this stack."""
    strange = st.integers(-2, 30) | st.sampled_from(CODES)
    if table.round is None or not (present := table.round.cards(stack)):
        one = strange
    else:
        slots = [card for card in present if card >= 0] or [0]
        codes = [table.round.face(card) or "?" for card in present]
        one = st.sampled_from(slots) | st.sampled_from(slots) | st.sampled_from(codes) | strange
    return st.none() | st.lists(one, max_size=4).map(tuple)


def any_command(table: Table) -> st.SearchStrategy[c.Command]:
    """Any command by any actor, valid or not."""
    round_, k = (table.round.number, table.round.k) if table.round else (1, 0)
    rounds, ks = st.sampled_from([round_, round_, 1]), st.sampled_from([k, k, 0])

    @st.composite
    def on_stack(draw, kind):
        stack = draw(stacks | stacks | stacks | odd_stacks)
        actor, cards = draw(actors), draw(refs(table, stack))
        if kind is c.Draw:
            end, whole = draw(st.sampled_from(["top", "bottom"])), draw(st.booleans())
            return c.Draw(actor, draw(small), stack, end, cards, whole)
        if kind is c.Show:
            return c.Show(actor, stack, cards, draw(seats), draw(st.booleans()))
        action = draw(
            st.sampled_from(["burn", "pile", "discard", "play", "give", "return", "collect"])
        )
        where = draw(st.sampled_from(["top", "bottom"]) | small)
        count = draw(st.none() | small)
        to = draw(stacks | stacks | stacks | odd_stacks)
        face = draw(st.sampled_from(["up", "down"]))
        whole = draw(st.sampled_from([False, False, True]))
        return c.Move(actor, action, stack, to, cards, count, where, face, whole)

    return st.one_of(
        on_stack(c.Draw),
        on_stack(c.Show),
        on_stack(c.Move),
        on_stack(c.Move),
        st.builds(
            c.Deal, actors, small, st.none() | st.lists(st.sampled_from(SEATS)).map(tuple),
            st.lists(dealt_piles, max_size=2).map(tuple),
        ),
        st.builds(c.TakeBack, actors),
        st.builds(c.Pass, actors, st.none() | refs(table, "hand:1"), seats),
        st.builds(c.Cut, actors, small, stacks | odd_stacks),
        st.builds(
            c.StartShuffle,
            actors,
            stacks | odd_stacks,
            st.sampled_from(["backward", "forward", "sideways"]),
            st.none() | small,
        ),
        st.builds(c.DrawAtRandom, actors, small, stacks | odd_stacks),
        st.builds(c.CommitEntropy, actors, rounds, ks, bytes_32),
        st.builds(c.RevealEntropy, actors, rounds, ks, bytes_32),
        st.builds(c.TakeSeat, st.sampled_from(["ann", "", "x" * 65]), seats),
        st.builds(c.LeaveSeat, actors),
        st.builds(c.VacateSeat, actors, seats.filter(bool), st.sampled_from(["", "x" * 257])),
        st.builds(c.TransferHost, actors, seats.filter(bool)),
        st.builds(c.MoveSeat, actors, st.integers(0, 5), seats),
        st.builds(c.AddNote, actors, st.sampled_from(["chat", "A"]), st.sampled_from(["", "\n"])),
        st.builds(c.FinishShuffle, bytes_32),
        st.builds(
            c.OpenRound, actors, st.sampled_from([("a",), (), ("a", "a"), tuple(CODES)]),
            st.sampled_from(["players", "house", "dice"]), st.sampled_from([0, 100]), st.just(100),
        ),
        st.builds(c.OpenTable, st.just("o"), st.just(b"k" * 32), st.just({})),
    )  # fmt: skip


def likely(table: Table) -> st.SearchStrategy[c.Command]:
    """Moves of cards of the table, mostly from the stack that holds them."""
    round_ = table.round
    assert round_ is not None
    filled = [stack for stack, cards in round_.stacks.items() if cards]
    on_table = [card for stack in filled for card in round_.stacks[stack] if card >= 0]

    @st.composite
    def command(draw):
        source = draw(st.sampled_from(filled))
        present = [card for card in round_.stacks[source] if card >= 0]
        pool = st.sampled_from(present or [0]) | st.sampled_from(on_table or [0])
        cards = draw(st.none() | st.lists(pool, min_size=1, max_size=3, unique=True).map(tuple))
        seat = int(source[5:]) if source.startswith("hand:") else draw(st.sampled_from(SEATS))
        actor = c.Actor(True, seat)
        kind = draw(st.sampled_from(["draw", "move", "move", "show", "pass", "take back"]))
        if kind == "pass":
            return c.Pass(actor, cards, draw(st.sampled_from(SEATS)))
        if kind == "take back":
            return c.TakeBack(actor)
        if kind == "draw":
            return c.Draw(actor, source=source, cards=cards)
        if kind == "show":
            return c.Show(actor, source, cards, draw(st.sampled_from([None, *SEATS])))
        where = draw(st.sampled_from(["top", "bottom", 0, 1, 2]))
        face = draw(st.sampled_from(["up", "down"]))
        return c.Move(actor, "pile", source, draw(stacks), cards, None, where, face)

    return command()


def redacted(event, viewer: Viewer, version: int):
    """The event as a viewer receives it, without the hidden parts that they may not see."""
    if isinstance(event, CardsSwapped):
        return replace(event, j=None)
    if getattr(event, "card", None) is None or isinstance(event, CardShown):
        return event
    face = event.private_face()
    if face is not None and may_see(viewer, face.seat, version):
        return event
    return replace(event, card=None)


class Reader:
    """A reader who folds the events they receive."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.table = Table()
        self.seen: set[int] = set()

    def take(self, event, at: int) -> None:
        version = self.table.version + 1
        event = redacted(event, self.viewer, version)
        evolve(self.table, event, at)
        if isinstance(event, RoundOpened):
            self.seen = set()
        if getattr(event, "card", None) is not None:
            self.seen.add(event.slot)

    def agrees(self, table: Table) -> None:
        mine, complete = self.table.round, table.round
        if complete is None:
            assert self.table == table
            return
        assert mine is not None
        for name in type(complete).__slots__:
            if name not in ("faces", "shuffle", "stacks"):
                assert getattr(mine, name) == getattr(complete, name), name
        if complete.shuffle is None:
            assert mine.stacks == complete.stacks
            assert mine.shuffle is None
        else:
            assert {stack: len(cards) for stack, cards in mine.stacks.items()} == {
                stack: len(cards) for stack, cards in complete.stacks.items()
            }
            assert mine.shuffle is not None
            assert replace(mine.shuffle, swaps_hidden=False) == complete.shuffle
        for slot, (known, face) in enumerate(zip(mine.faces, complete.faces, strict=True)):
            assert known in (None, face)
            assert (known is None) <= (slot not in self.seen)


class AnyGame(RuleBasedStateMachine):
    def __init__(self, play) -> None:
        super().__init__()
        self.play = play

    @initialize(
        preset=st.sampled_from(["free", "dealer", "shared"]),
        entropy=st.sampled_from(["players", "house"]),
        shuffled=st.sampled_from([True, True, False]),
        cards=st.integers(1, len(CODES)),
        collect=st.sampled_from(["host", "nobody"]),
    )
    def open(self, preset, entropy, shuffled, cards, collect) -> None:
        rules = {"preset": preset, "collect": collect}
        self.game = self.play(deck=CODES[:cards], entropy=entropy, shuffled=shuffled, rules=rules)
        self.readers = [Reader(SPECTATOR), *(Reader(SeatHolder(seat, seat)) for seat in SEATS)]
        self.again = Table()
        self.checked = 0
        self.check()

    def attempt(self, command) -> None:
        self.game.now += 7
        with contextlib.suppress(Refused):
            self.game.do(command)
        self.check()

    @rule(data=st.data())
    def anything(self, data) -> None:
        self.attempt(data.draw(any_command(self.game.table)))

    @precondition(lambda self: self.game.table.round is not None)
    @rule(data=st.data())
    def play_on(self, data) -> None:
        self.attempt(data.draw(likely(self.game.table)))

    @precondition(lambda self: self.game.table.round is not None)
    @rule(data=st.data())
    def play_more(self, data) -> None:
        self.attempt(data.draw(likely(self.game.table)))

    @precondition(lambda self: self.game.table.round is None and not self.game.table.closed)
    @rule(cards=st.integers(1, len(CODES)), entropy=st.sampled_from(["players", "house"]))
    def open_round(self, cards, entropy) -> None:
        self.attempt(c.OpenRound(HOST, tuple(CODES[:cards]), entropy, 100, 100))

    @precondition(lambda self: self.game.table.round is not None)
    @rule(steps=st.none() | st.integers(0, 3), stack=st.sampled_from(["deck", "deck", "pile:x"]))
    def shuffle(self, steps, stack) -> None:
        self.attempt(c.StartShuffle(HOST, stack, "backward", steps))

    @precondition(lambda self: self.game.table.round and self.game.round.shuffle)
    @rule()
    def settle(self) -> None:
        self.game.settle()
        self.check()

    @precondition(lambda self: self.game.table.round is not None)
    @rule(seat=st.sampled_from(SEATS))
    def commit(self, seat) -> None:
        self.attempt(self.game.commit(seat))

    @precondition(lambda self: self.game.table.round is not None)
    @rule(seat=st.sampled_from(SEATS))
    def reveal(self, seat) -> None:
        self.attempt(self.game.reveal(seat))

    @rule(late=st.sampled_from([0, 50, 100, 10_000]))
    def time_passes(self, late) -> None:
        self.game.now += late
        self.attempt(c.CheckDeadlines(self.game.now))

    @rule(absent=st.sets(st.integers(1, 4)), k=st.integers(0, 3))
    def players_are_absent(self, absent, k) -> None:
        seats = self.game.table.seats.items()
        holders = frozenset((seat, player.taken_at) for seat, player in seats if seat in absent)
        number = len(self.game.table.round_versions)
        self.attempt(c.CloseEntropy(number, k, holders))

    @precondition(lambda self: self.game.table.version > 60)
    @rule(kind=st.sampled_from([c.CloseRound, c.CloseRound, c.CloseTable]))
    def close(self, kind) -> None:
        self.attempt(kind(HOST))

    def check(self) -> None:
        """Invariants after every event."""
        table = self.game.table
        fresh = self.game.events[self.checked :]
        self.checked = len(self.game.events)
        for event, at in fresh:
            evolve(self.again, event, at)
            for reader in self.readers:
                reader.take(event, at)
        assert self.again == table
        assert table.version == len(self.game.events)
        for seat in table.seats:
            holder = table.holder(seat)
            assert table.latest(table.earliest(holder)) == holder
        if table.round is not None:
            accounted_for(table)
        for reader in self.readers:
            reader.agrees(table)
        for reader in self.readers:
            shown = dict(snapshot(table, reader.viewer).get("round", {}).get("cards", []))
            assert set(shown) <= reader.seen | self.inherited(reader)
            assert all(table.round.stack_of(slot) for slot in shown)

    def inherited(self, reader: Reader) -> set[int]:
        """A player who takes a seat sees its hand."""
        if self.game.table.round is None or reader.viewer is None:
            return set()
        return set(self.game.round.cards(f"hand:{reader.viewer.seat}"))


def accounted_for(table: Table) -> None:
    """Every card of the round's deck is in one place, and no slot in two."""
    round_ = table.round
    assert round_ is not None
    on_table = [card for cards in round_.stacks.values() for card in cards]
    assert len(set(on_table)) == len(on_table)
    assert Counter(round_.face(card) for card in on_table) == Counter(round_.opened)
    if round_.shuffle is not None:
        assert len(round_.cards(round_.shuffle.stack)) == round_.shuffle.n
    assert len(round_.sealed) == 32 * len(round_.faces)
    assert len(round_.drawable) == len(round_.faces)


def test_any_game(play):
    class Machine(AnyGame):
        def __init__(self) -> None:
            super().__init__(play)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=amount(30, many=200),
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


@pytest.mark.parametrize(
    "command",
    [
        c.Draw(HOST),
        c.CheckDeadlines(0),
        c.CloseEntropy(1, 0, frozenset()),
        c.FinishShuffle(b""),
        c.TakeSeat("ann"),
    ],
)
def test_no_command_is_accepted_without_a_table(command):
    with pytest.raises(UnknownTable):
        decide(command, Table(), NoRoundSecrets())
