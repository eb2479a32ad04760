"""Simulated calls: an actor's request to a node and the reply, without a connection.

Each takes a time, and is lost with the node, on a blocked path, or by chance. A request without a
reply, or with one that says try again, is sent again to any node, under the same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from dealer.errors import DealerError, Overloaded, Refused, Unavailable
from dealer.game.commands import Command
from dealer.service import CommandResult, IdempotencyKey, Service
from dealer.service.tables.execution import CommandExecution
from dealer.service.tables.live_table import LiveTable

if TYPE_CHECKING:
    from tests.simulation.core.actor import Actor
    from tests.simulation.core.node import CoreNode

ANSWER_SECONDS = 3.0
"""Virtual seconds after which a request without a reply is sent again."""

Work = Callable[[Service], Awaitable[Any]]


class Call:
    """One request of an actor until its reply; `then` is called with a result or a DealerError."""

    def __init__(
        self, actor: Actor, what: str, then: Callable[[Any], None] | None, restores: int
    ) -> None:
        self.actor = actor
        self.what = what
        self.restores = restores  # when it was first sent; answers across a restore may differ
        self._then = then
        self._attempt = 0
        self._timer: Any = None

    def send(self) -> None:
        """Send it to a node, again after a time without a reply."""
        actor, world = self.actor, self.actor.world
        self._attempt += 1
        loop, random = world.loop, actor.random
        self._timer = loop.call_later(
            ANSWER_SECONDS, self._again, self._attempt, context=actor.domain.context
        )
        node = actor.choose_node()
        if node.domain is None or node.domain.dead or actor.is_lost(node):
            return
        loop.call_later(
            actor.transit(), self._arrive, node, self._attempt, context=node.domain.context
        )
        if random.random() < 0.02:  # the same message arrives twice
            loop.call_later(
                actor.transit(), self._arrive, node, self._attempt, context=node.domain.context
            )

    def _again(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._timer.cancel()
            self.send()

    def _arrive(self, node: CoreNode, attempt: int) -> None:
        """At the node: begin the work."""
        service = node.service
        if service is None:
            self.reply(node, attempt, Unavailable("The node is starting or stopping."))
        else:
            self.begin(node, service, attempt)

    def begin(self, node: CoreNode, service: Service, attempt: int) -> None:
        raise NotImplementedError

    def reply(self, node: CoreNode, attempt: int, outcome: Any) -> None:
        """Send the reply from a node; it may be lost."""
        actor = self.actor
        if not actor.is_lost(node):
            actor.world.loop.call_later(
                actor.transit(), self._replied, attempt, outcome, context=actor.domain.context
            )

    def _replied(self, attempt: int, outcome: Any) -> None:
        if attempt != self._attempt or self not in self.actor.waiting:
            return
        self._timer.cancel()
        if isinstance(outcome, Unavailable | Overloaded) or (
            isinstance(outcome, DealerError) and not isinstance(outcome, Refused)
        ):
            self.actor.world.seen(f"{self.what} {type(outcome).__name__}")
            self._timer = self.actor.world.loop.call_later(
                0.02 + self.actor.random.random() * 0.4, self._again, attempt
            )
            return
        self.actor.waiting.remove(self)
        if isinstance(outcome, Refused):
            self.actor.world.seen(f"{self.what} refused {outcome.reason}")
        else:
            self.actor.world.seen(f"{self.what} answered")
        if self._then is not None:
            self._then(outcome)


class TableCall(Call):
    """A command at a table; `key` makes its repetitions known."""

    def __init__(
        self,
        actor: Actor,
        what: str,
        table: str,
        command: Command,
        key: IdempotencyKey,
        *,
        then: Callable[[Any], None] | None,
        expect: int | None = None,
    ) -> None:
        super().__init__(actor, what, then, actor.world.restores)
        self.table = table
        self.command = command
        self.key = key
        self.expect = expect
        self.begun = 0  # the newest version that was answered when it was first sent
        actor.world.witness.begin(self)

    def begin(self, node: CoreNode, service: Service, attempt: int) -> None:
        live_table = service.tables.get(self.table)
        if live_table is None:
            asyncio.get_running_loop().create_task(self._load(node, service, attempt))
        else:
            self._submit(node, service, live_table, attempt)

    async def _load(self, node: CoreNode, service: Service, attempt: int) -> None:
        try:
            live_table = await service.lifecycle.load(self.table)
        except DealerError as error:
            self.reply(node, attempt, error)
        else:
            self._submit(node, service, live_table, attempt)

    def _submit(
        self, node: CoreNode, service: Service, live_table: LiveTable, attempt: int
    ) -> None:
        def done(outcome: Any) -> None:
            if isinstance(outcome, CommandResult):
                self.actor.world.witness.answered(self, outcome)
            self.reply(node, attempt, outcome)

        self.submit(service, live_table, done)

    def submit(self, service: Service, live_table: LiveTable, done: Callable[[Any], None]) -> None:
        execution = CommandExecution(
            command=self.command, done=done, key=self.key, expect=self.expect
        )
        service.processor.submit(live_table, execution)


class RandomDrawCall(TableCall):
    """A random draw, which takes a shuffle and a draw."""

    def submit(self, service: Service, live_table: LiveTable, done: Callable[[Any], None]) -> None:
        async def draw() -> None:
            try:
                with live_table.held():
                    found = await service.random_draws.draw(live_table, self.command, key=self.key)  # type: ignore[arg-type]
            except DealerError as error:
                done(error)
            else:
                done(found)

        asyncio.get_running_loop().create_task(draw())


class WorkCall(Call):
    """Any other work with the service of a node."""

    def __init__(
        self, actor: Actor, what: str, work: Work, *, then: Callable[[Any], None] | None = None
    ) -> None:
        super().__init__(actor, what, then, actor.world.restores)
        self._work = work

    def begin(self, node: CoreNode, service: Service, attempt: int) -> None:
        asyncio.get_running_loop().create_task(self._run(node, service, attempt))

    async def _run(self, node: CoreNode, service: Service, attempt: int) -> None:
        try:
            outcome: Any = await self._work(service)
        except DealerError as error:
            outcome = error
        self.reply(node, attempt, outcome)
