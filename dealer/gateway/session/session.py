"""Session: the server's state of one connection - its tables, its service key, its rate limits."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager

from dealer.errors import BadKey, BadRequest, BadToken, Overloaded, RateLimited, TooManyTables
from dealer.game.commands import Actor
from dealer.game.state import SeatHolder
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.presence.membership import Membership, Subscription
from dealer.gateway.push.feeds import FeedFollower
from dealer.gateway.rate_limit.budgets import rate_limited
from dealer.gateway.session.answers import Answers
from dealer.gateway.session.context import GatewayContext
from dealer.gateway.session.repeats import RepeatableAnswers
from dealer.gateway.transport import Transport
from dealer.service import LiveTable
from dealer.service.identity.service_keys import ServiceKey


class Session:
    """State of one connection, to whose `transport` it writes.

    `named` is the table in the address of the connection. `memberships` are its tables by id, at
    most as many as its limits say, unless the connection has a service key; a closed table counts
    until another one needs its room. `default` is the one that a request without a table means.
    `broadcasts` are those that it watches by a link, by table: they give it nothing at the table.
    `service_key` is the valid key of another server's connection, None for a player's. `pushes`
    says whether events can follow an answer. `connection_budget` is the connection's own; the one
    of its address or key is the transport's.
    """

    def __init__(
        self,
        context: GatewayContext,
        transport: Transport,
        *,
        table: str | None = None,
        service_key: ServiceKey | None = None,
        answers: Answers | None = None,
        pushes: bool = True,
    ) -> None:
        self.context = context
        self.transport = transport
        self.named = table
        self.service_key = service_key
        self.pushes = pushes
        self.feed: FeedFollower | None = None
        self.answers = answers or Answers(context, transport)
        self.repeatable = RepeatableAnswers()
        self.memberships: dict[str, Membership] = {}
        self.default: Membership | None = None
        self.broadcasts: dict[str, Subscription] = {}
        self.connection_budget = transport.budget.begin_connection(context.clock())

    def identify(self, key: str) -> None:
        """Act as the service of this key from now on, with its limits instead of the address's.

        Raises BadKey for one that is not valid, BadRequest on a connection that acts for a player
        or for another service, Overloaded if the key has too many connections.
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
        self.transport.budget.end_connection(self.connection_budget, now)
        self.transport.charge_to(budget, found)
        self.connection_budget = budget.begin_connection(now)
        self.service_key = found

    def close(self) -> None:
        """Leave the connection's tables; its debt remains."""
        if self.answers.closed:
            return
        self.answers.closed = True
        self.transport.budget.end_connection(self.connection_budget, self.context.clock())
        for membership in tuple(self.memberships.values()):
            self.leave(membership)
        for subscription in self.broadcasts.values():
            self.context.backlog.end(subscription)
        if self.feed is not None:
            self.context.feeds.end(self.feed)

    # Tables

    async def find(self, table: str | None, *, token: str | None = None) -> Membership:
        """The membership at a table; a temporary one, which is not kept, if there is none.

        The table is at least as recent as any answer that a process on the same database has given,
        and the seat of the membership is on disk. A token is verified once a connection.
        """
        service, key, name = self.context.service, self.service_key, table or self.named
        membership = self.default if table is None else self.memberships.get(table)
        if membership and membership.subscription and membership.subscription.is_ended():
            name = membership.live_table.table_id
            self.leave(membership)
            membership = None  # its table may have left memory, and be loaded as another object
        if membership is None:
            if name is None:
                raise BadRequest("Name the table: there is none, or several, that could be meant.")
            membership = Membership(await service.lifecycle.load(name))
        live_table = membership.live_table
        with live_table.held():  # or it leaves memory before it has a subscription, which is silent
            if membership.subscription is not None:
                await service.lifecycle.catch_up(live_table)
            elif key is not None:
                membership.service = await service.service_tables.authority(live_table.id, key)
            await membership.seat.wait_committed()
            if token is not None and token not in membership.seat.tokens:
                await self._accept_token(membership, token)
        return membership

    async def _actor(self, live_table: LiveTable, token: str) -> Actor:
        """The sender that a token names, accepted or refused only once the reason is on disk.

        Clients forget a refused token, and the seat may have been left or moved to in a void state.
        """
        tokens = self.context.service.tokens.of(live_table.table.key)
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
            self.context.presence.changed(live_table)
        else:
            self.become_host(membership)
        membership.seat.tokens.add(token)

    def add(self, membership: Membership) -> Subscription:
        """Keep a membership, with a subscription; TooManyTables if that exceeds the bound."""
        if membership.subscription is None:
            self.require_room()
            self.memberships[membership.live_table.table_id] = membership
            self._find_default()
        if membership.subscription is None or membership.subscription.is_ended():
            membership.subscription = self.context.broadcaster.subscribe(self.transport, membership)
        return membership.subscription

    def require_room(self) -> None:
        """Raise TooManyTables unless this connection may be on one more table.

        If it is at the bound, the earliest table that is over for it is dropped.
        """
        memberships, bound = self.memberships, self.context.limits.tables
        kept = len(memberships) + len(self.broadcasts)
        if self.service_key is not None or kept < bound:
            return
        over = next((each for each in memberships.values() if each.is_over()), None)
        if over is None:
            raise TooManyTables(
                f"This connection is at {bound} tables, the maximum; leave one of them first."
            )
        self.leave(over)

    def watch(self, broadcast: LiveTable) -> Subscription:
        """Subscribe to a broadcast, instead of an earlier one of the table; nothing is sent yet."""
        if broadcast.table_id in self.broadcasts:
            self.context.backlog.end(self.broadcasts.pop(broadcast.table_id))
        self.require_room()
        subscription = self.context.broadcaster.subscribe(self.transport, Membership(broadcast))
        self.broadcasts[broadcast.table_id] = subscription
        return subscription

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
            self.context.backlog.end(membership.subscription)
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
        self.context.budgets.authenticated(identity, self.connection_budget, self.context.clock())

    # Rate limits

    def limit(self, id: bytes | None, method: str, wait: float) -> None:
        """Refuse a message that was not admitted; close the connection if it does not slow down.

        `wait` is what `ClientBudget.admit` says.
        """
        now = self.context.clock()
        self.context.metrics.calls[method, RateLimited.reason] += 1
        if self.connection_budget.patience.admit(now) or self.transport.budget.blocked(now):
            self.transport.close_with(
                CloseCode.RATE_LIMITED, "too many requests: reconnect later and resume"
            )
        else:
            owed = self.transport.budget.busy(now)
            reason = self.transport.budget.cpu_exhausted if owed else "Too many requests"
            self.answers.refuse(id, rate_limited(reason, max(wait, owed)))

    def charge(self, weight: float) -> None:
        """Charge the additional cost of an accepted message, in messages."""
        self.connection_budget.commands.charge(weight)
        self.transport.budget.charge(weight)

    def charged(self, written: int, *, decks: int = 0) -> AbstractContextManager[None]:
        """Charge what a block writes, and a table of so many decks; see `ClientBudget.charged`."""
        return self.transport.budget.charged(written, self.context.clock(), decks=decks)

    def permit(self) -> AbstractAsyncContextManager[None]:
        """A permit for a long answer; entering waits until this client's address may have one."""
        return self.context.long_answers.permit(self.transport.budget)

    async def pause(self) -> None:
        """Between two slices of a long answer: wait until nothing is owed."""
        await self.context.long_answers.pause(self.transport.budget)
