"""Bundles of real tables, played with a real service."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dealer.eventlog import Log
from dealer.eventlog.keys import key_file, load_house_keys
from dealer.game.cards import build
from dealer.game.commands import (
    Actor,
    AddNote,
    CheckDeadlines,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Cut,
    Deal,
    DealtPile,
    Draw,
    DrawAtRandom,
    LeaveSeat,
    Move,
    OpenRound,
    Pass,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeBack,
    TakeSeat,
    TransferHost,
    VacateSeat,
)
from dealer.game.stacks import DISCARD
from dealer.proof.checkpoint import Cosigner
from dealer.proof.round_keys import player_digest
from dealer.service import LiveTable, Service
from tests.proof.log_builder import some_bytes
from tests.web.js_verifier import Bundle

HOST = Actor(host=True)


class Played(NamedTuple):
    """A bundle, and the seed of the key that signed it."""

    bundle: Bundle
    seed: bytes


@dataclass
class TableInPlay:
    """A live table, with helpers to play at it."""

    service: Service
    live: LiveTable
    seats: range
    entropy: str

    async def do(self, *commands: Command) -> None:
        for command in commands:
            await self.service.execute(self.live, command)

    async def open_round(self, deck: tuple[str, ...]) -> None:
        await self.do(OpenRound(HOST, deck, self.entropy, 60_000, 60_000))

    @property
    def number(self) -> int:
        return len(self.live.table.round_versions)

    @property
    def k(self) -> int:
        assert self.live.table.round is not None
        return self.live.table.round.k

    def nonce(self, seat: int) -> bytes:
        return some_bytes("r", self.number, self.k, seat)

    async def shuffle(self, *silent: int, **how: object) -> None:
        """Shuffle until the seal; `silent` seats withhold, which voids the first shuffle."""
        if self.entropy == "players":
            for seat in self.seats:
                await self.commit(seat)
        await self.do(StartShuffle(HOST, **how))  # type: ignore[arg-type]
        if self.entropy == "players":
            number, k = self.number, self.k
            for seat in reversed(self.seats):
                if seat not in silent:
                    nonce = self.nonce(seat) if self.k == k else b""
                    await self.do(RevealEntropy(Actor(seat=seat), number, k, nonce))
        if silent:
            await self.pass_deadlines()  # the silent seats withhold, and a new shuffle starts
            first, *others = (seat for seat in self.seats if seat not in silent)
            await self.commit(first)
            if others:
                await self.pass_deadlines()  # these are left out
            nonce = self.nonce(first)
            await self.do(RevealEntropy(Actor(seat=first), self.number, self.k, nonce))

    async def commit(self, seat: int) -> None:
        digest = player_digest(
            table=self.live.id, round=self.number, k=self.k, seat=seat, nonce=self.nonce(seat)
        )
        await self.do(CommitEntropy(Actor(seat=seat), self.number, self.k, digest))

    async def pass_deadlines(self) -> None:
        await self.do(CheckDeadlines(self.service.now() + 10**6))

    async def cosign(self, seat: int) -> None:
        _, note = await self.service.checkpoints.checkpoint(self.live)
        line = player_signer(seat).cosign(note, time=self.service.now() // 1000)
        await self.service.checkpoints.cosign(self.live, line)

    async def play(self) -> None:
        """A few moves of every kind, by seats 1 and 2."""
        one, two = Actor(seat=1), Actor(seat=2)
        await self.do(
            Deal(HOST, 2),
            Draw(one, 1, where="bottom"),
            Cut(two, 3),
            Move(one, "burn", "deck", "pile:burn", count=1),
            Show(one, "hand:1"),
            Move(one, "discard", "hand:1", DISCARD, count=1),
            Move(one, "give", "hand:1", "hand:2", count=1),
            Move(two, "play", "hand:2", "pile:table", count=2, face="up"),
            Show(HOST, "deck", to=2),
            Draw(two, 1, source="pile:table"),
        )
        await self.pass_and_take_back()

    async def pass_and_take_back(self) -> None:
        """Seat 1 passes a card twice, and the host delivers it; a deal to a pile, moved whole."""
        one, two = Actor(seat=1), Actor(seat=2)
        assert self.live.table.round is not None
        passed = Pass(one, (self.live.table.round.cards("hand:1")[0],), 2)
        await self.do(
            Move(one, "pile", "hand:1", "hand:1", where="bottom"),
            TakeBack(one),
            passed,
            TakeBack(one),
            passed,
            Pass(HOST),
            Deal(HOST, 1, piles=(DealtPile("pile:board", 2, "up"),)),
            Move(one, "pile", "pile:board", "pile:won-1", whole=True),
            TakeBack(two),
            Show(two, "hand:2", whole=True),
            Draw(two, source="pile:board", whole=True),
            TakeBack(two),
        )


def player_signer(seat: int) -> Cosigner:
    return Cosigner(some_bytes("player", seat))


async def _sit(service: Service, seats: int, entropy: str) -> TableInPlay:
    live, _ = await service.open_table({"preset": "shared", "note": "Zoë’s “club” \\ 🂡"})
    table = TableInPlay(service, live, range(1, seats + 1), entropy)
    for seat in table.seats:
        key = player_signer(seat).public_key if seat % 2 else None
        await table.do(TakeSeat(f"Ada {seat} 🂡", seat, key))
    return table


async def _two_with_nonces(service: Service) -> TableInPlay:
    """Two players with nonces; a second shuffle, a voided one, and a second round."""
    at = await _sit(service, 2, "players")
    await at.open_round(build())
    await at.shuffle()
    await at.cosign(1)
    await at.play()
    await at.shuffle(2, algorithm="forward")
    await at.play()
    await at.do(CloseRound(HOST))
    await at.open_round(build(cards=("Aa", "Bb", "Cc", "Dd", "Ee", "Ff", "Gg", "Hh")))
    await at.shuffle(steps=3)
    await at.do(Draw(Actor(seat=2), 2), LeaveSeat(Actor(seat=1)), CloseRound(HOST))
    await at.do(CloseTable(HOST))
    return at


async def _ten_at_random(service: Service) -> TableInPlay:
    """Ten players, 54 cards, random draws; the second round stays open."""
    at = await _sit(service, 10, "house")
    for _ in range(2):
        await at.open_round(build(jokers=2))
        await at.shuffle()
        await at.play()
        for seat in (3, 10):
            actor = Actor(seat=seat)
            await service.random_draws.draw(at.live, DrawAtRandom(actor, 3))
        await at.shuffle(stack=DISCARD)
        if at.number == 1:
            await at.do(CloseRound(HOST))
    return at


async def _shoe(service: Service, *, decks: int, seats: int) -> TableInPlay:
    at = await _sit(service, seats, "players")
    await at.open_round(build(decks=decks))
    await at.shuffle()
    await at.play()
    await at.shuffle(*([seats] if decks == 2 else []))
    await at.play()
    await at.do(CloseRound(HOST))
    await at.cosign(seats if seats % 2 else 1)
    return at


async def _changing_seats(service: Service) -> TableInPlay:
    """A bot, notes, a removed players, one in the middle of a shuffle, and another host."""
    at = await _sit(service, 2, "players")
    one, server = Actor(seat=1), Actor(service=True)
    await at.do(TakeSeat("Robby", 3, player_signer(3).public_key, bot=True))
    await at.do(AddNote(one, "poker.bet", '{"bet":5}'))
    await at.open_round(build())
    for seat in (1, 2):
        await at.commit(seat)
    await at.do(
        StartShuffle(HOST),
        AddNote(server, "chat", "Zoë’s “note” \\ 🂡"),
        VacateSeat(HOST, 3, "away"),
        *(RevealEntropy(Actor(seat=seat), at.number, 0, at.nonce(seat)) for seat in (2, 1)),
    )
    await at.play()
    await at.do(VacateSeat(server, 2, "banned"), TransferHost(server, 1), AddNote(server, "x", ""))
    await at.do(AddNote(server, "readmit", "Robby"), TakeSeat("Robby", 2, bot=True))
    await at.do(CloseRound(one), CloseTable(one))
    return at


async def _all(directory: Path, *, largest: bool) -> list[Played]:
    url = f"sqlite:///{directory / 'dealer.db'}"
    async with await Log.open(url) as log:
        keys = await load_house_keys(log, key_file(url), fresh=secrets.token_bytes(32))
        service = Service(log, keys)
        tables = {
            "2 seats, 52 cards": await _two_with_nonces(service),
            "10 seats, 54 cards": await _ten_at_random(service),
            "3 seats, 104 cards": await _shoe(service, decks=2, seats=3),
            "changing seats": await _changing_seats(service),
        }
        if largest:
            tables["10 seats, 416 cards"] = await _shoe(service, decks=8, seats=10)
        played = []
        for name, table in tables.items():
            lines = [line async for line in service.bundle(table.live)]
            played.append(
                Played(Bundle(name, lines, service.keys.public_key.hex()), keys.signing_seed)
            )
        await service.close()
        return played


def real_tables(*, largest: bool = True) -> list[Played]:
    """Honest bundles of 2 to 10 seats and 52 to 416 cards, the largest last."""
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(_all(Path(directory), largest=largest))
