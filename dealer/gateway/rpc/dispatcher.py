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
from dealer.game.commands import Command, Draw, DrawAtRandom, TransferHost, VacateSeat
from dealer.game.state import Table
from dealer.gateway.close_codes import RESTART, CloseCode
from dealer.gateway.push.membership import Membership, Sender
from dealer.gateway.rate_limit.costs import (
    BYTE_SECONDS,
    EVENT_SECONDS,
    MESSAGE_SECONDS,
    bytes_written,
    request_weight,
    weight,
)
from dealer.gateway.rate_limit.cpu_time import metered
from dealer.gateway.rpc.methods import METHODS, ONE_EVENT, Method
from dealer.gateway.rpc.session import AUTOMATIC_WEIGHT, PING_FRAME, Session
from dealer.gateway.wire import protocol as wire
from dealer.service import CommandResult, IdempotencyKey
from dealer.service.tables.execution import CommandExecution, OnResult, Outcome

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
        """Run the request in the payload of one text frame: decode it, admit it, carry it out."""
        session = self.session
        if session.closed:
            return
        if self._queued is not None:
            self._queue(self._queued, data)
            return
        call = _reader.read(data)
        seconds = MESSAGE_SECONDS + BYTE_SECONDS * len(data)
        if type(call) is not wire.Call:
            self._reject(cast("wire.Fault", call), data, seconds)
            return
        self.request_seen = True
        method, budget, allowance = METHODS[call.method], session.budget, session.allowance
        connection, share = allowance.commands, 1.0
        if method.automatic:
            connection, share = allowance.automatic, AUTOMATIC_WEIGHT
        paid = 0
        try:
            wait = budget.admit(
                share,
                self._context.clock(),
                connection,
                seconds=seconds,
                written=method.written,
                timed=True,
            )
            if wait:
                session.limit(call.id, call.method, wait)
                return
            paid = method.written
            if self._finishing or (self._context.draining and not session.pushes):
                raise Unavailable("The server is shutting down; reconnect and send this again.")
            if method.build is None:
                self._start_request(call, method)
                return
            params = call.params
            table, token = params.table, params.token
            membership = session.default if table is None else session.memberships.get(table)
            if membership is not None and not method.absence:
                sender = membership.sender(method.right)
                if sender is not None and (token is None or token in membership.tokens):
                    self._submit(call, method, membership, sender)
                    return
            self._start(call, partial(self._run_elsewhere, call, method), blocking=True)
        except Exception as error:
            budget.written.refund(paid)  # nothing was submitted
            session.fail(call, error)

    def _queue(self, queued: deque[bytes], data: bytes) -> None:
        """Keep what comes after a request that blocks; beyond a bound nothing more is read."""
        queued.append(data)
        self._queued_bytes += len(data)
        limits = self._context.limits
        if len(queued) >= limits.held or self._queued_bytes >= limits.buffer:
            self.session.transport.pause()

    def on_ping(self) -> bool:
        """Whether a ping or pong is within the rate; it counts like a request."""
        session = self.session
        if session.closed:
            return False
        # A pong costs hardly any time, and without pongs a client would disconnect: not `timed`.
        wait = session.budget.admit(1.0, self._context.clock(), session.allowance.commands)
        if wait:
            session.limit(None, PING_FRAME, wait)
        return not wait

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

    def _reject(self, fault: wire.Fault, data: bytes, seconds: float) -> None:
        """Refuse a message that is no request."""
        session = self.session
        if session.pushes and not wire.is_utf8(data):
            # RFC 6455, section 8.1: such a message fails the connection.
            session.transport.close_with(CloseCode.INVALID_DATA, "a text message is UTF-8")
            return
        now, connection = self._context.clock(), session.allowance.commands
        if wait := session.budget.admit(1.0, now, connection, seconds=seconds, timed=True):
            session.limit(fault.id, "unreadable", wait)
            return
        self._context.metrics.calls["unreadable", str(fault.code)] += 1
        if fault.id is not None:
            session.send(wire.fault(fault.id, fault.code, fault.message))

    def _start_request(self, call: wire.Call, method: Method) -> None:
        """Run a request that is no command of a member, in a task."""
        session, handler = self.session, method.handler
        assert handler is not None
        if method.pushes and not session.pushes:
            raise BadRequest(
                f"{call.method} is about a connection and what follows on it: send it over a "
                "WebSocket. Over HTTP use table.state with a token, or GET /feed."
            )
        session.charge(request_weight(call.params))
        self._start(call, partial(handler, session, call), blocking=True)

    # Commands at a table

    async def _run_elsewhere(self, call: wire.Call, method: Method) -> None:
        """Run a command that needs to read first.

        Its connection is not a member of the table, or has a new token, or a seat that is not yet
        on disk; or it depends on presence.
        """
        params, absence = call.params, None
        try:
            membership = await self.session.find(params.table, token=params.token)
            while method.absence:
                absence = await self._context.broadcaster.absences.at_command(membership.live_table)
                if membership.settled:
                    break
                await membership.settle()
            sender = membership.sender(method.right)
            assert sender is not None  # it is settled
            self._submit(call, method, membership, sender, absence)
        except (DealerError, asyncio.CancelledError):
            self.session.budget.written.refund(method.written)  # nothing was submitted
            raise

    def _submit(
        self,
        call: wire.Call,
        method: Method,
        membership: Membership,
        sender: Sender,
        absence: Absence | None = None,
    ) -> None:
        """Make the command, charge what it costs beyond an event, and have it decided."""
        params, live_table, session = call.params, membership.live_table, self.session
        actor, scope = sender
        assert method.build is not None
        command = method.build(actor, params, live_table.table)
        if absence is not None:
            command = replace(cast("VacateSeat | TransferHost", command), absence=absence)
        cost = ONE_EVENT
        if type(command) is not Draw or command.count != 1 or command.whole:
            cost = self._charge(command, live_table.table)
        if actor.host and (method.scope == "host" or actor.seat is None):
            scope = "host"
        key = None
        if params.cmd is not None:  # as `command_key` does, with a call less for a draw
            key = IdempotencyKey(scope, params.cmd, wire.content(call))
        done: OnResult = partial(self._on_outcome, call, method, cost)
        if actor.service and method.journal:
            done = partial(self._on_service_outcome, call, membership, done)
        service = self._context.service
        if type(command) is DrawAtRandom:
            draw = partial(
                service.draw_at_random, live_table, command, key=key, expect=params.expect
            )
            self._start(call, partial(self._draw_at_random, call, method, draw, cost))
            return
        execution = CommandExecution(
            command=command, done=done, key=key, expect=params.expect, origin=session.transport
        )
        self._context.in_flight += 1
        self._submitted += 1
        started_at = thread_time() if method.measured else 0.0
        service.processor.submit(live_table, execution)
        if method.measured:
            session.budget.cpu.step(thread_time() - started_at)

    def _charge(self, command: Command, table: Table) -> int:
        """Charge what a command costs beyond `ONE_EVENT`; returns its bytes, for a refund."""
        cost = bytes_written(command, table)
        self.session.budget.written.charge(cost - ONE_EVENT)
        if more := weight(command, table):
            self.session.charge(more)
        return cost

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

    def _on_outcome(self, call: wire.Call, method: Method, cost: int, outcome: Outcome) -> None:
        """Answer a command, whose events the broadcaster has pushed to the others."""
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
            answer = method.answer(outcome)
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
        method: Method,
        draw: Callable[[], Awaitable[CommandResult]],
        cost: int,
    ) -> None:
        try:
            done = await draw()
        except DealerError as error:
            self.session.budget.refund(cost, error)
            raise
        self.session.budget.cpu.step(EVENT_SECONDS * len(done.events))
        self.session.answer(call, method.answer(done))

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
            self.receive(queued.popleft())  # in a task whose steps are charged
        self._queued_bytes = sum(map(len, queued))
        if self._is_blocked():
            self._queued = queued
        else:
            self.session.transport.resume()

    def _is_blocked(self) -> bool:
        return self._queued is not None
