"""A guest's place in the house: what they ask, and what they are answered. It knows no socket.

Texts go in, texts come out. A wish at a table is judged in the call that brings it; what has to
look into the log first (joining, resuming) holds back the guest's later requests until it is done,
so that requests sent one behind the other are carried out in their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

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
from dealer.gateway.commands import Wish, weight
from dealer.gateway.floor import Floor, Question
from dealer.gateway.limits import Bucket
from dealer.gateway.places import Place, Places
from dealer.gateway.subscription import Outlet
from dealer.service import Done
from dealer.service.requests import Outcome

RATE = 4529
REMEMBERED = 16
"""How many answers to anonymous requests a connection keeps, to give them again."""

SUSPECT = (BadToken, CommandReused, EntropyMismatch)
"""What an honest client is not refused for, or hardly ever."""

log = logging.getLogger(__name__)


class Session:
    """One connection's requests, in their order."""

    def __init__(self, floor: Floor, outlet: Outlet, *, table: str | None = None) -> None:
        limits, now = floor.limits, floor.clock()
        self.floor = floor
        self.outlet = outlet
        self.places = Places(floor.service, floor.pump, outlet, bound=limits.tables, named=table)
        self.closed = False
        self.heard = False  # whether a request was understood
        self._allowance = Bucket(rate=limits.rate, burst=limits.burst, now=now)
        self._automatic = Bucket(rate=limits.automatic_rate, burst=limits.automatic_burst, now=now)
        self._patience = Bucket(rate=limits.rate, burst=limits.patience, now=now)
        self._held: deque[bytes] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[str, tuple[bytes, Struct]] = {}

    # Coming in

    def receive(self, data: bytes) -> None:
        """Carry out one text frame."""
        if self.closed:
            return
        if self._held is not None:
            self._held.append(data)
            if len(self._held) >= self.floor.limits.held:
                self.outlet.hold()
            return
        call = self.floor.reader.read(data)
        if isinstance(call, wire.Fault):
            self._reject(call)
            return
        self.heard = True
        try:
            self._carry_out(call)
        except Exception as error:
            self.fail(call, error)

    def beaten(self) -> None:
        """A ping or a pong came: it counts like a request, though nobody is told."""
        if not self.closed:
            self._grant(self._allowance, None, "ping frame")

    def close(self) -> None:
        """Nothing more is read or told."""
        self.closed = True
        self._held = None
        self.places.leave_all()
        for task in list(self._tasks):
            task.cancel()

    def _carry_out(self, call: wire.Call) -> None:
        wish = self.floor.wishes.get(call.method)
        question = None if wish is not None else self.floor.questions[call.method]
        automatic = wish.automatic if wish is not None else question and question.automatic
        bucket = self._automatic if automatic else self._allowance
        if not self._grant(bucket, call.id, call.method):
            return
        if self.floor.draining:
            raise Unavailable("The house is closing.")
        if wish is not None:
            self._wish(call, wish)
        elif question is not None:
            self._start(call, partial(self._ask, call, question), holding=True)

    def _reject(self, fault: wire.Fault) -> None:
        if self._grant(self._allowance, fault.id, "unreadable"):
            self.floor.metrics.calls["unreadable", str(fault.code)] += 1
            if fault.id is not None:
                self.send(wire.fault(fault.id, fault.code, fault.message))

    def _grant(self, bucket: Bucket, id: bytes | None, method: str) -> bool:
        """Whether this is not too much; says so, and closes on those who go on all the same."""
        now = self.floor.clock()
        wait = bucket.take(now)
        if not wait:
            return True
        self.floor.metrics.calls[method, RateLimited.reason] += 1
        if self._patience.take(now):
            self.outlet.end(RATE, "too many requests: reconnect later and resume")
        elif id is not None:
            sentence = "Too many requests: wait a little and send this again."
            retry_after_ms = int(wait * 1000) + 1
            self.send(wire.refusal(id, RateLimited(sentence, retry_after_ms=retry_after_ms)))
        return False

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
        command = wish.build(actor, params, resident.table)
        self._allowance.charge(weight(command, resident.table))
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
            self._start(call, partial(self._draw, call, wish, draw))
            return
        self.floor.in_flight += 1
        done = partial(self._done, call, wish)
        self.floor.service.perform(
            resident,
            command,
            cmd=cmd,
            scope=scope,
            content=content,
            expect=params.expect,
            done=done,
        )

    def _done(self, call: wire.Call, wish: Wish, outcome: Outcome) -> None:
        self.floor.in_flight -= 1
        try:
            if not isinstance(outcome, Done):
                raise outcome
            self.answer(call, wish.answer(outcome))
        except Exception as error:
            self.fail(call, error)

    async def _draw(self, call: wire.Call, wish: Wish, draw: Callable[[], Awaitable[Done]]) -> None:
        self.answer(call, wish.answer(await draw()))

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
        task = self.floor.pump.keep(self._guarded(call, work, holding))
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
        while held and self._is_free():
            self.receive(held.popleft())
        if self._is_free():
            self.outlet.release()
        else:
            self._held = held

    def _is_free(self) -> bool:
        return self._held is None

    # Anonymous requests that are sent again

    def earlier(self, call: wire.Call) -> Struct | None:
        """The answer that this connection got to the same request under the same cmd."""
        cmd = call.params.cmd
        if cmd not in self._answers:
            return None
        content, answer = self._answers[cmd]
        if content != wire.content(call):
            raise CommandReused("This command id was used for something else; give each its own.")
        return answer

    def remember(self, call: wire.Call, answer: Struct) -> None:
        if call.params.cmd is not None:
            self._answers[call.params.cmd] = (wire.content(call), answer)
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
                log.error("a request failed", extra={"told": told})
            elif isinstance(error, SUSPECT):
                self._suspect(call, outcome)
            payload = wire.refusal(call.id or wire.NULL, error)
        else:
            told = {"method": call.method}
            log.error("the program made a mistake", exc_info=error, extra={"told": told})
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
