"""Tables loaded from a savepoint are the same as those that are loaded from their first event."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dealer.errors import Refused
from dealer.game.commands import (
    Actor,
    CloseRound,
    CommitEntropy,
    Cut,
    Deal,
    Draw,
    LeaveSeat,
    Move,
    OpenRound,
    RevealEntropy,
    Show,
    StartShuffle,
    TakeSeat,
)
from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR
from dealer.proof.round_keys import player_digest
from dealer.service import LiveTable, Service
from tests.service.conftest import OpenService
from tests.service.savepoints import (
    CODES,
    described,
    load_whole,
    loaded_both_ways,
    settled,
)
from tests.service.tables import HOST, NONCE

pytestmark = pytest.mark.usefixtures("often")


async def play(service: Service, live_table: LiveTable, chance: random.Random, steps: int) -> None:
    """Random commands of three seats and the host; those that are refused change nothing."""
    for _ in range(steps):
        for command in commands(live_table, chance):
            try:
                await service.execute(live_table, command)
            except Refused:
                continue


def commands(live_table: LiveTable, chance: random.Random) -> Iterator[Any]:
    seat = Actor(seat=chance.randint(1, 3))
    own = f"hand:{seat.seat}"
    here, there = chance.choice(("deck", own, "pile:x")), chance.choice(("pile:x", own, "deck"))
    round_ = live_table.table.round
    yield chance.choice(
        (
            TakeSeat(f"player {chance.randint(1, 9)}", chance.randint(1, 3)),
            TakeSeat("again", 1),
            LeaveSeat(seat),
            OpenRound(HOST, CODES, chance.choice(("house", "players")), 10_000, 10_000),
            OpenRound(HOST, CODES, "house", 10_000, 10_000),
            StartShuffle(HOST),
            StartShuffle(HOST, "deck", "forward"),
            Deal(HOST, 1),
            Draw(seat),
            Draw(seat),
            Move(seat, "pile", here, there, count=1, face=chance.choice(("up", "down"))),
            Move(seat, "pile", here, there, count=1),
            Show(seat, here, to=chance.choice((None, 1, 2))),
            Cut(seat, chance.randint(0, 3)),
            CloseRound(HOST) if chance.random() < 0.3 else Draw(seat),
        )
    )
    if round_ is not None:
        for number in list(live_table.table.seats):
            if chance.random() < 0.3:
                about = {"round": round_.number, "k": round_.k, "seat": number}
                digest = player_digest(table=live_table.id, nonce=NONCE, **about)
                actor = Actor(seat=number)
                yield CommitEntropy(actor, round_.number, round_.k, digest)
                yield RevealEntropy(actor, round_.number, round_.k, NONCE)


@pytest.mark.parametrize("seed", range(6))
async def test_a_table_is_the_same_from_a_savepoint_and_from_its_first_event(
    service: Service, open_service: OpenService, seed: int
) -> None:
    chance = random.Random(seed)
    live_table, _ = await service.open_table({"preset": "shared"})
    for name in ("Ada", "Bob"):
        await service.execute(live_table, TakeSeat(name))
    await service.execute(live_table, OpenRound(HOST, CODES, "house", 10_000, 10_000))
    await service.execute(live_table, StartShuffle(HOST))
    for _ in range(12):
        await play(service, live_table, chance, 6)
        await settled(service)
        short, whole = await loaded_both_ways(service, live_table.id)
        assert described(short) == described(whole)
        assert short.table == live_table.table
        for viewer in (SPECTATOR, *holders(live_table)):
            views = [
                await service.checkpoints.snapshot(each, viewer)
                for each in (short, whole, live_table)
            ]
            assert views[0] == views[1] == views[2]
    other = await open_service()
    continued = await other.lifecycle.load(live_table.table_id)
    await play(other, continued, chance, 10)
    await service.lifecycle.catch_up(live_table)
    assert continued.table == live_table.table
    assert (await load_whole(other, live_table.id)).table == live_table.table
    assert service.savepoints.refused == other.savepoints.refused == 0


def holders(live_table: LiveTable) -> list[SeatHolder]:
    return [SeatHolder(seat, each.taken_at) for seat, each in live_table.table.seats.items()]
