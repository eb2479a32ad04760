"""A server in the test's process; a test can modify its clock, commit notices, memory and file.

It is the real service behind the real gateway, and signs every log that it has committed to.
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
from dealer.gateway.limits import Limits
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.server import serve
from dealer.proof.checkpoint import open_note
from dealer.proof.verify import Report, verify
from dealer.service import CommandResult, CommitNotice, LiveTable, Service
from dealer.service.build import open_service
from dealer.service.tables.execution import CommandExecution
from tests.harness.limits import NO_RATES
from tests.harness.server_process import PATIENT
from tests.harness.table_of_clients import Clients, RecordedClient, client, connect_clients

WAIT = 60_000
"""Milliseconds that rounds wait for entropy; only `expire_deadline` ends the wait."""

LIMITS = Limits(**NO_RATES, closing=0.2, drain=3.0)


class MaliciousServer:
    """A server on `folder`/dealer.db; `appends` has the event types of each append."""

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
        """`resume` is the number of missed events above which a client gets a snapshot."""
        opening = open_service(f"sqlite:///{self.database}")
        self.service = await self._stack.enter_async_context(opening)
        self.service.now = self.service.executor.now = self._now(self.service.now)
        limits = replace(LIMITS, resume=resume)
        gateway = serve(self.service, port=self.port, limits=limits)
        self.port = (await self._stack.enter_async_context(gateway)).port
        self._listeners = self.service.notices._listeners
        self._broadcaster = next(
            index
            for index, listener in enumerate(self._listeners)
            if isinstance(getattr(listener, "__self__", None), Broadcaster)
        )
        self.change_notices(self._record)

    async def close(self) -> None:
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.close()
        await self.open()

    def _now(self, clock: Callable[[], int]) -> Callable[[], int]:
        return lambda: clock() + self._late

    def pass_time(self, ms: int = WAIT) -> None:
        """Advance the clock by this many milliseconds, also while the server is closed."""
        self._late += ms

    def expire_deadline(self, table: str) -> None:
        """Make the pending deadline of a table expire, by the monotonic clock."""
        self.pass_time()
        live_table, deadlines = self.live_table(table), self.service.lifecycle.deadlines
        deadlines._waits[live_table.id] = deadlines._waits[live_table.id]._replace(ends=0)
        deadlines.arm(live_table)

    def live_table(self, table: str) -> LiveTable:
        live_table = self.service.tables.get(table)
        assert live_table is not None
        return live_table

    # Database file

    def copy(self, to: Path) -> None:
        """Copy the database and its key to `to`/dealer.db, as a backup does."""
        to.mkdir()
        with (
            closing(sqlite3.connect(self.database)) as source,
            closing(sqlite3.connect(to / "dealer.db")) as target,
        ):
            source.backup(target)
        shutil.copy(f"{self.database}.key", to / "dealer.db.key")

    def restore(self, copy: Path) -> None:
        """Restore the copy and delete the high-water mark: a malicious server keeps none."""
        for pattern in ("dealer.db-*", "dealer.db.mark.*"):
            for file in self.database.parent.glob(pattern):
                file.unlink()
        shutil.copy(copy / "dealer.db", self.database)

    # Commit notices

    def _record(self, _: LiveTable, notice: CommitNotice) -> CommitNotice:
        if notice.entries:
            self.appends.append([json.loads(entry.leaf)["type"] for entry in notice.entries])
        return notice

    def change_notices(self, change: Callable[[LiveTable, CommitNotice], CommitNotice]) -> None:
        """Replace each commit notice by the result of `change`, for all subscribers."""
        publish = self._listeners[self._broadcaster]

        def notify(live_table: LiveTable, notice: CommitNotice) -> None:
            changed = change(live_table, notice)
            publish(live_table, changed)
            notice.held = changed.held  # the frames that go with the answer

        self._listeners[self._broadcaster] = notify

    def change_notices_of_seat(
        self, seat: int, change: Callable[[LiveTable, CommitNotice], CommitNotice]
    ) -> None:
        """Replace each commit notice by the result of `change`, for the subscribers at one seat."""
        publish = self._listeners[self._broadcaster]

        def notify(live_table: LiveTable, notice: CommitNotice) -> None:
            subscribers = live_table.subscribers
            theirs = {each for each in subscribers if seat_of(each) == seat}
            try:
                live_table.subscribers = subscribers - theirs
                publish(live_table, notice)
                live_table.subscribers = theirs
                changed = change(live_table, notice)
                publish(live_table, changed)
                notice.held = notice.held or changed.held
            finally:
                live_table.subscribers = subscribers

        self._listeners[self._broadcaster] = notify

    def intercept(self, kind: type[Command], seat: int, instead: Command | None = None) -> None:
        """Answer a seat's command of this kind with success, and drop it or run `instead`."""
        run_command = self.service.processor.submit

        def submit(live_table: LiveTable, execution: CommandExecution) -> None:
            command = execution.command
            if isinstance(command, kind) and getattr(command, "actor", Actor()).seat == seat:
                if instead is None:
                    execution.answer(CommandResult(live_table.table.version, []))
                    return
                execution.command = instead
            run_command(live_table, execution)

        self.service.processor.submit = submit  # type: ignore[method-assign]

    # Public data

    async def bundle(self, table: str) -> list[bytes]:
        live_table = await self.service.lifecycle.load(table)
        return [line.encode() async for line in self.service.bundle(live_table)]

    async def audit(self, *players: RecordedClient) -> Report:
        """The verifier's report for these players' table, with all checkpoints that they saved."""
        table = players[0].table
        saved = [note for player in players for note in player.table.checkpoints]
        return verify(await self.bundle(table.id), key=table.key, saved=saved)


