"""Tables and players for the tests of the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dealer.game.cards import STANDARD
from dealer.game.commands import (
    Actor,
    CommitEntropy,
    OpenRound,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.state import Round
from dealer.proof.round_keys import player_digest
from dealer.service import CommitNotice, LiveTable, Service

HOST = Actor(host=True)
OPEN_ROUND = OpenRound(HOST, STANDARD, "house", 10_000, 10_000)
NONCE = bytes(32)


async def new_table(
    service: Service,
    *,
    players: int = 2,
    entropy: str = "house",
    commit_ms: int = 10_000,
    reveal_ms: int = 10_000,
) -> LiveTable:
    """A table with players and an open round."""
    live_table, _ = await service.open_table({"preset": "free"})
    for number in range(players):
        await service.execute(live_table, TakeSeat(f"player {number}"))
    opening = OpenRound(HOST, STANDARD, entropy, commit_ms, reveal_ms)
    await service.execute(live_table, opening)
    return live_table


async def shuffled_table(service: Service) -> LiveTable:
    """A table with two players and a deck that the house shuffled."""
    live_table = await new_table(service)
    await service.execute(live_table, StartShuffle(HOST))
    return live_table


async def shared_table(
    one: Service, two: Service, *, entropy: str = "house"
) -> tuple[LiveTable, LiveTable]:
    """A table opened at one node and loaded at another, as each of them has it."""
    here = await new_table(one, entropy=entropy)
    return here, await two.lifecycle.load(here.table_id)


def round_of(live_table: LiveTable) -> Round:
    """The open round."""
    assert live_table.table.round is not None
    return live_table.table.round


async def bundle_of(service: Service, live_table: LiveTable) -> list[str]:
    return [line async for line in service.bundle(live_table)]


async def commit_entropy(service: Service, live_table: LiveTable, *seats: int, k: int = 0) -> None:
    """Each seat sends the digest of `NONCE` for shuffle k of round 1."""
    for seat in seats:
        digest = player_digest(table=live_table.id, round=1, k=k, seat=seat, nonce=NONCE)
        await service.execute(live_table, CommitEntropy(Actor(seat=seat), 1, k, digest))


async def reveal_entropy(service: Service, live_table: LiveTable, *seats: int, k: int = 0) -> None:
    for seat in seats:
        await service.execute(live_table, RevealEntropy(Actor(seat=seat), 1, k, NONCE))


class Listener:
    """Collects the versions and types of the events that a service publishes."""

    def __init__(self, service: Service) -> None:
        self.versions: list[int] = []
        self.types: list[str] = []
        self._published = asyncio.Event()
        service.notices.listen(self._on_notice)

    async def until_version(self, version: int) -> None:
        await self._until(lambda: version in self.versions)

    async def until_type(self, type_: str) -> None:
        await self._until(lambda: type_ in self.types)

    def _on_notice(self, live_table: LiveTable, notice: CommitNotice) -> None:
        self.versions += [entry.version for entry in notice.entries]
        self.types += [entry.type for entry in notice.entries]
        self._published.set()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._published.clear()
                await self._published.wait()
