"""Dispatcher of one connection: decode, rate limit, look up the method, run it, answer.

A command of a member runs in the call that receives it. What has to read the log first runs in a
task, see `request_queue.py`.

Every message is charged on admission: a message of its rate, and the time to decode it. A command
is charged for what it will write just before it is submitted, by an estimate (`_submit`), so that
nothing has to be refunded of what is refused earlier. `_settle` corrects the estimate once the
outcome is known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from time import thread_time
from typing import cast

from dealer.errors import BadRequest, DealerError, Unavailable
from dealer.game.absence import Absence
from dealer.game.commands import Draw, DrawAtRandom, TransferHost, VacateSeat
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.presence.membership import HOST_SCOPE, Membership, Sender
from dealer.gateway.rate_limit import costs
from dealer.gateway.session.methods import METHODS, Method
from dealer.gateway.session.request_queue import RequestQueue
from dealer.gateway.session.session import Session
from dealer.gateway.wire import protocol as wire
from dealer.service import CommandResult, IdempotencyKey
from dealer.service.tables.execution import CommandExecution, OnResult, Outcome

AUTOMATIC_WEIGHT = 0.25
"""Cost of a message that clients send automatically for its address, in messages."""

PING = "ping frame"
"""Label of a WebSocket ping or pong in the metric of calls."""

_reader = wire.Reader({name: method.params for name, method in METHODS.items()})


class Dispatcher:
    """Runs the requests of one session in their order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.request_seen = False  # whether a request was decoded
        self.queue = RequestQueue(session, self.receive)
        self._context = session.context

    # What comes from the connection

    def receive(self, data: bytes) -> None:
        """Run the request in the payload of one text frame: decode it, admit it, carry it out."""
        session = self.session
        if session.answers.closed:
            return
        if self.queue.waiting is not None:
            self.queue.add(data)
            return
        call = _reader.read(data)
        seconds = costs.MESSAGE_SECONDS + costs.BYTE_SECONDS * len(data)
        if type(call) is not wire.Call:
            self._reject(cast("wire.Fault", call), data, seconds)
            return
        self.request_seen = True
        method, budget = METHODS[call.method], session.transport.budget
        bucket, share = session.connection_budget.commands, 1.0
        if method.automatic:
            bucket, share = session.connection_budget.automatic, AUTOMATIC_WEIGHT
        try:
            wait = budget.admit(
                share,
                self._context.clock(),
                bucket,
                seconds=seconds,
                writes=method.build is not None,
                timed=True,
            )
            if wait:
                session.limit(call.id, call.method, wait)
                return
            if self.queue.finishing or (self._context.draining and not session.pushes):
                raise Unavailable("The server is shutting down; reconnect and send this again.")
            if method.build is None:
                self._start_request(call, method)
                return
            params = call.params
            table, token = params.table, params.token
            membership = session.default if table is None else session.memberships.get(table)
            if membership is not None and not method.absence:  # usually; else something is read
                sender = membership.sender(method.right, token)
                if sender is not None:
                    self._submit(call, method, membership, sender)
                    return
            self.queue.start(call, partial(self._submit_later, call, method), blocking=True)
        except Exception as error:
            session.answers.send_error(call, error)

    def on_ping(self) -> bool:
        """Whether a ping or pong is within the rate; it counts like a request."""
        session = self.session
        if session.answers.closed:
            return False
        # A pong costs hardly any time, and without pongs a client would disconnect: not `timed`.
        wait = session.transport.budget.admit(
            1.0, self._context.clock(), session.connection_budget.commands
        )
        if wait:
            session.limit(None, PING, wait)
        return not wait

    def finish(self) -> None:
        """Run nothing more, and close the connection when what was received is answered."""
        self.queue.finish()

    def close(self) -> None:
        """Run and answer nothing more."""
        if not self.session.answers.closed:
            self.session.close()
            self.queue.close()

    def _reject(self, fault: wire.Fault, data: bytes, seconds: float) -> None:
        """Refuse a message that is no request."""
        session = self.session
        if session.pushes and not wire.is_utf8(data):
            # RFC 6455, section 8.1: such a message fails the connection.
            session.transport.close_with(CloseCode.INVALID_DATA, "a text message is UTF-8")
            return
        now, connection = self._context.clock(), session.connection_budget.commands
        if wait := session.transport.budget.admit(
            1.0, now, connection, seconds=seconds, timed=True
        ):
            session.limit(fault.id, "unreadable", wait)
            return
        self._context.metrics.calls["unreadable", str(fault.code)] += 1
        session.answers.reject(fault.id, fault.code, fault.message)

    def _start_request(self, call: wire.Call, method: Method) -> None:
        """Run a request that is no command of a member, in a task."""
        session, handler = self.session, method.handler
        assert handler is not None
        if method.pushes and not session.pushes:
            raise BadRequest(
                f"{call.method} is about a connection and what follows on it: send it over a "
                "WebSocket. Over HTTP use table.state with a token, or GET /feed."
            )
        self.queue.start(call, partial(handler, session, call), blocking=True)

    # Commands at a table

    async def _submit_later(self, call: wire.Call, method: Method) -> None:
        """Run a command that needs to read first.

        Its connection is not a member of the table, or has a new token, or a seat that is not yet
        on disk; or it depends on presence.
        """
        params, absence = call.params, None
        membership = await self.session.find(params.table, token=params.token)
        while method.absence:
            absence = await self._context.absences.at_command(membership.live_table)
            if membership.seat.is_committed():
                break
            await membership.seat.wait_committed()
        sender = membership.sender(method.right)
        assert sender is not None  # the seat is on disk
        self._submit(call, method, membership, sender, absence)

    def _submit(
        self,
        call: wire.Call,
        method: Method,
        membership: Membership,
        sender: Sender,
        absence: Absence | None = None,
    ) -> None:
        """Make the command, charge what it will cost, and have it decided."""
        params, live_table, session = call.params, membership.live_table, self.session
        actor, scope = sender
        assert method.build is not None
        command = method.build(actor, params, live_table.table)
        if absence is not None:
            command = replace(cast("VacateSeat | TransferHost", command), absence=absence)

        if actor.host and method.host:
            scope = HOST_SCOPE
        key = None
        if params.cmd is not None:  # as `repeats.command_key` does, with a call less for a draw
            key = IdempotencyKey(scope, params.cmd, wire.content(call))

        budget, written = session.transport.budget, costs.ONE_EVENT
        if type(command) is not Draw or command.count != 1 or command.whole:
            written = costs.bytes_written(command, live_table.table)
            if more := costs.weight(command, live_table.table):
                session.charge(more)
        budget.written.tokens -= written
        budget.cpu.tokens -= costs.EVENT_SECONDS

        if type(command) is DrawAtRandom:
            work = partial(
                self._context.service.random_draws.draw,
                live_table,
                command,
                key=key,
                expect=params.expect,
            )
            self.queue.start(call, partial(self._draw_at_random, call, method, written, work))
            return
        done: OnResult = partial(self._on_outcome, call, method, written)
        if actor.service and method.journal:
            done = partial(self._on_service_outcome, call, membership, done)
        execution = CommandExecution(
            command=command, done=done, key=key, expect=params.expect, origin=session.transport
        )
        self._context.in_flight += 1
        self.queue.submitted += 1
        # A deck, a shuffle, a whole round take longer than their events say; the other commands
        # move a few cards, or write a text.
        is_long = method.host or method.automatic
        started_at = thread_time() if is_long else 0.0
        self._context.service.processor.submit(live_table, execution)
        if is_long:
            budget.step(thread_time() - started_at, self._context.clock())

    def _settle(self, written: int, outcome: Outcome) -> None:
        """Replace what a command was charged, `written` and an event's time, by what it cost.

        A repeated one has written nothing.
        """
        budget = self.session.transport.budget
        budget.cpu.refund(costs.EVENT_SECONDS)
        if isinstance(outcome, CommandResult):
            budget.cpu.charge(costs.EVENT_SECONDS * len(outcome.events))
            if outcome.repeated or not outcome.events:
                budget.written.refund(written)
        else:
            budget.refund(written, outcome)

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

    def _on_outcome(self, call: wire.Call, method: Method, written: int, outcome: Outcome) -> None:
        """Answer a command, whose events the broadcaster has pushed to the others."""
        self._context.in_flight -= 1
        self.queue.submitted -= 1
        answers = self.session.answers
        if not isinstance(outcome, CommandResult):
            self._settle(written, outcome)
            answers.send_error(call, outcome)
        else:
            if outcome.repeated or len(outcome.events) != 1:  # one is what was charged
                self._settle(written, outcome)
            try:
                answers.send_outcome(call, method.answer, outcome)
            except Exception as error:
                answers.send_error(call, error)
        if self.queue.finishing:
            self.queue.close_if_finished()

    async def _draw_at_random(
        self,
        call: wire.Call,
        method: Method,
        written: int,
        work: Callable[[], Awaitable[CommandResult]],
    ) -> None:
        try:
            done = await work()
        except DealerError as error:
            self._settle(written, error)
            raise
        self._settle(written, done)
        self.session.answers.send_outcome(call, method.answer, done)
