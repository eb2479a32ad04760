"""Memberships of one connection: its tables, found by id and opened by tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from dealer.errors import BadRequest, BadToken, TooManyTables
from dealer.game.commands import Actor
from dealer.game.state import SeatHolder
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.push.membership import Membership
from dealer.gateway.push.subscription import Subscription, Transport
from dealer.service import LiveTable, Service
from dealer.service.service_keys import ServiceKey


class Memberships:
    """The tables of one connection; `named` is the one in its address.

    They are at most `bound`, unless the connection has a `service_key`. A closed table counts until
    another one needs its room.

    `authenticated` is called with each identity that the connection proves or receives: a seat with
    the version at which it was taken, or a table's host. A player's key is none: it is public, and
    a connection that names it has not proved to have it.
    """

    def __init__(
        self,
        service: Service,
        broadcaster: Broadcaster,
        transport: Transport,
        *,
        bound: int,
        named: str | None,
        service_key: ServiceKey | None,
        authenticated: Callable[[Hashable], None],
    ) -> None:
        self._service = service
        self._broadcaster = broadcaster
        self._transport = transport
        self._bound = bound
        self._named = named
        self._authenticated = authenticated
        self.service_key = service_key
        self._memberships: dict[str, Membership] = {}

    def all(self) -> list[Membership]:
        return list(self._memberships.values())

    def get(self, table: str | None) -> Membership | None:
        """The membership at a table; without `table`, at the only one of this connection."""
        if table is not None:
            return self._memberships.get(table)
        if self._named is not None:
            return self._memberships.get(self._named)
        return next(iter(self._memberships.values())) if len(self._memberships) == 1 else None

    async def find(self, table: str | None, *, token: str | None = None) -> Membership:
        """The membership at a table; a temporary one, which is not kept, if there is none.

        The table is at least as recent as any answer that a process on the same database has given,
        and the seat of the membership is on disk. A token is verified once, and its role is kept
        on this connection.
        """
        membership = self.get(table)
        if membership is None:
            name = table or self._named
            if name is None:
                raise BadRequest("Name the table: there is none, or several, that could be meant.")
            membership = await self._new(await self._service.load(name))
        else:
            await self._service.catch_up(membership.live_table)
        await membership.settle()
        if token is not None and token not in membership.tokens:
            await self._accept_token(membership, token)
        return membership

    async def _new(self, live_table: LiveTable) -> Membership:
        key = self.service_key
        if key is None:
            return Membership(live_table)
        tables = self._service.service_tables
        return Membership(live_table, await tables.authority(live_table.id, key))

    async def _actor(self, live_table: LiveTable, token: str) -> Actor:
        """The sender that a token names, accepted or refused only once the reason is on disk.

        Clients forget a token that was refused, and the seat may have been left, or moved to, in a
        void state.
        """
        tokens = self._service.tokens_of(live_table.table.key)
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
            self._broadcaster.presence.changed(live_table)
        else:
            self.become_host(membership)
        membership.tokens.add(token)

    def add(self, membership: Membership) -> Subscription:
        """Keep a membership, with a subscription; TooManyTables if that exceeds the bound."""
        if membership.subscription is None:
            self.require_room()
            self._memberships[membership.live_table.table_id] = membership
        if membership.subscription is None or membership.subscription.ended:
            membership.subscription = self._broadcaster.subscribe(self._transport, membership)
        return membership.subscription

    def require_room(self) -> None:
        """Raise TooManyTables unless this connection may be on one more table.

        If it is at the bound, the earliest table that is over for it is dropped.
        """
        if self.service_key is not None or len(self._memberships) < self._bound:
            return
        over = next(
            (membership for membership in self._memberships.values() if membership.is_over()), None
        )
        if over is None:
            raise TooManyTables(
                f"This connection is at {self._bound} tables, the maximum; leave one of them first."
            )
        self.leave(over)

    def become_host(self, membership: Membership) -> None:
        self.add(membership)
        membership.become_host()
        self._authenticated(("host", membership.live_table.id))

    def take_seat(self, membership: Membership, holder: SeatHolder) -> None:
        """Act for a seat; BadRequest if this connection acts for another one at this table."""
        membership.take_seat(holder)
        self._authenticated((membership.live_table.id, *holder))

    def leave(self, membership: Membership) -> None:
        """End the subscription, and drop the membership."""
        if membership.subscription is not None:
            self._broadcaster.end(membership.subscription)
            membership.subscription = None
            del self._memberships[membership.live_table.table_id]

    def leave_all(self) -> None:
        for membership in self.all():
            self.leave(membership)
