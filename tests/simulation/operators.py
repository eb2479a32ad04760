"""Operators: what the command line does, on a log of their own beside the nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

from dealer.eventlog import Log
from dealer.eventlog.keys import existing_house_keys, key_file
from dealer.service.identity.admin import AdminService
from dealer.service.operations.archiver import Archiver
from dealer.service.operations.key_rotation import rotate
from dealer.service.operations.webhooks import WebhookAdmin
from tests.simulation.loop import Domain
from tests.simulation.plan import Step
from tests.simulation.receiver import URL

if TYPE_CHECKING:
    from tests.simulation.world import World


class Operators:
    """Disable and enable, archive, rotate; `prepare` makes the service key of the follower."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.domain = Domain("operator")
        world.domains.append(self.domain)
        self._running: list[object] = []

    @property
    def url(self) -> str:
        return f"sqlite:///{self.world.folder}/dealer.db"

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[tuple[Log, AdminService]]:
        async with await Log.open(self.url) as log:
            yield log, AdminService(log, who="operator")

    async def prepare(self) -> None:
        """Before anything happens: a key for the follower, which then starts."""
        await self.world.task(self._prepare(), self.domain)

    async def _prepare(self) -> None:
        async with self._admin() as (_, admin):
            key = await admin.add_service_key("follower", ["read", "admin"])
        self.world.follower.start(key)
        if self.world.plan.settings.get("webhook"):
            await self._add_webhook(self.world.plan.settings["webhook"])

    async def _add_webhook(self, signing: str) -> None:
        async with await Log.open(self.url) as log:
            _, verifier = await WebhookAdmin(log, who="operator").add(
                await existing_house_keys(log, key_file(self.url)),
                URL,
                key="follower",
                types=[],
                signing=signing,
                after="start",
                allow_private=True,
                why="a trial",
            )
        self.world.receiver.start(verifier)

    def do(self, step: Step) -> None:
        """Carry out a step in a task of its own."""
        work = getattr(self, f"_{step.what}")
        self.world.task(work(Random(step.number)), self.domain)

    def end(self) -> None:
        """Enable everything, and finish what an archive that was cut off has begun."""
        self.world.task(self._enable(Random(0)), self.domain)
        self.world.task(self._finish_archive(), self.domain)

    async def _disable(self, random: Random) -> None:
        tables = [*self.world.witness.log, "house"]
        async with self._admin() as (_, admin):
            await admin.disable(random.choice(tables), why="a trial")

    async def _enable(self, random: Random) -> None:
        async with self._admin() as (log, admin):
            for (target,) in await log.fetch("SELECT target FROM disabled"):
                await admin.enable(target, why="a trial")

    async def _archive(self, random: Random) -> None:
        async with self._admin() as (log, _):
            archiver = self._archiver(log)
            await archiver.finish_interrupted()
            tables = await archiver.closed_tables(age=-1)
            async for result in archiver.archive_all(tables):
                self.world.seen(f"archived {type(result.error).__name__}")

    async def _finish_archive(self) -> None:
        async with self._admin() as (log, _):
            await self._archiver(log).finish_interrupted()

    def _archiver(self, log: Log) -> Archiver:
        folder = self.world.folder / "archive"
        return Archiver(log, self.url, folder, who="operator", why="a trial")

    async def _rotate(self, random: Random) -> None:
        await rotate(self.url, "a trial", "operator")
        self.world.seen("rotated")
