"""A house in this process, whose inside a test may bend: its clock, its news, its memory, its file.

It is the real service behind the real gateway; what it signs after it was bent, it really signs.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dealer.client import Evidence
from dealer.errors import HouseCheated
from dealer.game.commands import Actor, Command
from dealer.gateway import server
from dealer.gateway.limits import Limits
from dealer.gateway.server import serve
from dealer.proof.checkpoint import open_note
from dealer.proof.verify import Report, verify
from dealer.service import Done, Published, Resident, Service
from dealer.service.opening import open_service
from tests.limits import NO_RATES
from tests.whole.house import PATIENT
from tests.whole.party import Guest, Party, guest, party

WAIT = 60_000
"""Milliseconds that a round of these tests waits for entropy: only `time_is_up` ends that."""

LIMITS = Limits(**NO_RATES, closing=0.2, drain=3.0)


class CrookedHouse:
    """One house over `folder`/dealer.db; `appends` are the types of events, append by append."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "dealer.db"
        self.port = 0
        self.appends: list[list[str]] = []
        self.service: Service
        self._late = 0
        self._stack = AsyncExitStack()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def open(self, *, resume: int = 10_000) -> None:
        """`resume` is how many events a guest may be behind before a snapshot comes instead."""
        opening = open_service(f"sqlite:///{self.database}")
        self.service = await self._stack.enter_async_context(opening)
        self.service._judge.now = self._now(self.service._judge.now)  # type: ignore[method-assign]
        limits = replace(LIMITS, resume=resume)
        gateway = serve(self.service, port=self.port, limits=limits)
        self.port = (await self._stack.enter_async_context(gateway)).port
        self.on_news(self._note_down)

    async def close(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.close()
        await self.open()

    def _now(self, clock: Callable[[], int]) -> Callable[[], int]:
        return lambda: clock() + self._late

    def pass_time(self, ms: int = WAIT) -> None:
        """Let so many milliseconds go by at once; also while the house is closed."""
        self._late += ms

    def time_is_up(self, table: str) -> None:
        """Let what an open house waits for at a table be late, by the clock that waits run by."""
        self.pass_time()
        resident, deadlines = self.resident(table), self.service._desk.deadlines
        deadlines._waits[resident.id] = deadlines._waits[resident.id]._replace(ends=0)
        deadlines.arm(resident)

    def resident(self, table: str) -> Resident:
        resident = self.service.resident(table)
        assert resident is not None
        return resident

    # Its file

    def copy(self, to: Path) -> None:
        """A copy of the database with its key, as a backup makes it, at `to`/dealer.db."""
        to.mkdir()
        with (
            closing(sqlite3.connect(self.database)) as source,
            closing(sqlite3.connect(to / "dealer.db")) as target,
        ):
            source.backup(target)
        shutil.copy(f"{self.database}.key", to / "dealer.db.key")

    def put_back(self, copy: Path) -> None:
        """And no word of it: a house that wants to cheat keeps no mark."""
        for pattern in ("dealer.db-*", "dealer.db.mark.*"):
            for file in self.database.parent.glob(pattern):
                file.unlink()
        shutil.copy(copy / "dealer.db", self.database)

    # Its news

    def _note_down(self, _: Resident, news: Published) -> Published:
        if news.entries:
            self.appends.append([json.loads(entry.leaf)["type"] for entry in news.entries])
        return news

    def on_news(self, change: Callable[[Resident, Published], Published]) -> None:
        """Everybody is told what `change` makes of the news."""
        publish = self.service.publish
        self.service.publish = lambda resident, news: publish(resident, change(resident, news))

    def tell_seat(self, seat: int, change: Callable[[Resident, Published], Published]) -> None:
        """One seat is told what `change` makes of the news, all others the truth."""
        publish = self.service.publish

        def told(resident: Resident, news: Published) -> None:
            everybody = resident.sessions
            theirs = {one for one in everybody if one.seat == seat}
            try:
                resident.sessions = everybody - theirs
                publish(resident, news)
                resident.sessions = theirs
                publish(resident, change(resident, news))
            finally:
                resident.sessions = everybody

        self.service.publish = told

    def overhear(self, kind: type[Command], seat: int, instead: Command | None = None) -> None:
        """A seat's command of a kind is answered well and dropped, or `instead` is carried out."""
        perform = self.service.perform

        def performed(resident: Resident, command: Command, **options: Any) -> None:
            if isinstance(command, kind) and getattr(command, "actor", Actor()).seat == seat:
                if instead is None:
                    options["done"](Done(resident.table.version, []))
                    return
                command = instead
            perform(resident, command, **options)

        self.service.perform = performed  # type: ignore[method-assign]

    # What it gives to anybody

    async def bundle(self, table: str) -> list[bytes]:
        resident = await self.service.load(table)
        return [line.encode() async for line in self.service.bundle(resident)]

    async def audit(self, *players: Guest) -> Report:
        """What a verifier says of these players' table, with all that they have saved."""
        table = players[0].table
        saved = [note for player in players for note in player.table.checkpoints]
        return verify(await self.bundle(table.id), key=table.key, saved=saved)


@pytest.fixture
async def crooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CrookedHouse]:
    monkeypatch.setattr(server, "SPREAD_MS", 10)
    house = CrookedHouse(tmp_path)
    await house.open()
    yield house
    async with asyncio.timeout(PATIENT):
        await house.close()


