"""Faults of the gateway: what is pushed to whom, and a house that lies."""

from __future__ import annotations

from typing import Any

from dealer.game.state import Table
from dealer.gateway.push import broadcaster
from dealer.gateway.push.backlog import Backlog
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.push.membership import Membership
from dealer.gateway.push.subscription import Subscription
from dealer.gateway.rate_limit.budgets import Budgets, ClientBudget
from dealer.service import executor
from dealer.service.service import Service
from tests.simulation.faults import Replacement, fault


@fault
def resume_one_version_late() -> list[Replacement]:
    """The event after the last one that a client has seen is left out."""

    def make(start: Any) -> Any:
        def late(self: Broadcaster, subscription: Subscription, *, after: int, **more: Any) -> None:
            behind = after < subscription.live_table.committed
            start(self, subscription, after=after + 1 if behind else after, **more)

        return late

    return [Replacement(Broadcaster, "start", make)]


@fault
def backlog_ends_too_early() -> list[Replacement]:
    """A subscription that was read one chunk counts as up to date."""

    def make(send: Any) -> Any:
        async def once(self: Backlog, subscription: Subscription) -> None:
            await self.send_chunk(subscription)
            subscription.cursor = subscription.live_table.committed

        return once

    return [Replacement(Backlog, "send", make)]


@fault
def live_push_ignores_the_cursor() -> list[Replacement]:
    """An event is pushed to a subscription that has not had the one before it."""

    def make(publish: Any) -> Any:
        def ignores(self: Broadcaster, live_table: Any, notice: Any) -> None:
            for subscription in live_table.subscribers:
                if notice.entries and subscription.started:
                    subscription.cursor = notice.entries[0].version - 1
                    subscription.live = True
            publish(self, live_table, notice)

        return ignores

    return [Replacement(Broadcaster, "_publish", make)]


@fault
def seat_keeps_its_rights_after_leaving() -> list[Replacement]:
    """A connection acts for the seat that it had, also when its player has left it."""
    return [
        Replacement(Membership, "holder", lambda _: property(lambda self: self._holder)),
        Replacement(Broadcaster, "_lose_seat", lambda _: lambda self, subscription: None),
    ]


@fault
def private_face_sent_to_every_seat() -> list[Replacement]:
    """The frame of the player who drew a card goes to the other players, too."""

    def make(frame: Any) -> Any:
        def shows(entries: Any, viewer: Any) -> bytes:
            for entry in entries:
                if viewer is not None and entry.seat is not None:
                    viewer = viewer._replace(seat=entry.seat)
            return frame(entries, viewer)

        return shows

    return [
        Replacement(broadcaster, "event_frame", make),
    ]


@fault
def house_shows_another_card() -> list[Replacement]:
    """The house shows a player another card than the one that it has committed to."""

    def make(encode: Any) -> Any:
        def lies(*arguments: Any, **named: Any) -> Any:
            row, entry = encode(*arguments, **named)
            return row, entry._replace(private=entry.private.replace('"card":"A', '"card":"3'))

        return lies

    return [Replacement(executor, "encode_draw", make)]


@fault
def time_of_events_goes_back() -> list[Replacement]:
    """An event carries the wall clock's time, also where that was stepped back."""
    return [Replacement(Table, "next_at", lambda _: lambda self, now: now)]


@fault
def commit_notice_lost() -> list[Replacement]:
    """A notice of one event in thirty-two reaches no subscriber."""

    def make(notify: Any) -> Any:
        def loses(self: Service, live_table: Any, notice: Any) -> None:
            if notice.entries and notice.entries[0].version % 32 == 31:
                notice = notice._replace(entries=[])
            notify(self, live_table, notice)

        return loses

    return [Replacement(Service, "_notify", make)]


@fault
def older_connection_gets_nothing_more() -> list[Replacement]:
    """The older connection of a seat stays open, and gets no more events."""

    def make(take_seat: Any) -> Any:
        def silent(self: Broadcaster, subscription: Subscription, holder: Any) -> None:
            for other in list(subscription.live_table.subscribers):
                if other.viewer == holder and other.transport is not subscription.transport:
                    self.end(other)
            take_seat(self, subscription, holder)

        return silent

    return [Replacement(Broadcaster, "take_seat", make)]


@fault
def rate_debt_forgotten() -> list[Replacement]:
    """The debt of an address is dropped when its last connection is closed."""

    def make(client: Any) -> Any:
        def forgets(self: Budgets, address: str, now: float) -> ClientBudget:
            earlier = self._clients.get(address)
            if earlier is not None and not earlier.connections:
                del self._clients[address]
            found: ClientBudget = client(self, address, now)
            return found

        return forgets

    return [Replacement(Budgets, "client", make)]
