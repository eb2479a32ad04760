"""Dispatcher of one connection: decode, rate limit, look up, run, answer.

A command of a member runs in the call that receives it. A request that reads the log first
(joining, resuming) queues the client's later requests until it is answered, so that pipelined
requests run in their order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import cast

from dealer.errors import BadRequest, DealerError, Unavailable
from dealer.game.absence import Absence
from dealer.game.commands import Draw, DrawAtRandom, TransferHost, VacateSeat
from dealer.gateway.close_codes import RESTART, CloseCode
from dealer.gateway.push.membership import Membership, Sender
from dealer.gateway.rate_limit.costs import (
    BYTE_SECONDS,
    BYTES_PER_COMMIT,
    BYTES_PER_EVENT,
    EVENT_SECONDS,
    MESSAGE_SECONDS,
    bytes_written,
    request_weight,
    weight,
)
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.rpc.commands import CommandHandler
from dealer.gateway.rpc.methods import METHODS, Handler
from dealer.gateway.rpc.rights import JOURNALLED, METHOD_RIGHTS
from dealer.gateway.rpc.session import PING_FRAME, Session
from dealer.gateway.wire import protocol as wire
from dealer.service import CommandResult, IdempotencyKey
from dealer.service.execution import OnResult, Outcome

_reader = wire.Reader({name: method.params for name, method in METHODS.items()})


class Dispatcher:
    """Runs the requests of one session in their order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.request_seen = False  # whether a request was decoded
        self._context = session.context
        self._queued: deque[bytes] | None = None  # not None while a request blocks later ones
        self._queued_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._submitted = 0  # commands on their way to the log
        self._finishing = False

    def receive(self, data: bytes) -> None:
        """Run the request in the payload of one text frame."""
        if self.session.closed:
            return
        if self._queued is not None:
            self._queued.append(data)
            self._queued_bytes += len(data)
            limits = self._context.limits
            if len(self._queued) >= limits.held or self._queued_bytes >= limits.buffer:
                self.session.transport.pause()
            return
        self._handle(data)

    def on_ping(self) -> bool:
        """Whether a ping or pong is within the rate; it counts like a request."""
        return not self.session.closed and self.session.admit(None, PING_FRAME, 0.0)

    def finish(self) -> None:
        """Run nothing more, and close the connection when what was received is answered.

        A random draw of a deck with players' entropy is not waited for: it waits for players, who
        may be gone. A client repeats it under its id, as after any lost connection.
        """
        self._finishing = True
        self._close_if_finished()

    def _close_if_finished(self) -> None:
        if self._finishing and not self._submitted and not self._is_blocked():
            self.session.transport.close_with(CloseCode.SERVICE_RESTART, RESTART)

    def close(self) -> None:
        """Run and answer nothing more."""
        if self.session.closed:
            return
        self._queued = None
        self.session.close()
        for task in list(self._tasks):
            task.cancel()

    def _handle(self, data: bytes) -> None:
        call = _reader.read(data)
        seconds = MESSAGE_SECONDS + BYTE_SECONDS * len(data)
        if type(call) is not wire.Call:
            self._reject(cast("wire.Fault", call), data, seconds)
            return
        self.request_seen = True
        method, session = METHODS[call.method], self.session
        try:
            if not session.admit(call.id, call.method, seconds, automatic=method.automatic):
                return
            if self._finishing or (self._context.draining and not session.pushes):
                raise Unavailable("The server is shutting down; reconnect and send this again.")
            handler, params = method.handler, call.params
            if type(handler) is CommandHandler:
                membership = session.memberships.get(params.table)
                if membership is not None and not handler.of_players:
                    sender = membership.sender(METHOD_RIGHTS.get(call.method))
                    known = params.token is None or params.token in membership.tokens
                    if sender is not None and known:
                        self._execute(call, handler, membership, sender)
                        return
                self._start(call, partial(self._run_elsewhere, call, handler), blocking=True)
                return
            if method.pushes and not session.pushes:
                raise BadRequest(
                    f"{call.method} is about a connection and what follows on it: send it over a "
                    "WebSocket. Over HTTP use table.state with a token, or GET /feed."
                )
            session.charge(request_weight(params))
            work = partial(cast("Handler", handler), session, call)
            self._start(call, work, blocking=True)
        except Exception as error:
            session.fail(call, error)

    def _reject(self, fault: wire.Fault, data: bytes, seconds: float) -> None:
        if self.session.pushes and not wire.is_utf8(data):
            # RFC 6455, section 8.1: such a message fails the connection.
            self.session.transport.close_with(CloseCode.INVALID_DATA, "a text message is UTF-8")
            return
        if self.session.admit(fault.id, "unreadable", seconds):
            self._context.metrics.calls["unreadable", str(fault.code)] += 1
            if fault.id is not None:
                self.session.send(wire.fault(fault.id, fault.code, fault.message))

    # Commands at a table

    async def _run_elsewhere(self, call: wire.Call, handler: CommandHandler) -> None:
        """Run a command that needs to read first.

        Its connection is not a member of the table, or has a new token, or a seat that is not yet
        on disk; or it depends on presence.
        """
        memberships, params = self.session.memberships, call.params
        membership = await memberships.find(params.table, token=params.token)
        absence = None
        while handler.of_players:
            absence = await self._context.broadcaster.absences.at_command(membership.live_table)
            if membership.settled:
                break
            await membership.settle()
        sender = membership.sender(METHOD_RIGHTS.get(call.method))
        assert sender is not None  # it is settled
        self._execute(call, handler, membership, sender, absence)

    def _execute(
        self,
        call: wire.Call,
        handler: CommandHandler,
        membership: Membership,
        sender: Sender,
        absence: Absence | None = None,
    ) -> None:
        params, live_table, session = call.params, membership.live_table, self.session
        actor, scope = sender
        table = live_table.table
        command = handler.build(actor, params, table)
        if absence is not None:
            command = replace(cast("VacateSeat | TransferHost", command), absence=absence)
        if type(command) is Draw and command.count == 1 and not command.whole:
            # The most frequent command, without two calls.
            cost, more = BYTES_PER_COMMIT + BYTES_PER_EVENT, 0.0
        else:
            cost, more = bytes_written(command, table), weight(command, table)
        session.budget.pay(cost, self._context.clock())
        if more:
            session.charge(more)
        if actor.host and (handler.role == "host" or actor.seat is None):
            scope = "host"
        done: OnResult = partial(self._on_outcome, call, handler, cost)
        if actor.service and call.method in JOURNALLED:
            done = partial(self._on_service_outcome, call, membership, done)
        key, service = None, self._context.service
        if params.cmd is not None:
            key = IdempotencyKey(scope, params.cmd, wire.content(call))
        if type(command) is DrawAtRandom:
            draw = partial(
                service.draw_at_random, live_table, command, key=key, expect=params.expect
            )
            self._start(call, partial(self._draw_at_random, call, handler, draw, cost))
            return
        self._context.in_flight += 1
        self._submitted += 1
        if not handler.measured:
            service.submit(
                live_table, command, done, key=key, expect=params.expect, origin=session.transport
            )
            return
        started_at = thread_time()
        try:
            service.submit(
                live_table, command, done, key=key, expect=params.expect, origin=session.transport
            )
        finally:
            session.budget.cpu.step(thread_time() - started_at)

    def _on_service_outcome(
        self, call: wire.Call, membership: Membership, done: OnResult, outcome: Outcome
    ) -> None:
        """Enter what a service did to others in the operators' journal, and answer."""
        if isinstance(outcome, CommandResult) and membership.service is not None:
            seat = getattr(call.params, "seat", None)
            self._context.service.service_journal.note(
                membership.service,
                call.method,
                membership.live_table.table_id,
                why=getattr(call.params, "reason", ""),
                details={"version": outcome.version} | ({} if seat is None else {"seat": seat}),
            )
        done(outcome)

    def _on_outcome(
        self, call: wire.Call, handler: CommandHandler, cost: int, outcome: Outcome
    ) -> None:
        self._context.in_flight -= 1
        self._submitted -= 1
        held = outcome.held if isinstance(outcome, CommandResult) else b""
        try:
            if not isinstance(outcome, CommandResult):
                self.session.budget.refund(cost, outcome)
                raise outcome
            cpu, count = self.session.budget.cpu, len(outcome.events)
            if count == 1:  # the square of so short a step is nothing
                cpu.tokens -= EVENT_SECONDS
            else:
                cpu.step(EVENT_SECONDS * count)
            answer = handler.answer(outcome)
            unsent, held = held, b""  # `answer` sends them, whatever happens
            self.session.answer(call, answer, held=unsent)
        except Exception as error:
            if held:
                self.session.transport.write(held)
            self.session.fail(call, error)
        if self._finishing:
            self._close_if_finished()

    async def _draw_at_random(
        self,
        call: wire.Call,
        handler: CommandHandler,
        draw: Callable[[], Awaitable[CommandResult]],
        cost: int,
    ) -> None:
        try:
            done = await draw()
        except DealerError as error:
            self.session.budget.refund(cost, error)
            raise
        self.session.budget.cpu.step(EVENT_SECONDS * len(done.events))
        self.session.answer(call, handler.answer(done))

    # Requests that take more than one step

    def _start(
        self, call: wire.Call, work: Callable[[], Awaitable[None]], *, blocking: bool = False
    ) -> None:
        """Run `work` in a task; with `blocking`, later requests are queued until it is done."""
        if blocking:
            self._queued = deque()
        steps = metered(partial(self._guarded, call, work, blocking), self.session.budget.cpu)
        task = self._context.broadcaster.start_task(steps)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The request, or one that was queued behind it, may have no answer.
            self._context.log_throttle.say_error(error, "internal error", what="no answer")
            self.session.transport.abort()

    async def _guarded(
        self, call: wire.Call, work: Callable[[], Awaitable[None]], blocking: bool
    ) -> None:
        self._context.in_flight += 1
        try:
            if blocking:
                await self.session.transport.drained()  # such answers can be long: one at a time
            await work()
        except Exception as error:
            self.session.fail(call, error)
        finally:
            self._context.in_flight -= 1
            if blocking and not self.session.closed:
                self._run_queued()
                self._close_if_finished()

    def _run_queued(self) -> None:
        """Run the queued requests, up to the next that blocks."""
        queued, self._queued = self._queued or deque(), None
        while queued and not self._is_blocked() and not self.session.closed:
            self._handle(queued.popleft())  # in a task whose steps are charged
        self._queued_bytes = sum(map(len, queued))
        if self._is_blocked():
            self._queued = queued
        else:
            self.session.transport.resume()

    def _is_blocked(self) -> bool:
        return self._queued is not None
