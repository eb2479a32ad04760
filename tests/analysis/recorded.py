"""A small recorded game: the same events, cards and times on every database.

The clock, the house key and every random byte of the service are fixed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest.mock import patch

from dealer.eventlog import Log
from dealer.eventlog.keys import NONCE_BYTES, load_house_keys
from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    AddNote,
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    Deal,
    DealtPile,
    Draw,
    DrawAtRandom,
    LeaveSeat,
    Move,
    OpenRound,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.projector.runner import Projector
from dealer.proof.round_keys import player_digest
from dealer.service import Service
from dealer.service.commands.executor import CommandExecutor
from dealer.service.service import ServiceOptions
from dealer.service.tables.execution import CommandResult, IdempotencyKey
from dealer.service.tables.live_table import LiveTable

START = 1_793_563_200_000
"""2026-11-01 20:00:00 UTC, when the first table is opened."""

MASTER = bytes(range(32))
HOST = Actor(host=True)


@contextmanager
def fixed_bytes() -> Iterator[None]:
    """`secrets.token_bytes` gives the same bytes in each run; no card depends on the nonces."""
    numbers = count(1)

    def token_bytes(length: int) -> bytes:
        return hashlib.shake_128(b"%d" % next(numbers)).digest(length)

    def nonces(executor: CommandExecutor, count: int) -> bytes:
        return bytes(NONCE_BYTES * count)

    with (
        patch.object(secrets, "token_bytes", token_bytes),
        patch.object(CommandExecutor, "_nonces", nonces),
    ):
        yield


class _Player:
    """Plays at one table: each command comes `after` milliseconds after the one before."""

    def __init__(self, service: Service, clock: list[int], live_table: LiveTable) -> None:
        self._service = service
        self._clock = clock
        self.table = live_table
        self._commands = count(1)

    async def do(self, command: Command, *, after: int = 1000) -> CommandResult:
        self._clock[0] += after
        actor = getattr(command, "actor", HOST)
        scope = "host"
        if actor.seat is not None:
            scope = f"seat:{actor.seat}:{self.table.table.seats[actor.seat].taken_at}"
        key = IdempotencyKey(scope, f"command {next(self._commands)}")
        if isinstance(command, DrawAtRandom):
            return await self._service.random_draws.draw(self.table, command, key=key)
        return await self._service.execute(self.table, command, key=key)

    def hand(self, seat: int) -> list[int]:
        assert self.table.table.round is not None
        return list(self.table.table.round.cards(f"hand:{seat}"))

    async def open_round(self, entropy: str = "house") -> None:
        await self.do(OpenRound(HOST, STANDARD, entropy, 60_000, 60_000))

    async def contribute(self, seats: tuple[int, ...], *, round_: int, k: int = 0) -> None:
        """Each seat commits to a nonce and reveals it."""
        id_, nonces = self.table.id, {seat: bytes([seat]) * 32 for seat in seats}
        for seat, nonce in nonces.items():
            digest = player_digest(table=id_, round=round_, k=k, seat=seat, nonce=nonce)
            await self.do(CommitEntropy(Actor(seat=seat), round_, k, digest), after=200)
        for seat, nonce in nonces.items():
            await self.do(RevealEntropy(Actor(seat=seat), round_, k, nonce), after=100)


async def record(url: str, key: Path) -> None:
    """Play two tables on the empty database at `url`, with a new house key in the file `key`."""
    clock = [START]
    with fixed_bytes():
        async with await Log.open(url) as log:
            keys = await load_house_keys(log, key, fresh=MASTER)
            with patch.object(
                secrets, "token_bytes", bytes
            ):  # the node's number is not of the game
                service = Service(
                    log, keys, ServiceOptions(house="cards.example", clock=lambda: clock[0])
                )
            await _friday(service, clock)
            await _saturday(service, clock)
            await log.run_when_idle(Projector().slice)
            await service.close()


async def _friday(service: Service, clock: list[int]) -> None:
    """Three rounds, the last of which stays open; Dora takes Cleo's seat in the first one."""
    live_table, _ = await service.open_table({"name": "Friday", "seats": 4})
    play = _Player(service, clock, live_table)
    for name in ("Ada", "Bob", "Cleo"):
        await play.do(TakeSeat(name), after=4000)
    ada, bob, cleo = (Actor(seat=seat) for seat in (1, 2, 3))
    await play.open_round("players")
    await play.do(StartShuffle(HOST))
    await play.contribute((1, 2, 3), round_=1)
    await play.do(Deal(HOST, 2, None, (DealtPile("pile:board", 1, "up"),)))
    await play.do(Draw(ada), after=3000)
    await play.do(Draw(bob, 2), after=5500)
    await play.do(Show(ada, "hand:1", (play.hand(1)[0],), to=2), after=2500)
    await play.do(
        Move(ada, "play", "hand:1", "pile:table", (play.hand(1)[1],), face="up"), after=1500
    )
    await play.do(Move(bob, "give", "hand:2", "hand:3", (play.hand(2)[0],)), after=7000)
    await play.do(Move(cleo, "discard", "hand:3", "pile:discard", (play.hand(3)[0],)), after=4000)
    await play.do(AddNote(cleo, "x.bye", "Good night"), after=800)
    await play.do(LeaveSeat(cleo), after=500)
    await play.do(TakeSeat("Dora"), after=9000)
    await play.do(Draw(cleo), after=6000)
    await play.do(CloseRound(HOST), after=2000)
    await play.open_round()
    await play.do(StartShuffle(HOST, algorithm="forward"))
    await play.do(Deal(HOST, 1))
    await play.do(DrawAtRandom(bob), after=4500)
    await play.do(Show(bob, "hand:2", (play.hand(2)[-1],)), after=1000)
    await play.do(CloseRound(HOST))
    await play.open_round()
    await play.do(StartShuffle(HOST))
    await play.do(Deal(HOST, 2))
    await play.do(Draw(ada), after=3500)


async def _saturday(service: Service, clock: list[int]) -> None:
    """One round of two players with three shuffles; the table is closed."""
    clock[0] += 86_400_000
    live_table, _ = await service.open_table({"name": "Saturday", "seats": 2})
    play = _Player(service, clock, live_table)
    await play.do(TakeSeat("Ada"))
    await play.do(TakeSeat("Eve"))
    await play.open_round()
    for _ in range(3):
        await play.do(StartShuffle(HOST))
    await play.do(Draw(Actor(seat=2), 3), after=2000)
    await play.do(Draw(Actor(seat=1), 3), after=12_000)
    await play.do(CloseRound(HOST))
    await play.do(CloseTable(HOST))
