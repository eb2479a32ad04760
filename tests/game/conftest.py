"""Fixtures that play at tables: a command gives events or a refusal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import Refused
from dealer.game.commands import (
    Actor,
    CheckDeadlines,
    Command,
    CommitEntropy,
    FinishShuffle,
    OpenRound,
    OpenTable,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.decide import decide
from dealer.game.events import Event
from dealer.game.stacks import DECK
from dealer.game.state import Table, evolve

HOST = Actor(host=True)


def digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


class FakeHouse:
    """A round's secrets with formulas that are simpler than those of the proof."""

    def __init__(self, name: str = "house") -> None:
        self.secret = digest("secret", name)
        self.commitment = digest("commitment", name)

    def slot_salt(self, slot: int) -> bytes:
        return digest("salt", self.secret, slot)

    def slot_commitments(self, first: int, cards: Sequence[str]) -> list[bytes]:
        return [digest(self.slot_salt(first + n), card) for n, card in enumerate(cards)]

    def player_digest(self, *, k: int, seat: int, nonce: bytes) -> bytes:
        return digest("player", k, seat, nonce)


class Play:
    """A table with all its events and times; `do` decides and applies a command."""

    def __init__(self) -> None:
        self.table = Table()
        self.house = FakeHouse()
        self.events: list[tuple[Event, int]] = []
        self.now = 1_000

    def decide(self, command: Command) -> list[Event]:
        """The events of a command, which are not applied."""
        before = repr(self.table)
        try:
            return decide(command, self.table, self.house)
        finally:
            assert repr(self.table) == before

    def do(self, command: Command) -> list[Event]:
        events = self.decide(command)
        for event in events:
            self.take(event)
        return events

    def take(self, event: Event) -> None:
        evolve(self.table, event, self.now)
        self.events.append((event, self.now))

    def refuses(self, command: Command, refusal: type[Refused], saying: str | None = None) -> None:
        with pytest.raises(refusal, match=saying) as caught:
            self.decide(command)
        assert caught.type is refusal

    def nonce(self, seat: int) -> bytes:
        return digest("nonce", self.round.k, seat)

    def commit(self, seat: int) -> CommitEntropy:
        """The digest of a seat's nonce for the current or the next shuffle."""
        k = self.round.k
        nonce = self.house.player_digest(k=k, seat=seat, nonce=self.nonce(seat))
        return CommitEntropy(Actor(seat=seat), self.round.number, k, nonce)

    def reveal(self, seat: int) -> RevealEntropy:
        return RevealEntropy(Actor(seat=seat), self.round.number, self.round.k, self.nonce(seat))

    def finish(self) -> FinishShuffle:
        return FinishShuffle(digest("root", self.table.version))

    def settle(self) -> None:
        """Commit and reveal for every seat that may, until the shuffle ends with its seal."""
        while (shuffle := self.round.shuffle) is not None:
            if not shuffle.closed_version:
                waiting = set(self.table.seats) - set(shuffle.digests) - self.round.withheld
                self.do(self.commit(min(waiting)))
            elif shuffle.ready():
                self.do(self.finish())
            elif able := [seat for seat in shuffle.missing() if self.opens(seat)]:
                self.do(self.reveal(able[0]))
            else:
                self.now = shuffle.closed_at + self.round.reveal_ms
                self.do(CheckDeadlines(self.now))

    def shuffle(
        self, stack: str = DECK, *, algorithm: str = "backward", steps: int | None = None
    ) -> None:
        self.do(StartShuffle(HOST, stack, algorithm, steps))
        self.settle()

    def opens(self, seat: int) -> bool:
        """Whether the seat is taken and its digest is that of its own nonce."""
        return seat in self.table.seats and self.commit(seat).digest == self.digest_of(seat)

    def digest_of(self, seat: int) -> bytes:
        assert self.round.shuffle is not None
        return self.round.shuffle.digests[seat]

    @property
    def round(self):
        assert self.table.round is not None
        return self.table.round

    def stack(self, name: str) -> list[int]:
        return list(self.round.cards(name))

    def card(self, slot: int) -> str:
        card = self.round.faces[slot]
        assert card is not None
        return card


@pytest.fixture(scope="session")
def play():
    """Open a table with taken `seats` and, by default, an open and shuffled round."""

    def open_table(
        *,
        seats: int = 2,
        deck: Sequence[str] = "abcdefgh",
        entropy: str = "house",
        opened: bool = True,
        shuffled: bool = True,
        steps: int | None = None,
        rules: dict[str, Any] | None = None,
    ) -> Play:
        game = Play()
        game.do(OpenTable("house.example/t/1", digest("key"), rules or {}))
        for seat in range(1, seats + 1):
            game.do(TakeSeat(f"player {seat}", seat))
        if opened:
            game.do(OpenRound(HOST, tuple(deck), entropy, 1_000, 2_000))
            if shuffled:
                game.shuffle(steps=steps)
        return game

    return open_table


@pytest.fixture(scope="session")
def fresh(play):
    """Open a table as `play` does, with an unshuffled round whose entropy is the players'."""
    return partial(play, entropy="players", shuffled=False)


@pytest.fixture(scope="session")
def vectors():
    """The golden vectors of one kind: (name, input, output)."""
    path = Path(__file__).parents[1] / "vectors" / "fairness.json"
    every = json.loads(path.read_text(encoding="utf-8"))

    def of_kind(kind: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        chosen = [(v["name"], v["in"], v["out"]) for v in every if v["kind"] == kind]
        assert chosen
        return chosen

    return of_kind
