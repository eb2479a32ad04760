"""Membership: what one connection is at one table, its seat, and its subscription to the events.

A connection is host, player, service or spectator at a table. Its subscription is its cursor into
the events, and keeps the table in memory.

The state of a table may be ahead of the log, and an append that is lost neither moves nor removes a
player. So two seats of a connection are kept, and `HeldSeat.refresh` follows the second one in the
state:

| in the state, the player of `on_disk` | `holder` | `on_disk`, once all of the state is on disk |
|---|---|---|
| has that seat | that seat | stays |
| has moved to another one | the new seat | the new seat |
| has given it up, also if another took it | None | None; a seat does not come back |
| has it again, after a reload: the state was void | that seat | stays |
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from dealer.errors import BadRequest, NotEntitled, VersionConflict
from dealer.game.commands import Actor
from dealer.game.state import Player, SeatHolder
from dealer.game.view import SPECTATOR, Viewer
from dealer.gateway.transport import Transport
from dealer.service import LiveTable
from dealer.service.identity.service_keys import ServiceKey
from dealer.service.identity.service_tables import scope_of

HOST_SCOPE = "host"
"""The scope of the ids of the host's commands, also of a host who has a seat."""


def require_right(key: ServiceKey, right: str) -> None:
    """Raise NotEntitled, which names the right, unless the key has it."""
    if not key.may(right):
        raise NotEntitled(f"This needs the right `{right}`, which your service key does not have.")


@dataclass(slots=True, eq=False, repr=False)
class HeldSeat:
    """The seat that one connection acts for at a table.

    `holder` is the seat in the state as of the last `refresh`, None without one; `on_disk` the last
    one that is known to be on disk. `tokens` are those that were verified on this connection, the
    host's too; after a seat was given up all are verified again.
    """

    live_table: LiveTable
    holder: SeatHolder | None = None
    on_disk: SeatHolder | None = None
    tokens: set[str] = field(default_factory=set)

    def take(self, holder: SeatHolder) -> None:
        """Act for a seat from now on; BadRequest if this connection acts for another one."""
        current = self.refresh()
        if current is not None and current.seat != holder.seat:
            raise BadRequest(
                "This connection already has a seat at this table; use another for another seat."
            )
        self.holder = self.on_disk = holder

    def refresh(self) -> SeatHolder | None:
        """Set `holder` to the seat that the connection acts for now, and return it."""
        holder, table = self.on_disk, self.live_table.table
        if holder is not None and not table.still_seated(holder):
            moved = table.latest(holder)
            holder = moved if table.still_seated(moved) else None
            if holder is None:
                self.tokens.clear()
            if table.version == self.live_table.committed:
                self.on_disk = holder
        self.holder = holder
        return holder

    def is_committed(self) -> bool:
        """Whether it is on disk which seat this connection acts for."""
        if self.on_disk is None:
            return True
        table = self.live_table.table
        latest = table.latest(self.on_disk)
        return table.still_seated(latest) and latest.taken_at <= self.live_table.committed

    async def wait_committed(self) -> None:
        """Wait until it is on disk which seat this connection acts for, and refresh `holder`.

        It is then no seat of another player, who may take it if a move is lost.
        """
        if self.on_disk is not None and not self.is_committed():
            self.on_disk = await self.live_table.seat_on_disk(self.on_disk)
            if self.on_disk is None:
                self.tokens.clear()
        self.refresh()


class Sender(NamedTuple):
    """The sender of a connection's commands, and the scope of their ids."""

    actor: Actor
    scope: str


