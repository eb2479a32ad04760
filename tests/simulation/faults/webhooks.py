"""Faults of webhooks: what receivers miss."""

from __future__ import annotations

import contextlib
from typing import Any

from dealer.webhooks.delivery import Delivery, DeliveryFailed
from dealer.webhooks.runner import WebhookRunner
from tests.simulation.faults import Replacement, fault


@fault
def webhook_failure_counts_as_delivered() -> list[Replacement]:
    """An event whose request failed is not sent again."""

    def make(send: Any) -> Any:
        async def forgets(self: Delivery, entry: Any) -> None:
            with contextlib.suppress(DeliveryFailed):
                await send(self, entry)

        return forgets

    return [Replacement(Delivery, "_send", make)]


@fault
def webhook_page_stored_after_its_first_attempt() -> list[Replacement]:
    """The position moves past a page that was not delivered, if the node stops in between."""

    def make(attempt: Any) -> Any:
        async def gives_up(self: WebhookRunner, webhook: Any, delivery: Delivery) -> bool:
            try:
                found: bool = await attempt(self, webhook, delivery)
            except DeliveryFailed:
                if delivery.delivered:
                    return True
                raise
            return found

        return gives_up

    return [Replacement(WebhookRunner, "_attempt", make)]
