"""Membership: the role of one connection at one table - host, player, service, or spectator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from dealer.errors import BadRequest, NotEntitled, VersionConflict
from dealer.game.commands import Actor
from dealer.game.state import Player, SeatHolder
from dealer.gateway.push.subscription import Subscription
from dealer.service import LiveTable
from dealer.service.service_keys import ServiceKey
from dealer.service.service_tables import scope_of


def require_right(key: ServiceKey, right: str) -> None:
    """Raise NotEntitled, which names the right, unless the key has it."""
    if not key.may(right):
        raise NotEntitled(f"This needs the right `{right}`, which your service key does not have.")


class Sender(NamedTuple):
    """The sender of a connection's commands, and the scope of their ids."""

    actor: Actor
    scope: str


@dataclass(slots=True, eq=False, repr=False)
class Membership:
    """One connection at one table.

    `tokens` are those that were verified for it. `subscription` keeps the table in memory, whether
    events are pushed to it or not. `service` is the connection's key where it acts at this table by
    its rights: at a table that it opened, or with the right `admin` at all.
    """

    live_table: LiveTable
    service: ServiceKey | None = None
    host: bool = False
    tokens: set[str] = field(default_factory=set)
    subscription: Subscription | None = None
    _holder: SeatHolder | None = None
    _sender: tuple[Player | None, Sender] | None = None  # the last one, and its player

    @property
    def holder(self) -> SeatHolder | None:
        """The seat that this connection acts for; None without one, or after it was given up.

        It follows a player who moves. A seat that was given up does not come back, even if another
        player takes it; unless the state was void, which is known once all of it is on disk.
        """
        holder, table = self._holder, self.live_table.table
        if holder is None or table.still_seated(holder):
            return holder
        moved = table.latest(holder)
        now = moved if table.still_seated(moved) else None
        if now is None:
            self.tokens.clear()
        if table.version == self.live_table.committed:
            self._holder = now
        return now

    @property
    def settled(self) -> bool:
        """Whether it is on disk which seat this connection acts for."""
        holder, live_table = self._holder, self.live_table
        if holder is None:
            return True
        latest = live_table.table.latest(holder)
        return live_table.table.still_seated(latest) and latest.taken_at <= live_table.committed

    async def settle(self) -> None:
        """Wait until it is on disk which seat this connection acts for.

        `holder` is then no seat of another player, who may take it where a move is lost.
        """
        if self._holder is not None and not self.settled:
            self._holder = await self.live_table.seat_on_disk(self._holder)
            if self._holder is None:
                self.tokens.clear()

    def scope(self) -> str:
        """The scope of command ids of the seat that this connection acts for.

        It is that of the seat first taken, so that a move does not make a repeated command new.
        """
        holder, table = self.holder, self.live_table.table
        if holder is None:
            return "seat:None:0"
        if table.moved:
            holder = table.earliest(holder)
        return f"seat:{holder.seat}:{holder.taken_at}"

    def actor(self) -> Actor:
        """The sender of this connection's commands."""
        holder = self.holder
        if holder is None:
            return Actor(self.host)
        return Actor(self.host, holder.seat, holder.taken_at)

    def _service_sender(self, service: ServiceKey, right: str | None) -> Sender:
        """With a token of the table the connection acts by the token alone."""
        actor = self.actor()
        if right is None or actor.host or actor.seat is not None:
            return Sender(actor, self.scope())
        require_right(service, right)
        return Sender(Actor(service=True), scope_of(service))

    def sender(self, right: str | None) -> Sender | None:
        """The sender of this connection's next command; None for a seat that is not yet on disk.

        A service's key needs `right`, None for no right. Raises NotEntitled without it, and to a
        stranger at a private table, before any other refusal, which would reveal its state.
        """
        table = self.live_table.table
        if self._sender is not None and not table.moved:
            player, sender = self._sender
            # A player has an object of their own as long as they have the seat.
            if player is None or table.seats.get(sender.actor.seat or 0) is player:
                return sender
        if not self.settled:
            return None
        if self.service is not None:
            return self._service_sender(self.service, right)
        self.require_watching()
        sender = Sender(self.actor(), self.scope())
        seat = sender.actor.seat
        player = None if seat is None else table.seats.get(seat)
        self._sender = (player, sender) if self.host or player is not None else None
        return sender

    def take_seat(self, holder: SeatHolder) -> None:
        """Act for a seat from now on; BadRequest if this connection acts for another one."""
        current = self.holder
        if current is not None and current.seat != holder.seat:
            raise BadRequest(
                "This connection already has a seat at this table; use another for another seat."
            )
        self._holder, self._sender = holder, None

    def become_host(self) -> None:
        """Act with the host token from now on."""
        self.host, self._sender = True, None

    def may_watch(self) -> bool:
        """Whether this connection may see the table at the moment."""
        if self.host or self.live_table.table.rules.watched or self.holder is not None:
            return True
        return self.service is not None and self.service.may("read")

    def is_over(self) -> bool:
        """Whether the table is closed, and no event of it is still to be pushed."""
        live_table, subscription = self.live_table, self.subscription
        committed = live_table.committed
        if not live_table.table.closed or live_table.table.version != committed:
            return False  # the state may be ahead of the log
        return subscription is None or subscription.is_up_to(committed)

    def is_spectator(self) -> bool:
        return not self.host and self.holder is None

    def require_version(self, expected: int | None) -> None:
        """Raise VersionConflict if the table is past the version that a command was based on."""
        if expected is not None and self.live_table.table.version > expected:
            raise VersionConflict("The table has changed; read its state and decide again.")

    def require_watching(self) -> None:
        """Raise NotEntitled unless this connection may see the table.

        It also guards commands: the text of any other refusal would reveal the state or the version
        of a private table to a stranger.
        """
        if not self.may_watch():
            if self.service is not None:
                require_right(self.service, "read")
            raise NotEntitled("This table is not open to spectators.")