@dataclass(slots=True, eq=False, repr=False)
class Membership:
    """One connection at one table.

    `service` is the connection's key if it acts at this table by its rights: at a table that it
    opened, or with the right `admin` at all. `host` says whether it has the host token.
    `subscription` keeps the table in memory, whether events are pushed to it or not.
    """

    live_table: LiveTable
    service: ServiceKey | None = None
    host: bool = False
    subscription: Subscription | None = None
    seat: HeldSeat = field(init=False)
    _sender: tuple[Player | None, Sender] | None = None  # the last one, and its player

    def __post_init__(self) -> None:
        self.seat = HeldSeat(self.live_table)

    # What it is

    def take_seat(self, holder: SeatHolder) -> None:
        """Act for a seat from now on; BadRequest if this connection acts for another one."""
        self.seat.take(holder)
        self._sender = None

    def release_seat(self) -> None:
        """Act for no seat from now on, though its player keeps it."""
        self.seat.holder = self.seat.on_disk = self._sender = None

    def become_host(self) -> None:
        """Act with the host token from now on."""
        self.host, self._sender = True, None

    def is_spectator(self) -> bool:
        return not self.host and self.seat.holder is None

    def is_over(self) -> bool:
        """Whether the table is closed, and no event of it is still to be pushed."""
        live_table, subscription = self.live_table, self.subscription
        committed = live_table.committed
        if not live_table.table.closed or live_table.table.version != committed:
            return False  # the state may be ahead of the log
        return subscription is None or subscription.is_up_to(committed)

    # What it may do

    def may_watch(self) -> bool:
        """Whether this connection may see the table at the moment."""
        if self.host or self.live_table.table.rules.watched or self.seat.holder is not None:
            return True
        return self.service is not None and self.service.may("read")

    def require_watching(self) -> None:
        """Raise NotEntitled unless this connection may see the table.

        It also guards commands: the text of any other refusal would reveal the state or the version
        of a private table to a stranger.
        """
        if not self.may_watch():
            if self.service is not None:
                require_right(self.service, "read")
            raise NotEntitled("This table is not open to spectators.")

    def require_version(self, expected: int | None) -> None:
        """Raise VersionConflict if the table is past the version that a command was based on."""
        if expected is not None and self.live_table.table.version > expected:
            raise VersionConflict("The table has changed; read its state and decide again.")

    # Its commands

    def actor(self) -> Actor:
        """The sender of this connection's commands."""
        holder = self.seat.holder
        if holder is None:
            return Actor(self.host)
        return Actor(self.host, holder.seat, holder.taken_at)

    def scope(self) -> str:
        """The scope of command ids of the seat that this connection acts for, or of the host.

        A player keeps the scope of the seat first taken, so that a move does not make a repeated
        command new.
        """
        holder, table = self.seat.holder, self.live_table.table
        if holder is None:
            return HOST_SCOPE if self.host else "seat:None:0"
        if table.moved:
            holder = table.earliest(holder)
        return f"seat:{holder.seat}:{holder.taken_at}"

    def sender(self, right: str | None, token: str | None = None) -> Sender | None:
        """The sender of this connection's next command, which came with `token`, None without one.

        None for a seat that is not yet on disk, or a token that this connection has not verified.
        A service's key needs `right`, None for no right. Raises NotEntitled without it, and to a
        stranger at a private table, before any other refusal, which would reveal its state.
        """
        table, sender = self.live_table.table, None
        if self._sender is not None and not table.moved:
            player, known = self._sender
            # A player has an object of their own as long as they have the seat.
            if player is None or table.seats.get(known.actor.seat or 0) is player:
                sender = known
        if sender is None and self.seat.is_committed():
            sender = self._new_sender(right)
        # Last: if a seat was given up, the step above has forgotten its tokens.
        return sender if token is None or token in self.seat.tokens else None

    def _new_sender(self, right: str | None) -> Sender:
        holder = self.seat.refresh()
        sender = Sender(self.actor(), self.scope())
        if self.service is not None:
            # With a token of the table the connection acts by the token alone.
            if right is None or self.host or holder is not None:
                return sender
            require_right(self.service, right)
            return Sender(Actor(service=True), scope_of(self.service))
        self.require_watching()
        player = None if holder is None else self.live_table.table.seats.get(holder.seat)
        self._sender = (player, sender) if self.host or player is not None else None
        return sender


class SubscriptionState(Enum):
    """What is pushed to a subscription. `Backlog` and `Broadcaster` change it."""

    NEW = auto()  # nothing yet; it only keeps the table in memory
    PAUSED = auto()  # nothing, while an answer is made that says where it continues
    BEHIND = auto()  # a task sends what it has missed
    LIVE = auto()  # it is up to date: events are written in the callback of the commit
    ENDED = auto()


@dataclass(slots=True, eq=False)
class Subscription:
    """One session's cursor into one table.

    `viewer` is the player whose private faces are pushed, SPECTATOR for none; it follows the
    membership's seat only from the answer that confirms it. `cursor` is the last version that was
    sent; `task` runs while the subscription is BEHIND. `presence` is the last attendance sent to
    the client, encoded; None if it never asked.
    """

    transport: Transport
    membership: Membership
    live_table: LiveTable = field(init=False)
    viewer: Viewer = SPECTATOR
    presence: bytes | None = None
    cursor: int = 0
    state: SubscriptionState = SubscriptionState.NEW
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.live_table = self.membership.live_table

    def has_lost_seat(self) -> bool:
        """Whether the viewer no longer holds the seat; never true of a spectator."""
        return self.viewer is not None and not self.live_table.table.still_seated(self.viewer)

    def is_up_to(self, version: int) -> bool:
        """Whether every event up to a version was sent, or none is to be sent at all."""
        is_live = self.state is SubscriptionState.LIVE
        return not self.is_started() or (is_live and self.cursor >= version)

    def only_watches(self) -> bool:
        """Whether events are pushed to it as to a spectator."""
        return self.is_started() and self.membership.is_spectator()

    def is_ended(self) -> bool:
        return self.state is SubscriptionState.ENDED

    def is_started(self) -> bool:
        """Whether events are pushed to it, now or after a pause."""
        return self.state not in (SubscriptionState.NEW, SubscriptionState.ENDED)
