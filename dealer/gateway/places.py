"""Who a guest is at each table: host, player at a seat, or one who watches."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from dealer.errors import BadRequest, Conflicted, NotEntitled, TooManyTables
from dealer.game.commands import Actor
from dealer.game.view import SPECTATOR, Viewer
from dealer.gateway.pump import Pump
from dealer.gateway.subscription import Outlet, Subscription
from dealer.service import Resident, Service


class Place:
    """One guest at one table. `subscription` keeps the table in memory, told of events or not."""

    __slots__ = ("host", "resident", "seat", "since", "subscription", "tokens")

    def __init__(self, resident: Resident) -> None:
        self.resident = resident
        self.host = False
        self.seat: int | None = None
        self.since = 0
        self.subscription: Subscription | None = None
        self.tokens: set[str] = set()  # those that were checked

    def actor(self) -> Actor:
        """Who acts; a seat that was given up is theirs no more, also if another sits there."""
        if self.seat is not None:
            player = self.resident.table.seats.get(self.seat)
            if player is None or player.since != self.since:
                self.seat = None
                self.tokens.clear()
        return Actor(self.host, self.seat, None if self.seat is None else self.since)

    def viewer(self) -> Viewer:
        return SPECTATOR if self.actor().seat is None else Viewer(self.seat, self.since)

    def sit(self, *, seat: int, since: int) -> None:
        if self.actor().seat not in (None, seat):
            raise BadRequest("This connection has a seat at this table; open another for another.")
        self.seat, self.since = seat, since
        if self.subscription is not None:
            self.subscription.acts = (seat, since)

    def require_version(self, expected: int | None) -> None:
        """Raise Conflicted if the table is past the version that a wish was decided on."""
        if expected is not None and self.resident.table.version > expected:
            raise Conflicted("The table has moved on; look at it and decide again.")

    def may_watch(self) -> bool:
        """Whether this client may see the table: it may have left a private one."""
        actor = self.actor()
        return actor.host or actor.seat is not None or self.resident.table.rules.watched

    def require_watching(self) -> None:
        """Raise NotEntitled unless this client may see the table."""
        if not self.may_watch():
            raise NotEntitled("This table is not open to spectators.")

    def require_admission(self) -> None:
        """Raise NotEntitled for a command of a stranger at a table that is not open to spectators.

        Neither its version nor its state is to be learned from how a command is refused.
        """
        if not self.host and self.seat is None:
            self.require_watching()


class Places:
    """The tables of one connection, at most `bound`; `named` is the one in its address.

    `authenticated` is called with each identity that the connection proves or gets: a seat with
    the version since which it is taken, a table's host, a player's key.
    """

    def __init__(
        self,
        service: Service,
        pump: Pump,
        outlet: Outlet,
        *,
        bound: int,
        named: str | None,
        authenticated: Callable[[Hashable], None],
    ) -> None:
        self._service = service
        self._pump = pump
        self._outlet = outlet
        self._bound = bound
        self._named = named
        self._authenticated = authenticated
        self._places: dict[str, Place] = {}

    def all(self) -> list[Place]:
        return list(self._places.values())

    def get(self, table: str | None) -> Place | None:
        """The place at a table, or at the only one where none is named."""
        if table is not None:
            return self._places.get(table)
        if self._named is not None:
            return self._places.get(self._named)
        return next(iter(self._places.values())) if len(self._places) == 1 else None

    async def find(self, table: str | None, *, token: str | None = None) -> Place:
        """The place at a table; a passing one, which is not kept, where the guest has none.

        The table is not behind what any process of the house has answered by now.
        A token is checked once, and what it opens stays open on this connection.
        """
        place = self.get(table)
        if place is None:
            name = table or self._named
            if name is None:
                raise BadRequest("Name the table: this connection is not on exactly one.")
            place = Place(await self._service.load(name))
        else:
            await self._service.catch_up(place.resident)
        if token is not None and token not in place.tokens:
            self._admit(place, token)
        return place

    def _admit(self, place: Place, token: str) -> None:
        table = place.resident.table
        tokens = self._service.tokens_of(table.key)
        actor = tokens.actor(place.resident.id, table, token)
        self.keep(place)
        if actor.seat is not None:
            self.sit(place, seat=actor.seat, since=table.seats[actor.seat].since)
            self._pump.presence.changed(place.resident)
        else:
            self.host(place)
        place.tokens.add(token)

    def keep(self, place: Place) -> Subscription:
        """Count this table among the connection's own."""
        if place.subscription is None:
            self.require_room()
            self._places[place.resident.table_id] = place
        if place.subscription is None or place.subscription.ended:
            place.subscription = self._pump.subscribe(self._outlet, place.resident)
            place.subscription.host = place.host
            if place.seat is not None:
                place.subscription.acts = (place.seat, place.since)
        return place.subscription

    def require_room(self) -> None:
        """Raise TooManyTables unless this connection may be on one table more."""
        if len(self._places) >= self._bound:
            raise TooManyTables(
                f"This connection is on {self._bound} tables; leave one, or open another."
            )

    def host(self, place: Place) -> None:
        place.host = self.keep(place).host = True
        self._authenticated(("host", place.resident.id))

    def sit(self, place: Place, *, seat: int, since: int) -> None:
        """Act for a seat; BadRequest if this connection has another one at this table."""
        place.sit(seat=seat, since=since)
        self._authenticated((place.resident.id, seat, since))
        key = place.resident.table.seats[seat].key
        if key is not None:
            self._authenticated(("key", key))

    def leave(self, place: Place) -> None:
        if place.subscription is not None:
            self._pump.end(place.subscription)
            place.subscription = None
            del self._places[place.resident.table_id]

    def leave_all(self) -> None:
        for place in self.all():
            self.leave(place)
