"""The verifier accepts what `decide` allows: random commands, with their events verified."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import Refused
from dealer.game.absence import HOST_TOKEN, Absence
from dealer.game.commands import (
    Actor,
    AddNote,
    CheckDeadlines,
    CloseEntropy,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Cut,
    Deal,
    DealtPile,
    Draw,
    DrawAtRandom,
    FinishShuffle,
    LeaveSeat,
    Move,
    OpenRound,
    OpenTable,
    Pass,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeBack,
    TakeSeat,
    TransferHost,
    VacateSeat,
)
from dealer.game.decide import NoRoundSecrets, decide
from dealer.game.events import EntropyClosed, RoundClosed
from dealer.game.state import SeatHolder, Table, evolve
from dealer.proof import canonical, codec
from dealer.proof.round_keys import RoundKeys, player_digest, secret_length
from dealer.proof.verify import verify
from tests.proof.log_builder import CARDS, LogBuilder, some_bytes

pytestmark = pytest.mark.slow

HOST = Actor(host=True)


class KnownSecret(RoundKeys):
    """A round's keys together with its secret, as `decide` needs them."""

    def __init__(self, table: bytes, number: int, cards: int) -> None:
        self.secret = some_bytes("S", number, length=secret_length(cards))
        super().__init__(table=table, round=number, secret=self.secret)


class Play:
    def __init__(self, collect: str) -> None:
        self.log = LogBuilder()
        self.table = Table()
        self.secrets: KnownSecret | NoRoundSecrets = NoRoundSecrets()
        key = self.log.signer.public_key
        rules = {"preset": "shared", "seats": 4, "collect": collect}
        self.do(OpenTable(self.log.origin, key, rules))

    def do(self, command: Command) -> None:
        secrets = self.secrets
        if isinstance(command, OpenRound):
            secrets = KnownSecret(
                self.log.table, len(self.table.round_versions) + 1, len(command.deck)
            )
        try:
            events = decide(command, self.table, secrets)
        except Refused:
            return
        self.secrets = secrets
        for event in events:
            hidden = codec.encode_hidden(event)
            if isinstance(secrets, KnownSecret):
                self.log.keys = secrets
            part = None if hidden is None else canonical.decode(hidden)
            public = codec.public(event)
            if "from" in public:
                public["source"] = public.pop("from")
            self.log.append(type(event).__name__, part, **public)
            evolve(self.table, event, self.log.at)
            if isinstance(event, EntropyClosed):
                self.c1 = self.log.tree.root()
            if isinstance(event, RoundClosed):
                self.secrets = NoRoundSecrets()
        round_ = self.table.round
        if round_ is not None and round_.shuffle is not None and round_.shuffle.ready():
            self.do(FinishShuffle(self.c1))

    def nonce(self, seat: int) -> bytes:
        round_ = self.table.round
        return some_bytes("r", round_.number if round_ else 0, round_.k if round_ else 0, seat)

    def commit(self, seat: int) -> CommitEntropy:
        round_ = self.table.round
        number, k = (round_.number, round_.k) if round_ else (1, 0)
        digest = player_digest(
            table=self.log.table, round=number, k=k, seat=seat, nonce=self.nonce(seat)
        )
        return CommitEntropy(Actor(seat=seat), number, k, digest)

    def reveal(self, seat: int) -> RevealEntropy:
        round_ = self.table.round
        number, k = (round_.number, round_.k) if round_ else (1, 0)
        return RevealEntropy(Actor(seat=seat), number, k, self.nonce(seat))

    def held(self, seat: int) -> tuple[int, ...]:
        """At most two cards of a seat."""
        round_ = self.table.round
        return () if round_ is None else tuple(round_.cards(f"hand:{seat}")[:2])

    def close_entropy(self, absent: set[int]) -> CloseEntropy:
        round_ = self.table.round
        number, k = (round_.number, round_.k) if round_ else (1, 0)
        players = self.table.seats.items()
        holders = frozenset((seat, each.taken_at) for seat, each in players if seat in absent)
        return CloseEntropy(number, k, holders)

    def absence(self, absent: set[int]) -> Absence:
        players = self.table.seats.items()
        holders = {
            SeatHolder(seat, each.taken_at): 60.0 for seat, each in players if seat in absent
        }
        return Absence(holders | {HOST_TOKEN: 60.0}, long=60.0)


