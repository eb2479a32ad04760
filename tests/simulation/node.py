"""A node: the real service and gateway in a domain that can be killed, frozen and started again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dealer.gateway.limits import Limits
from dealer.gateway.server import Gateway, serve
from dealer.packs.catalogue import shipped
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.harness.limits import NO_RATES
from tests.simulation.checks import restored_tables_are_closed
from tests.simulation.environment import EPOCH_MS
from tests.simulation.loop import Domain

if TYPE_CHECKING:
    from tests.simulation.world import World

PORT = 80
CATALOGUE = shipped()


class Node:
    """One process of the service, and those that follow it on the same machine."""

    def __init__(self, world: World, name: str, drift: float) -> None:
        self.world = world
        self.name = name
        self.domain: Domain | None = None
        self.service: Service | None = None
        self.gateway: Gateway | None = None
        self.failure: BaseException | None = None
        self.starts = 0
        self._drift = drift
        self._stepped_ms = 0
        self._stop: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """Whether it accepts connections, and is not to stop."""
        return self.gateway is not None and not self.stopping

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def stopping(self) -> bool:
        """Whether it is to stop, which a frozen machine does later."""
        return self._stop is not None and self._stop.is_set()

    def clock(self) -> int:
        """Its wall clock, which drifts and is stepped."""
        now = self.world.loop.now
        return EPOCH_MS + int(now * 1000 * (1 + self._drift)) + self._stepped_ms

    def step_clock(self, milliseconds: int) -> None:
        self._stepped_ms += milliseconds

    def marks(self) -> Path | None:
        """Its folder of marks, created; None where all nodes have one next to the key."""
        if not self.world.plan.settings.get("separate_marks"):
            return None
        folder = self.world.folder / f"marks-{self.name}"
        folder.mkdir(exist_ok=True)
        return folder

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.running:
            return
        self.starts += 1
        self.failure = None
        self.domain = Domain(self.name)
        self.world.domains.append(self.domain)
        self.world.network.machine_started(self.name)
        self._stop = asyncio.Event()
        loop = self.world.loop
        self._task = loop.create_task(self._run(self._stop), context=self.domain.context)

    def drain(self) -> None:
        """Stop the process gracefully."""
        if self._stop is not None:
            self._stop.set()

    def kill(self, *, power: bool) -> None:
        """End the process at once; with `power` its peers get no reset."""
        domain = self.domain
        if domain is None or domain.dead or not self.running:
            return
        domain.dead = True
        database = self.world.database
        database.notifiers = [one for one in database.notifiers if one.domain is not domain]
        self.world.network.machine_died(domain, silently=power)
        if self.service is not None and self.service.lifecycle._mark is not None:
            os.close(self.service.lifecycle._mark._handle)  # so that the lock on its file ends
        self.service = self.gateway = self._task = None

    async def _run(self, stop: asyncio.Event) -> None:
        settings = self.world.plan.settings
        limits = Limits(
            **(NO_RATES | self.world.rates),
            chunk=settings["chunk"],
            resume=settings["resume"],
            buffer=settings["buffer"],
            closing=0.5,
            sending=3.0,
            keepalive=4.0,
            drain=3.0,
        )
        folder: Path = self.world.folder
        options: dict[str, Any] = {"commit": settings["commit"], "busy_seconds": 5.0}
        try:
            async with (
                open_service(
                    f"sqlite:///{folder}/dealer.db",
                    ServiceOptions(
                        house="house.example",
                        tables=settings["idle_tables"],
                        archive=folder / "archive",
                        clock=self.clock,
                    ),
                    marks=self.marks(),
                    **options,
                ) as service,
                serve(
                    service,
                    host=self.name,
                    port=PORT,
                    host_names=["house"],
                    limits=limits,
                    catalogue=CATALOGUE,
                ) as gateway,
            ):
                restored_tables_are_closed(self.world)
                self.service, self.gateway = service, gateway
                await stop.wait()
                self.gateway = None
        except Exception as error:
            self.failure = error
        finally:
            self.service = self.gateway = None
