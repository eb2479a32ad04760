"""Faults of the gateway: what is pushed to whom, and a house that lies."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dealer.game.state import Table
from dealer.gateway.presence.membership import HeldSeat, Subscription, SubscriptionState
from dealer.gateway.push.backlog import Backlog
from dealer.gateway.push.broadcaster import Broadcaster
from dealer.gateway.rate_limit.budgets import Budgets, ClientBudget
from dealer.gateway.wire import protocol
from dealer.service.commands import executor
from dealer.service.tables.live_table import Notices
from tests.simulation.faults import Replacement, fault, fault_of


@fault_of(Backlog, "start")
def resume_one_version_late(
    start: Any, self: Backlog, subscription: Subscription, *, after: int, **more: Any
) -> None:
    """The event after the last one that a client has seen is left out."""
    behind = after < subscription.live_table.committed
    start(self, subscription, after=after + 1 if behind else after, **more)


@fault_of(Backlog, "_send_all")
async def backlog_ends_too_early(send: Any, self: Backlog, subscription: Subscription) -> None:
    """A subscription that was read one chunk counts as up to date."""
    await self._send_chunk(subscription)
    subscription.cursor = subscription.live_table.committed


@fault_of(Broadcaster, "publish")
def live_push_ignores_the_cursor(
    publish: Any, self: Broadcaster, live_table: Any, notice: Any
) -> None:
    """An event is pushed to a subscription that has not had the one before it."""
    for subscription in live_table.subscribers:
        if notice.entries and subscription.is_started():
            subscription.cursor = notice.entries[0].version - 1
            subscription.state = SubscriptionState.LIVE
    publish(self, live_table, notice)


@fault
def seat_keeps_its_rights_after_leaving() -> list[Replacement]:
    """A connection acts for the seat that it had, also when its player has left it."""

    def keep_seat(self: HeldSeat) -> Any:
        self.holder = self.on_disk
        return self.holder

    return [
        Replacement(HeldSeat, "refresh", lambda _: keep_seat),
        Replacement(Backlog, "lose_seat", lambda _: lambda self, subscription: None),
    ]


@fault_of(protocol, "event_frame")
def private_face_sent_to_every_seat(frame: Any, entries: Any, viewer: Any) -> bytes:
    """The frame of the player who drew a card goes to the other players, too."""
    for entry in entries:
        if viewer is not None and entry.seat is not None:
            viewer = viewer._replace(seat=entry.seat)
    return frame(entries, viewer)


@fault_of(executor, "encode")
def house_shows_another_card(encode: Any, *arguments: Any, **named: Any) -> Any:
    """The house shows a player another card than the one that it has committed to."""
    record = encode(*arguments, **named)
    record.private = record.private.replace('"card":"A', '"card":"3')
    return record


@fault_of(Table, "next_at")
def time_of_events_goes_back(_: Any, self: Table, now: int) -> int:
    """An event carries the wall clock's time, also where that was stepped back."""
    return now


@fault_of(Notices, "send")
def commit_notice_lost(send: Any, self: Notices, live_table: Any, notice: Any) -> None:
    """A notice of one event in thirty-two reaches no subscriber."""
    if notice.entries and notice.entries[0].version % 32 == 31:
        notice = replace(notice, entries=[])
    send(self, live_table, notice)


@fault_of(Broadcaster, "take_seat")
def older_connection_gets_nothing_more(
    take_seat: Any, self: Broadcaster, subscription: Subscription, holder: Any
) -> None:
    """The older connection of a seat stays open, and gets no more events."""
    for other in list(subscription.live_table.subscribers):
        if other.viewer == holder and other.transport is not subscription.transport:
            self._backlog.end(other)
    take_seat(self, subscription, holder)


@fault_of(Budgets, "client")
def rate_debt_forgotten(client: Any, self: Budgets, address: str, now: float) -> ClientBudget:
    """The debt of an address is dropped when its last connection is closed."""
    earlier = self._clients.get(address)
    if earlier is not None and not earlier.connections:
        del self._clients[address]
    found: ClientBudget = client(self, address, now)
    return found
