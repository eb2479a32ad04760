"""Session: the server's state of one connection - its memberships, rate limits and answers."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from time import perf_counter

from msgspec import Struct

from dealer.errors import (
    BadKey,
    BadRequest,
    BadToken,
    CommandReused,
    DatabaseDamaged,
    DealerError,
    EntropyMismatch,
    Overloaded,
    RateLimited,
    Refused,
    TooManyTables,
    Unavailable,
)
from dealer.game.commands import Actor
from dealer.game.state import SeatHolder
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.push.feeds import FeedFollower
from dealer.gateway.push.membership import Membership, Subscription, Transport
from dealer.gateway.rate_limit.budgets import rate_limited
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.wire import protocol as wire
from dealer.service import LiveTable
from dealer.service.identity.service_keys import ServiceKey

PING_FRAME = "ping frame"
"""Label of a WebSocket ping or pong in the metric of calls."""

AUTOMATIC_WEIGHT = 0.25
"""Cost of a message that clients send automatically for its address, in messages."""

CACHED_ANSWERS = 16
"""Answers to requests without a membership that are kept, to be repeated."""

SUSPICIOUS = (BadKey, BadToken, CommandReused, EntropyMismatch)
"""Refusals that an honest client hardly ever causes; they are logged."""


class Session:
    """State of one connection; it writes to `transport`.

    `named` is the table in the address of the connection. `memberships` are its tables by id, at
    most as many as its limits say, unless the connection has a service key; a closed table counts
    until another one needs its room. `default` is the one that a request without a table means.
    `service_key` is the valid key of another server's connection, None for a player's. `pushes`
    says whether events can follow an answer. `number` distinguishes it from other sessions of this
    server, in the log lines. `allowance` has the buckets of this connection.
    """

    pushes = True

    def __init__(
        self,
        context: GatewayContext,
        transport: Transport,
        *,
        table: str | None = None,
        service_key: ServiceKey | None = None,
    ) -> None:
        self.context = context
        self.transport = transport
        self.named = table
        self.service_key = service_key
        self.feed: FeedFollower | None = None
        context.sessions += 1
        self.number = context.sessions
        self.memberships: dict[str, Membership] = {}
        self.default: Membership | None = None
        self.closed = False
        self.budget = transport.budget
        self.allowance = self.budget.lease(context.clock())
        self._answers: dict[tuple[str | None, str], tuple[bytes, Struct]] = {}

    def identify(self, key: str) -> None:
        """Act as the service of this key from now on, with its limits instead of the address's.

        Raises BadKey for one that is not valid, BadRequest on a connection that acts for a player
        or for another service, Overloaded where the key has too many connections.
        """
        found = self.context.service.service_keys.find(key)
        if found is None:
            raise BadKey("This service key is not valid, or was revoked; ask the operator.")
        if found == self.service_key:
            return
        if self.service_key is not None or self.memberships:
            raise BadRequest("Give a service key with the first request of a connection only.")
        now = self.context.clock()
        budget = self.context.budgets.key(found.id, now)
        if budget.connections >= self.context.limits.key_connections:
            raise Overloaded("This service key has too many connections; close others first.")
        self.budget.release(self.allowance, now)
        self.transport.charge_to(budget, found)
        self.budget, self.allowance = budget, budget.lease(now)
        self.service_key = found

    def close(self) -> None:
        """Release the connection's tables and its allowance."""
        if self.closed:
            return
        self.closed = True
        self.budget.release(self.allowance, self.context.clock())
        for membership in tuple(self.memberships.values()):
            self.leave(membership)
        if self.feed is not None:
            self.context.feeds.end(self.feed)

    # Tables

    async def find(self, table: str | None, *, token: str | None = None) -> Membership:
        """The membership at a table; a temporary one, which is not kept, if there is none.

        The table is at least as recent as any answer that a process on the same database has given,
        and the seat of the membership is on disk. A token is verified once, and its role is kept
        on this connection.
        """
        service, key = self.context.service, self.service_key
        membership = self.default if table is None else self.memberships.get(table)
        if membership is None:
            name = table or self.named
            if name is None:
                raise BadRequest("Name the table: there is none, or several, that could be meant.")
            membership = Membership(await service.load(name))
            if key is not None:
                table_id = membership.live_table.id
                membership.service = await service.service_tables.authority(table_id, key)
        else:
            await service.catch_up(membership.live_table)
        await membership.settle()
        if token is not None and token not in membership.tokens:
            await self._accept_token(membership, token)
        return membership

    async def _actor(self, live_table: LiveTable, token: str) -> Actor:
        """The sender that a token names, accepted or refused only once the reason is on disk.

        Clients forget a token that was refused, and the seat may have been left, or moved to, in a
        void state.
        """
        tokens = self.context.service.tokens_of(live_table.table.key)
        while True:
            version = live_table.table.version
            try:
                actor = tokens.actor(live_table.id, live_table.table, token)
            except BadToken:
                if await live_table.wait_committed(version):
                    raise
                continue
            holder = live_table.table.holder(actor.seat)
            if holder is None or holder.taken_at <= live_table.committed:
                return actor
            await live_table.wait_committed(holder.taken_at)

    async def _accept_token(self, membership: Membership, token: str) -> None:
        live_table = membership.live_table
        actor = await self._actor(live_table, token)
        self.add(membership)
        holder = live_table.table.holder(actor.seat)
        if holder is not None:
            self.take_seat(membership, holder)
            self.context.broadcaster.presence.changed(live_table)
        else:
            self.become_host(membership)
        membership.tokens.add(token)

    def add(self, membership: Membership) -> Subscription:
        """Keep a membership, with a subscription; TooManyTables if that exceeds the bound."""
        if membership.subscription is None:
            self.require_room()
            self.memberships[membership.live_table.table_id] = membership
            self._find_default()
        if membership.subscription is None or membership.subscription.ended:
            membership.subscription = self.context.broadcaster.subscribe(self.transport, membership)
        return membership.subscription

    def require_room(self) -> None:
        """Raise TooManyTables unless this connection may be on one more table.

        If it is at the bound, the earliest table that is over for it is dropped.
        """
        memberships, bound = self.memberships, self.context.limits.tables
        if self.service_key is not None or len(memberships) < bound:
            return
        over = next((each for each in memberships.values() if each.is_over()), None)
        if over is None:
            raise TooManyTables(
                f"This connection is at {bound} tables, the maximum; leave one of them first."
            )
        self.leave(over)

    def become_host(self, membership: Membership) -> None:
        """Act with the host token of a table from now on."""
        self.add(membership)
        membership.become_host()
        self._authenticated("host", membership.live_table.id)

    def take_seat(self, membership: Membership, holder: SeatHolder) -> None:
        """Act for a seat; BadRequest if this connection acts for another one at this table."""
        membership.take_seat(holder)
        self._authenticated(membership.live_table.id, *holder)

    def leave(self, membership: Membership) -> None:
        """End the subscription, and drop the membership."""
        if membership.subscription is not None:
            self.context.broadcaster.end(membership.subscription)
            membership.subscription = None
            del self.memberships[membership.live_table.table_id]
            self._find_default()

    def _find_default(self) -> None:
        if self.named is not None:
            self.default = self.memberships.get(self.named)
        else:
            only = tuple(self.memberships.values())
            self.default = only[0] if len(only) == 1 else None

    def _authenticated(self, *identity: str | bytes | int) -> None:
        """Carry over the debt of an identity that the connection proves, or receives.

        It is a seat with the version at which it was taken, or a table's host. A player's key is
        none: it is public, and a connection that names it has not proved to have it.
        """
        self.context.budgets.authenticated(identity, self.allowance, self.context.clock())

    # Rate limits

    def limit(self, id: bytes | None, method: str, wait: float) -> None:
        """Refuse a message that was not admitted; close the connection if it does not slow down.

        `wait` is what `ClientBudget.admit` says.
        """
        now = self.context.clock()
        self.context.metrics.calls[method, RateLimited.reason] += 1
        if self.allowance.patience.admit(now) or self.budget.blocked(now):
            self.transport.close_with(
                CloseCode.RATE_LIMITED, "too many requests: reconnect later and resume"
            )
        elif id is not None:
            owed = self.budget.busy(now)
            reason = self.budget.cpu_exhausted if owed else "Too many requests"
            self.refuse(id, rate_limited(reason, max(wait, owed)))

    def charge(self, weight: float) -> None:
        """Charge the additional cost of an accepted message, in messages."""
        self.allowance.commands.charge(weight)
        self.budget.charge(weight)

    def paying(self, written: int, *, decks: int = 0) -> AbstractContextManager[None]:
        """Charge what a block writes, and a table of so many decks; see `ClientBudget.paying`."""
        return self.budget.paying(written, self.context.clock(), decks=decks)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """A turn for a long answer; entering waits until this client's address may have one."""
        return self.context.broadcaster.turns.turn(self.budget)

    async def pause(self) -> None:
        """Between two slices of a long answer: wait until the earlier ones are paid."""
        await self.context.broadcaster.turns.pause(self.budget)

    # Repeated requests without a membership

    def answer_again(self, call: wire.Call) -> bool:
        """Send the answer that the same request had under the same `cmd`; False if there was none.

        Clients may count from 1 at each table; a request that opens a table belongs to none.
        """
        table, cmd = _cache_key(call)
        for (cached_table, cached_cmd), (content, answer) in self._answers.items():
            same_table = cached_table == table or cached_table is None or table is None
            if cached_cmd == cmd and same_table:
                if content != wire.content(call):
                    raise CommandReused(
                        "This command id was used for another command; give each its own."
                    )
                self.answer(call, answer)
                return True
        return False

    def answer_and_keep(self, call: wire.Call, answer: Struct) -> None:
        """Send an answer, and keep it to be repeated."""
        if call.params.cmd is not None:
            self._answers[_cache_key(call)] = (wire.content(call), answer)
            if len(self._answers) > CACHED_ANSWERS:
                del self._answers[next(iter(self._answers))]
        self.answer(call, answer)

    # Answers

    def answer(self, call: wire.Call, answer: Struct, *, held: bytes = b"") -> None:
        """Count and send a result, after the frames `held` back for it, in one write.

        Nothing but these is sent to a request without an id.
        """
        frames = held
        try:
            if call.id is not None:
                frames += wire.result_frame(call.id, answer)
        finally:  # without memory for the answer the events are still sent
            if frames and not self.closed:
                self.transport.write(frames)
        self.context.metrics.answered(call.method, "ok", perf_counter() - call.received)

    def fail(self, call: wire.Call, error: Exception) -> None:
        """Count and send an error; the text of an internal one is logged, and not sent.

        Where not even that can be done, as without memory, the connection is closed.
        """
        try:
            self._fail(call, error)
        except Exception:
            self.transport.abort()
            raise

    def _fail(self, call: wire.Call, error: Exception) -> None:
        if isinstance(error, DealerError):
            outcome = error.reason if isinstance(error, Refused) else Unavailable.reason
            if isinstance(error, DatabaseDamaged) and error.logged:
                pass  # the table has a line already
            elif not isinstance(error, Refused):
                self.context.log_throttle.log(
                    logging.ERROR,
                    "a request failed",
                    self._example(call),
                    method=call.method,
                    says=str(error),
                )
            elif isinstance(error, SUSPICIOUS):
                self._log_suspicious(call, outcome)
            payload = wire.refusal(call.id or wire.NULL, error)
        else:
            self.context.log_throttle.say_error(
                error, "internal error", self._example(call), method=call.method
            )
            outcome = "internal"
            code, message = wire.ErrorCode.INTERNAL_ERROR, "Internal error; see the server's log."
            payload = wire.fault(call.id or wire.NULL, code, message)
        if call.id is not None:
            self.send(payload)
        self.context.metrics.answered(call.method, outcome, perf_counter() - call.received)

    def refuse(self, id: bytes, error: DealerError) -> None:
        """Send the refusal of a request that was not run."""
        self.send(wire.refusal(id, error))

    def _log_suspicious(self, call: wire.Call, reason: str) -> None:
        # A table of the request is logged only if it exists: it may be any text, even a token.
        table = getattr(call.params, "table", None)
        known = None if table is None else self.context.service.live_table(table)
        where = {} if known is None else {"table": known.table_id}
        self.context.log_throttle.log(
            logging.WARNING,
            "client suspect",
            self._example(call),
            method=call.method,
            reason=reason,
            **where,
        )

    def _example(self, call: wire.Call) -> dict[str, object]:
        """The fields of a log line that say which request it is about.

        The id only if it is a number: a text may be anything, even a token.
        """
        id = call.id or b""
        number = {"id": int(id)} if id.removeprefix(b"-").isdigit() else {}
        return {"connection": self.number, **number}

    def send(self, payload: bytes) -> None:
        if not self.closed:
            self.transport.write(wire.text_frame(payload))


def _cache_key(call: wire.Call) -> tuple[str | None, str]:
    """The table that a request names, if any, and its command id."""
    return getattr(call.params, "table", None), call.params.cmd
