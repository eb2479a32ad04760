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


@fault_of(Delivery, "attempt")
async def webhook_page_stored_after_its_first_attempt(attempt: Any, self: Delivery) -> None:
    """The position moves past a page that was not delivered, if the node stops in between."""
    try:
        await attempt(self)
    except DeliveryFailed:
        if not self.delivered:
            raise
