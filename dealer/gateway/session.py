"""A guest's place in the house: what they ask, and what they are answered. It knows no socket.

Texts go in, texts come out. A wish at a table is judged in the call that brings it; what has to
look into the log first (joining, resuming) holds back the guest's later requests until it is done,
so that requests sent one behind the other are carried out in their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from time import thread_time

from msgspec import Struct

from dealer.errors import (
    BadToken,
    CommandReused,
    DealerError,
    EntropyMismatch,
    RateLimited,
    Refused,
    Unavailable,
)
from dealer.game.commands import DrawAtRandom
from dealer.gateway import wire
from dealer.gateway.commands import Wish
from dealer.gateway.costs import asked, elsewhere, weight, written
from dealer.gateway.floor import Floor, Question
from dealer.gateway.places import Place, Places
from dealer.gateway.rate_limit import BUSY, WRITTEN, Bucket, rate_limited
from dealer.gateway.subscription import Outlet
from dealer.gateway.turns import metered
from dealer.service import Done
from dealer.service.requests import Outcome

RATE = 4529
PING_FRAME = "ping frame"
REMEMBERED = 16
"""How many answers to anonymous requests a connection keeps, to give them again."""

AUTOMATIC = 0.25
"""What a message that clients send on their own costs their address, in messages."""

SUSPECT = (BadToken, CommandReused, EntropyMismatch)
"""What an honest client is not refused for, or hardly ever."""


class Session:
    """One connection's requests, in their order."""

    def __init__(
        self,
        floor: Floor,
        outlet: Outlet,
        *,
        table: str | None = None,
    ) -> None:
        limits, now = floor.limits, floor.clock()
        self.floor = floor
        self.outlet = outlet
        self.places = Places(
            floor.service,
            floor.pump,
            outlet,
            bound=limits.tables,
            named=table,
            authenticated=self._authenticated,
        )
        self.closed = False
        self.heard = False  # whether a request was understood
        self._budget = outlet.budget
        self._allowance = self._budget.lease(now)
        self._held: deque[bytes] | None = None
        self._held_bytes = 0  # that came while requests were held back
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[tuple[str | None, str], tuple[bytes, Struct]] = {}

    # Coming in

    def receive(self, data: bytes) -> None:
        """Carry out one text frame."""
        if self.closed:
            return
        if self._held is not None:
            self._held.append(data)
            self._held_bytes += len(data)
            limits = self.floor.limits
            if len(self._held) >= limits.held or self._held_bytes >= limits.buffer:
                self.outlet.hold()
            return
        begun = thread_time()
        try:
            self._read(data)
        finally:
            self._budget.cpu.charge(thread_time() - begun)

    def _read(self, data: bytes) -> None:
        call = self.floor.reader.read(data)
        if isinstance(call, wire.Fault):
            self._reject(call)
            return
        self.heard = True
        try:
            self._carry_out(call)
        except Exception as error:
            self.fail(call, error)

    def beaten(self) -> bool:
        """Whether a ping or a pong that came is within the rate: it counts like a request."""
        return not self.closed and self._grant(self._allowance.commands, None, PING_FRAME)

    def close(self) -> None:
        """Nothing more is read or told."""
        if self.closed:
            return
        self.closed = True
        self._budget.release(self._allowance, self.floor.clock())
        self._held = None
        self.places.leave_all()
        for task in list(self._tasks):
            task.cancel()

    def _carry_out(self, call: wire.Call) -> None:
        wish = self.floor.wishes.get(call.method)
        question = None if wish is not None else self.floor.questions[call.method]
        automatic = wish.automatic if wish is not None else question and question.automatic
        allowance = self._allowance
        if automatic:
            granted = self._grant(allowance.automatic, call.id, call.method, weight=AUTOMATIC)
        else:
            granted = self._grant(allowance.commands, call.id, call.method)
        if not granted:
            return
        if self.floor.draining:
            raise Unavailable("The house is closing.")
        if wish is not None:
            self._wish(call, wish)
        elif question is not None:
            self._charge(asked(call.params))
            self._start(call, partial(self._ask, call, question), holding=True)

    def _reject(self, fault: wire.Fault) -> None:
        if self._grant(self._allowance.commands, fault.id, "unreadable"):
            self.floor.metrics.calls["unreadable", str(fault.code)] += 1
            if fault.id is not None:
                self.send(wire.fault(fault.id, fault.code, fault.message))

    def _grant(self, bucket: Bucket, id: bytes | None, method: str, *, weight: float = 1.0) -> bool:
        """Whether a message is within the rates of this connection and of its address.

        Refuses it otherwise, and closes the connection of a client that does not slow down.
        """
        now = self.floor.clock()
        # A pong costs next to nothing, and without it a client would take the server for dead.
        busy = 0.0 if method == PING_FRAME else self._budget.busy(now)
        wait = max(bucket.take(now), self._budget.spend(weight, now), busy)
        if not wait:
            return True
        self.floor.metrics.calls[method, RateLimited.reason] += 1
        if self._allowance.patience.take(now) or self._budget.blocked(now):
            self.outlet.end(RATE, "too many requests: reconnect later and resume")
        elif id is not None:
            self.send(wire.refusal(id, rate_limited(BUSY if busy else "Too many requests", wait)))
        return False

    def _charge(self, weight: float) -> None:
        """Charge what a message that was let through costs beside itself."""
        self._allowance.commands.charge(weight)
        self._budget.charge(weight)

    def pay(self, written: int) -> None:
        """Charge bytes that are about to be written to disk for this client's address.

        Raises RateLimited while earlier ones are not paid for.
        """
        wait = self._budget.pay(written, self.floor.clock())
        if wait:
            raise rate_limited(WRITTEN, wait)

    def refund(self, written: int, error: Exception) -> None:
        """Give back what was paid for a request that was refused and so wrote nothing."""
        if isinstance(error, Refused) and not isinstance(error, Unavailable):
            self._budget.written.charge(-written)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """The turn of a long answer; it waits until this client's address may have one."""
        return self.floor.pump.turns.turn(self._budget)

    async def pause(self) -> None:
        """Between two slices of a long answer: wait until the earlier ones are paid for."""
        await self.floor.pump.turns.pause(self._budget)

    @contextmanager
    def paying(self, written: int, *, table: bool = False) -> Iterator[None]:
        """Charge what the block makes the server write, and a `table` that it opens.

        RateLimited, and the block does not run, where the address may not; what the block refuses
        is given back.
        """
        self.pay(written)
        if table:
            wait = self._budget.tables.take(self.floor.clock())
            if wait:
                self._budget.written.charge(-written)
                raise rate_limited("Your address has opened as many tables as it may", wait)
        try:
            yield
        except DealerError as error:
            self.refund(written, error)
            if table:
                self._budget.tables.charge(-1.0)
            raise

    def _authenticated(self, player: Hashable) -> None:
        self.floor.budgets.authenticated(player, self._allowance, self.floor.clock())

    # Wishes at a table

    def _wish(self, call: wire.Call, wish: Wish) -> None:
        params = call.params
        place = self.places.get(params.table)
        if place is None or (params.token is not None and params.token not in place.tokens):
            self._start(call, partial(self._wish_elsewhere, call, wish), holding=True)
        else:
            self._perform(call, wish, place)

    async def _wish_elsewhere(self, call: wire.Call, wish: Wish) -> None:
        place = await self.places.find(call.params.table, token=call.params.token)
        self._perform(call, wish, place)

    def _perform(self, call: wire.Call, wish: Wish, place: Place) -> None:
        params, resident = call.params, place.resident
        place.require_admission()  # before `expect`, or what is refused, tells how the table stands
        actor = place.actor()
        if actor.seat is None and not actor.host:
            # Every other refusal would say how a table stands that the client may not see.
            place.require_watching()
        command = wish.build(actor, params, resident.table)
        cost = written(command, resident.table)
        self.pay(cost)
        if more := weight(command, resident.table):
            self._charge(more)
        cmd: str | None = params.cmd
        scope, content = "", b""
        if cmd is not None:
            as_host = actor.host and (wish.role == "host" or actor.seat is None)
            scope = "host" if as_host else f"seat:{actor.seat}:{place.since}"
            content = wire.content(call)
        if isinstance(command, DrawAtRandom):
            draw = partial(
                self.floor.service.draw_at_random,
                resident,
                actor,
                count=command.count,
                source=command.source,
                cmd=cmd,
                scope=scope,
                content=content,
                expect=params.expect,
            )
            self._start(call, partial(self._draw, call, wish, draw, cost))
            return
        self.floor.in_flight += 1
        done = partial(self._done, call, wish, cost)
        self.floor.service.perform(
            resident,
            command,
            cmd=cmd,
            scope=scope,
            content=content,
            expect=params.expect,
            done=done,
        )

    def _done(self, call: wire.Call, wish: Wish, cost: int, outcome: Outcome) -> None:
        self.floor.in_flight -= 1
        try:
            if not isinstance(outcome, Done):
                self.refund(cost, outcome)
                raise outcome
            self._budget.cpu.charge(elsewhere(outcome.events))
            self.answer(call, wish.answer(outcome))
        except Exception as error:
            self.fail(call, error)

    async def _draw(
        self, call: wire.Call, wish: Wish, draw: Callable[[], Awaitable[Done]], cost: int
    ) -> None:
        try:
            done = await draw()
        except DealerError as error:
            self.refund(cost, error)
            raise
        self._budget.cpu.charge(elsewhere(done.events))
        self.answer(call, wish.answer(done))

    # Questions, and whatever takes a while

    async def _ask(self, call: wire.Call, question: Question) -> None:
        answer, then = await question.ask(self, call)
        if not self.closed:
            self.answer(call, answer)
            then()

    def _start(
        self, call: wire.Call, work: Callable[[], Awaitable[None]], *, holding: bool = False
    ) -> None:
        """Do what takes a while; `holding` makes later requests wait for it."""
        if holding:
            self._held = deque()
        steps = metered(partial(self._guarded, call, work, holding), self._budget.cpu)
        task = self.floor.pump.keep(steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(
        self, call: wire.Call, work: Callable[[], Awaitable[None]], holding: bool
    ) -> None:
        self.floor.in_flight += 1
        try:
            if holding:
                await self.outlet.writable()  # such answers can be long: one at a time
            await work()
        except Exception as error:
            self.fail(call, error)
        finally:
            self.floor.in_flight -= 1
            if holding and not self.closed:
                self._release()

    def _release(self) -> None:
        """Go on with the requests that were held back, up to the next that takes a while."""
        held, self._held = self._held or deque(), None
        while held and self._is_free() and not self.closed:
            self._read(held.popleft())  # in a task whose steps are charged
        self._held_bytes = sum(map(len, held))
        if self._is_free():
            self.outlet.release()
        else:
            self._held = held

    def _is_free(self) -> bool:
        return self._held is None

    # Anonymous requests that are sent again

    def earlier(self, call: wire.Call) -> Struct | None:
        """The answer that this connection got to the same request under the same cmd.

        Clients may count from 1 at each table; what opens a table belongs to none of them.
        """
        table, cmd = _name_of(call)
        for (at, name), (content, answer) in self._answers.items():
            if name == cmd and (at == table or at is None or table is None):
                if content != wire.content(call):
                    raise CommandReused(
                        "This command id was used for something else; give each its own."
                    )
                return answer
        return None

    def remember(self, call: wire.Call, answer: Struct) -> None:
        if call.params.cmd is not None:
            self._answers[_name_of(call)] = (wire.content(call), answer)
            if len(self._answers) > REMEMBERED:
                del self._answers[next(iter(self._answers))]

    # Going out

    def answer(self, call: wire.Call, answer: Struct) -> None:
        self.floor.metrics.calls[call.method, "ok"] += 1
        if call.id is not None:
            self.send(wire.result(call.id, answer))

    def fail(self, call: wire.Call, error: Exception) -> None:
        """Say why not; what should not have happened is for the log, not for the guest."""
        if isinstance(error, DealerError):
            outcome = error.reason if isinstance(error, Refused) else Unavailable.reason
            if not isinstance(error, Refused):
                told = {"method": call.method, "says": str(error)}
                self.floor.seldom.say(logging.ERROR, "a request failed", **told)
            elif isinstance(error, SUSPECT):
                self._suspect(call, outcome)
            payload = wire.refusal(call.id or wire.NULL, error)
        else:
            self.floor.seldom.say_error(error, "the program made a mistake", method=call.method)
            outcome = "internal"
            sentence = "The house made a mistake; its log says more."
            payload = wire.fault(call.id or wire.NULL, wire.INTERNAL_ERROR, sentence)
        self.floor.metrics.calls[call.method, outcome] += 1
        if call.id is not None:
            self.send(payload)

    def _suspect(self, call: wire.Call, reason: str) -> None:
        # What stands in the request may be anything, a token as well; so only known tables.
        table = getattr(call.params, "table", None)
        known = None if table is None else self.floor.service.resident(table)
        about = {} if known is None else {"table": known.table_id}
        said = {"method": call.method, "reason": reason, **about}
        self.floor.seldom.say(logging.WARNING, "client suspect", **said)

    def send(self, payload: bytes) -> None:
        if not self.closed:
            self.outlet.write(wire.text_frame(payload))


def _name_of(call: wire.Call) -> tuple[str | None, str]:
    """The table that a command names, if any, and its id there."""
    return getattr(call.params, "table", None), call.params.cmd