seats = st.integers(1, 4)
places = st.integers(0, 7)
stacks = st.sampled_from(["deck", "pile:burn", "pile:p", "hand:1", "hand:2", "hand:3"])
ends = st.sampled_from(["top", "bottom"])


@st.composite
def command_makers(draw: st.DrawFn) -> Any:
    """A function that makes a command for a `Play`."""
    seat = draw(seats)
    actor, stack, to, n = Actor(seat=seat), draw(stacks), draw(stacks), draw(places)
    algorithm = draw(st.sampled_from(["backward", "forward"]))
    entropy = draw(st.sampled_from(["players", "house"]))
    steps = draw(st.none() | places)
    absent = draw(st.sets(seats))
    face: Any = draw(st.sampled_from(["up", "down"]))
    return draw(
        st.sampled_from(
            [
                lambda p: TakeSeat(f"Ada {seat}", seat),
                lambda p: LeaveSeat(actor),
                lambda p: LeaveSeat(Actor(host=True, seat=seat), p.absence(absent)),
                lambda p: VacateSeat(actor, 1 + n % 4, "", p.absence(absent)),
                lambda p: TransferHost(actor, seat, p.absence(absent)),
                lambda p: VacateSeat(HOST, seat),
                lambda p: TransferHost(HOST, seat),
                lambda p: AddNote(actor, "chat", "hello"),
                lambda p: OpenRound(HOST, CARDS[: n + 1], entropy, 1000, 1000),
                lambda p: StartShuffle(HOST, stack, algorithm, steps),
                lambda p: StartShuffle(HOST),
                lambda p: p.commit(seat),
                lambda p: p.reveal(seat),
                lambda p: p.commit(seat),
                lambda p: p.reveal(seat),
                lambda p: CheckDeadlines(p.log.at + 10_000),
                lambda p: p.close_entropy(absent),
                lambda p: Deal(HOST, 1),
                lambda p: Draw(actor),
                lambda p: Draw(actor, 1, stack, "bottom"),
                lambda p: DrawAtRandom(actor, 1, stack),
                lambda p: Cut(actor, n, stack),
                lambda p: Move(actor, "pile", stack, to, count=1, where=n),
                lambda p: Move(actor, "burn", "deck", "pile:burn", count=1),
                lambda p: Move(actor, "give", f"hand:{seat}", to, count=1),
                lambda p: Show(actor, f"hand:{seat}"),
                lambda p: Show(HOST, stack, to=seat),
                lambda p: Move(actor, "pile", f"hand:{seat}", to, whole=True),
                lambda p: Pass(actor, p.held(seat), 1 + seat % 3),
                lambda p: Pass(HOST),
                lambda p: TakeBack(actor),
                lambda p: Deal(HOST, 1, piles=(DealtPile("pile:x", n, face),)),
                lambda p: CloseRound(HOST),
            ]
        )
    )


@given(st.lists(command_makers(), min_size=20, max_size=60), st.sampled_from(["host", "nobody"]))
def test_decided_events_verify(commands: list[Any], collect: str) -> None:
    play = Play(collect)
    start = OpenRound(HOST, CARDS, "house", 1000, 1000)
    for command in (TakeSeat("Ada", 1), TakeSeat("Bea", 2), start, StartShuffle(HOST)):
        play.do(command)
    for command in commands:
        play.do(command(play))
    key = play.log.signer.public_key
    report = verify(play.log.lines(), key=key)
    assert report.fault is None, [leaf["type"] for leaf in play.log.leaves]
    play.do(CheckDeadlines(play.log.at + 10**9))
    for seat in (1, 2, 3, 4):
        play.do(play.reveal(seat))
    play.do(CloseTable(HOST))
    report = verify(play.log.lines(), key=key)
    assert report.fault is None, [leaf["type"] for leaf in play.log.leaves]