@pytest.fixture
async def malicious(tmp_path: Path) -> AsyncIterator[MaliciousServer]:
    malicious = MaliciousServer(tmp_path)
    await malicious.open()
    yield malicious
    async with asyncio.timeout(PATIENT):
        await malicious.close()


@asynccontextmanager
async def seated(malicious: MaliciousServer, *names: str) -> AsyncIterator[Clients]:
    """Clients at a table whose rules allow everything, with stores next to the database."""
    folder = malicious.database.parent / "clients"
    async with (
        asyncio.timeout(PATIENT),
        connect_clients(malicious.url, folder=folder, names=names) as clients,
    ):
        await clients.sit_down(rules={"preset": "shared"})
        yield clients


async def open_round(clients: Clients) -> None:
    """Open a round and wait for the digests of its first shuffle."""
    await clients.tables[0].round_open(commit_ms=WAIT, reveal_ms=WAIT)
    await clients.all_see(lambda table: early_digests(table) == len(clients.players))


def seat_of(subscription: Any) -> int | None:
    """The seat at which a subscription watches; None for a spectator."""
    holder = subscription.membership.seat.holder
    return None if holder is None else int(holder.seat)


def early_digests(table: Any) -> int:
    round_ = table.state.round
    return 0 if round_ is None else len(round_.early_digests)


class Pace:
    """A real client that sends its entropy one step at a time, when a test allows it."""

    def __init__(self, player: RecordedClient) -> None:
        self._session = player.table._session
        self._allowed = 0
        entropy = self._session.responder.entropy
        self._next_step = entropy.next_step
        entropy.next_step = self._step  # type: ignore[method-assign]

    def _step(self, *args: Any, **options: Any) -> Any:
        step = self._next_step(*args, **options) if self._allowed else None
        self._allowed -= step is not None
        return step

    def allow(self, steps: int = 1) -> None:
        self._allowed += steps
        self._session._checked(lambda: None)


def nonces(player: RecordedClient) -> list[bytes]:
    """The bytes that a client drew for its shuffles, in their order."""
    return [nonce.value for nonce in player.table._session.store.nonces.values()]


def revealed_under_roots(player: RecordedClient) -> list[bytes]:
    """The root under which a client revealed each of its nonces; empty if it revealed none."""
    kept = player.table._session.store.nonces.values()
    return [nonce.revealed_under for nonce in kept]


async def detects_cheating(player: RecordedClient, sentence: str) -> Evidence:
    """The client leaves the table with this message, permanently, and stores the evidence."""
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


async def refuses_table(
    malicious: MaliciousServer, player: RecordedClient, *, sentence: str
) -> None:
    """A new process with the same store refuses the table, as `sentence` (a pattern) says."""
    await player.house.close()
    folder = malicious.database.parent / "clients"
    table = player.table.id
    files = list((folder / player.name).rglob("evidence-1.json"))
    (kept,) = (json.loads(file.read_text()) for file in files)
    assert kept["table"] == table
    assert kept["notes"]
    async with client(malicious.url, player.name, folder=folder) as again:
        for enter in (again.house.join, again.house.watch):
            with pytest.raises(HouseCheated, match=f"was left because .*({sentence})"):
                await enter(table)
