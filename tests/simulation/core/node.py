"""A node of the core world: the service with its background work, without a gateway."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from dealer.service.tables.live_table import CommitNotice, LiveTable
from tests.simulation.checks import restored_tables_are_closed
from tests.simulation.core.stream import Stream
from tests.simulation.node import Node

if TYPE_CHECKING:
    from tests.simulation.core.world import CoreWorld


class CoreNode(Node):
    """One process of the service."""

    world: CoreWorld

    def __init__(self, world: CoreWorld, name: str, drift: float) -> None:
        super().__init__(world, name, drift)
        self.streams: list[Stream] = []

    @property
    def up(self) -> bool:
        """Whether it answers calls, and is not to stop."""
        return self.service is not None and not self.stopping

    def kill(self, *, power: bool) -> None:
        """End the process at once; its streams end, as its connections do."""
        domain = self.domain
        super().kill(power=power)
        self._drop_streams()
        for actor in self.world.actors:
            actor.node_died(domain)

    async def _run(self, stop: asyncio.Event) -> None:
        settings = self.world.plan.settings
        options: dict[str, Any] = {"commit": settings["commit"], "busy_seconds": 5.0}
        folder = self.world.folder
        try:
            async with open_service(
                f"sqlite:///{folder}/dealer.db",
                ServiceOptions(
                    house="house.example",
                    tables=settings["idle_tables"],
                    archive=folder / "archive",
                    clock=self.clock,
                ),
                marks=self.marks(),
                **options,
            ) as service:
                service.notices.listen(self._publish)
                restored_tables_are_closed(self.world)
                self.service = service
                await stop.wait()
                self._drop_streams()
                self.service = None
        except Exception as error:
            self.failure = error
        finally:
            self.service = None
            self._exited()

    def _exited(self) -> None:
        """The process has ended, with all that was still under way."""
        domain = self.domain
        if domain is not None and not self.world.loop.over:
            domain.dead = True
            for actor in self.world.actors:
                actor.node_died(domain)

    def _publish(self, live_table: LiveTable, notice: CommitNotice) -> None:
        if notice.entries:
            self.world.witness.published(live_table.table_id, notice)
        for stream in sorted(live_table.subscribers, key=hash):
            stream.publish(notice)

    def _drop_streams(self) -> None:
        streams, self.streams = self.streams, []
        for stream in streams:
            stream.end()
