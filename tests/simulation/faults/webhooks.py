"""Faults of webhooks: what receivers miss."""

from __future__ import annotations

import contextlib
from typing import Any

from dealer.webhooks.delivery import Delivery, DeliveryFailed
from tests.simulation.faults import fault_of


@fault_of(Delivery, "_send")
async def webhook_failure_counts_as_delivered(send: Any, self: Delivery, entry: Any) -> None:
    """An event whose request failed is not sent again."""
    with contextlib.suppress(DeliveryFailed):
        await send(self, entry)


@fault_of(Delivery, "_accepted")
def webhook_position_stored_past_what_waits(
    accepted: Any, self: Delivery, table: Any, sending: Any
) -> None:
    """The position moves past an event that was not delivered, if the node stops in between."""
    accepted(self, table, sending)
    self.position = sending.entry.position