@asynccontextmanager
async def seated(house: CrookedHouse, *names: str) -> AsyncIterator[Party]:
    """Players, all of whom may do everything, with stores beside the house."""
    folder = house.database.parent / "clients"
    async with asyncio.timeout(PATIENT), party(house.url, folder=folder, names=names) as guests:
        await guests.sit_down(rules={"preset": "shared"})
        yield guests


async def open_round(guests: Party) -> None:
    """A round, with the digests for its first shuffle."""
    await guests.tables[0].round_open(commit_ms=WAIT, reveal_ms=WAIT)
    await guests.all_see(lambda table: promised(table) == len(guests.players))


def promised(table: Any) -> int:
    round_ = table.state.round
    return 0 if round_ is None else len(round_.ahead)


class Pace:
    """A real client that brings its entropy one step at a time, when a test allows it."""

    def __init__(self, player: Guest) -> None:
        self._following = player.table._following
        self._allowed = 0
        entropy = self._following.duties.entropy
        self._next_step = entropy.next_step
        entropy.next_step = self._step  # type: ignore[method-assign]

    def _step(self, *args: Any, **options: Any) -> Any:
        step = self._next_step(*args, **options) if self._allowed else None
        self._allowed -= step is not None
        return step

    def allow(self, steps: int = 1) -> None:
        self._allowed += steps
        self._following._checked(lambda: None)


def nonces(player: Guest) -> list[bytes]:
    """The bytes that a client drew for its shuffles, in their order."""
    return [nonce.value for nonce in player.table._following.store.nonces.values()]


def shown_under(player: Guest) -> list[bytes]:
    """The roots that a client showed its bytes under; empty where it kept them."""
    kept = player.table._following.store.nonces.values()
    return [nonce.revealed_under for nonce in kept]


async def caught(player: Guest, sentence: str) -> Evidence:
    """The client leaves the table with this sentence, for good, and has kept why on its disk."""
    table = player.table
    with pytest.raises(HouseCheated, match=sentence) as fault:
        await table.until(lambda _: False)
    evidence = table.evidence
    assert evidence is not None
    assert fault.value.evidence is evidence
    assert evidence.key == (table.key or b"").hex()
    for note in evidence.notes:
        open_note(note, key=bytes.fromhex(evidence.key), table=table.id)
    for again in (table.draw, lambda: player.house.join(table.id), lambda: table.sealed()):
        with pytest.raises(HouseCheated):
            await again()
    return evidence


async def stays_away(house: CrookedHouse, player: Guest, *, sentence: str) -> None:
    """A new process with the same store refuses the table, and has the evidence."""
    await player.house.close()
    folder = house.database.parent / "clients"
    table = player.table.id
    files = list((folder / player.name).rglob("evidence-1.json"))
    (kept,) = (json.loads(file.read_text()) for file in files)
    assert kept["table"] == table
    assert kept["notes"]
    async with guest(house.url, player.name, folder=folder) as again:
        for come_back in (again.house.join, again.house.watch):
            with pytest.raises(HouseCheated, match="was left because") as fault:
                await come_back(table)
            assert sentence in str(fault.value)
