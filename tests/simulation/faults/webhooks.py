"""Faults of webhooks: what receivers miss."""

from __future__ import annotations

import contextlib
from typing import Any

from dealer.webhooks.delivery import Delivery, DeliveryFailed
from dealer.webhooks.runner import WebhookRunner
from tests.simulation.faults import fault_of


@fault_of(Delivery, "_send")
async def webhook_failure_counts_as_delivered(send: Any, self: Delivery, entry: Any) -> None:
    """An event whose request failed is not sent again."""
    with contextlib.suppress(DeliveryFailed):
        await send(self, entry)


@fault_of(WebhookRunner, "_attempt")
async def webhook_page_stored_after_its_first_attempt(
    attempt: Any, self: WebhookRunner, webhook: Any, delivery: Delivery
) -> bool:
    """The position moves past a page that was not delivered, if the node stops in between."""
    try:
        found: bool = await attempt(self, webhook, delivery)
    except DeliveryFailed:
        if delivery.delivered:
            return True
        raise
    return found
