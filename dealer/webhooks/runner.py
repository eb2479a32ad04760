"""Runner: delivers the feed to every webhook that this node has claimed.

A claim is a lease, which each stored position renews; when a node dies another one takes over
after `LEASE_MS`. Positions are stored by compare-and-set: if it fails, the webhook was changed, or
another node has it, and this one stops. An event is sent again if its delivery was not stored, so
receivers see every event at least once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from logging import getLogger

from dealer.backoff import LastingFailure, Polls
from dealer.errors import ConfigurationError, DatabaseDamaged, DealerError, PositionLost
from dealer.eventlog import Log, services
from dealer.eventlog.admin import JournalEntry
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.eventlog.services import StoredWebhook, stored_webhooks
from dealer.feed.feed import Feed
from dealer.feed.pages import FeedFilter
from dealer.webhooks import delivery as deliveries
from dealer.webhooks.addresses import parse_url
from dealer.webhooks.requests import HttpPoster

POLL_SECONDS = 1.0
"""Seconds between two looks for webhooks to claim."""

PAGE = 64
"""Events that are read at once, about."""

STORE_SECONDS = 0.1
"""Seconds from one stored position to the next."""

RENEW_SECONDS = 5.0
REVOKED_SECONDS = 0.5
"""Seconds between two checks whether the key of a webhook is still valid."""

_log = getLogger("dealer.webhooks")


def _is_known(webhook: StoredWebhook) -> bool:
    """Whether this release can deliver to it; nodes of a later one may know more."""
    try:
        parse_url(webhook.url, allow_private=bool(webhook.allow_private))
    except ConfigurationError:
        return False
    return webhook.signing in deliveries.SIGNINGS.values()


class WebhookRunner:
    """Delivers to the webhooks of `log`; `keys` open their secrets.

    `filter_of` gives what a webhook's key may follow, None if it is not valid. `house` is the name
    of the house, `random` draws bytes, `now` is the wall clock in milliseconds. After `give_up_ms`
    of failures a webhook is switched off; 0 means never.

    `counts` are of all requests of this node; `failing` are the webhooks whose receiver accepts
    nothing, `disabled` those that are switched off.
    """

    def __init__(
        self,
        log: Log,
        feed: Feed,
        keys: HouseKeys,
        filter_of: Callable[[StoredWebhook], FeedFilter | None],
        *,
        house: str,
        random: Callable[[int], bytes],
        now: Callable[[], int],
        give_up_ms: int,
    ) -> None:
        self._log = log
        self._feed = feed
        self._keys = keys
        self._filter_of = filter_of
        self._house = house
        self._now = now
        self._give_up_ms = give_up_ms
        self._random = random
        self._node = random(8)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # By the number of the webhook.
        self._failures = defaultdict[int, LastingFailure](
            partial(LastingFailure, _log, "webhook delivery interrupted")
        )
        self._deliveries: dict[int, deliveries.Delivery] = {}
        self.counts = deliveries.RequestCounts()
        self.failing = 0
        self.disabled = 0

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest event that a webhook of this node has not accepted, or 0."""
        return max((each.lag_ms() / 1000 for each in self._deliveries.values()), default=0.0)

    async def run(self) -> None:
        """Claim and deliver until cancelled; while the database is unavailable, try again."""
        try:
            await Polls(self._claim).run(POLL_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            with suppress(DealerError):
                await self._log.run_in_transaction(services.release_webhooks, self._node)

    async def _claim(self) -> None:
        """Start a task for each webhook that no other node delivers to."""
        if not self._feed.enabled() or self._feed.head.closing:
            return
        webhooks = await stored_webhooks(self._log)
        self.disabled = sum(webhook.disabled_at is not None for webhook in webhooks)
        self.failing = sum(webhook.failing_since is not None for webhook in webhooks)
        self._tasks = {id: task for id, task in self._tasks.items() if not task.done()}
        for webhook in webhooks:
            secret = await self._secret(webhook)
            if webhook.id in self._tasks or webhook.disabled_at is not None or secret is None:
                continue
            if webhook.owner not in (None, self._node) and webhook.lease_ms > 0:
                continue
            if self._filter_of(webhook) is None or not _is_known(webhook):
                continue
            if await self._run(services.claim_webhook, webhook, position=webhook.position):
                work = self._guarded(webhook, deliveries.WebhookSigner(webhook.signing, secret))
                self._tasks[webhook.id] = asyncio.create_task(work)

    async def _secret(self, webhook: StoredWebhook) -> bytes | None:
        """The secret; encrypted again after the house key was rotated. None if it is lost."""
        try:
            secret, current = self._keys.open_webhook(webhook.secret, url=webhook.url)
        except DatabaseDamaged:
            return None
        if not current:
            nonce = self._random(NONCE_BYTES)
            after = self._keys.seal_webhook(secret, url=webhook.url, nonce=nonce)
            await self._log.run_in_transaction(
                services.reseal_webhook, webhook.id, before=webhook.secret, after=after
            )
        return secret

    async def _guarded(self, webhook: StoredWebhook, signed_by: deliveries.WebhookSigner) -> None:
        """Deliver until the webhook is changed or switched off, or another node has it."""
        private = bool(webhook.allow_private)
        try:
            url = parse_url(webhook.url, allow_private=private)
            with closing(HttpPoster(url, allow_private=private)) as poster:
                delivery = self._deliveries[webhook.id] = deliveries.Delivery(
                    webhook.position,
                    poster,
                    signed_by,
                    self.counts,
                    house=self._house,
                    now=self._now,
                    failing_since=webhook.failing_since,
                )
                await deliveries.run_together(
                    (
                        self._read(webhook, delivery),
                        delivery.run(),
                        self._store_regularly(webhook, delivery),
                        self._hold(webhook),
                    )
                )
                await self._store(webhook, delivery)
        except DealerError as error:
            # The next look claims it again, and may meet the same.
            now = asyncio.get_running_loop().time()
            self._failures[webhook.id].met(error, now, webhook=webhook.id)
        finally:
            self._deliveries.pop(webhook.id, None)

    async def _hold(self, webhook: StoredWebhook) -> None:
        """Renew the lease; returns when this node has lost it, or the key was revoked."""
        loop = asyncio.get_running_loop()
        renewed_at = loop.time()
        while self._filter_of(webhook) is not None:
            await asyncio.sleep(min(REVOKED_SECONDS, RENEW_SECONDS))
            if loop.time() - renewed_at >= RENEW_SECONDS:
                renewed_at = loop.time()
                if not await self._run(services.renew_webhook, webhook):
                    return

    async def _read(self, webhook: StoredWebhook, delivery: deliveries.Delivery) -> None:
        """Give the delivery the feed's events; returns when all are delivered at a drain."""
        feed = self._feed
        try:
            place = await feed.place(webhook.position)
        except PositionLost as error:
            await self._disable(webhook, str(error))
            return
        while (filter := self._filter_of(webhook)) is not None and not feed.head.closing:
            await delivery.until_fewer_than(deliveries.AHEAD)
            page = await feed.reader.read(place, filter, limit=PAGE)
            place = page.place
            delivery.add(page.entries)
            if not page.entries and page.more:
                continue  # it was not moved, so it may have to pass what failed again
            if not page.entries:
                await feed.head.wait(place.seq - 1, seconds=RENEW_SECONDS)
        await delivery.until_fewer_than(1)

    async def _store_regularly(self, webhook: StoredWebhook, delivery: deliveries.Delivery) -> None:
        """Store each change; returns when this node is to deliver no more."""
        while True:
            await delivery.changed.wait()
            delivery.changed.clear()
            if not await self._store(webhook, delivery):
                return
            await asyncio.sleep(STORE_SECONDS)

    async def _store(self, webhook: StoredWebhook, delivery: deliveries.Delivery) -> bool:
        """Store how far the delivery is, and what fails; False if this node delivers no more."""
        since, after = delivery.failing_since, delivery.position
        if delivery.gone or (since and 0 < self._give_up_ms <= self._now() - since):
            await self._disable(webhook, delivery.problem)
            return False
        state = {"failing_since": since, "problem": delivery.problem}
        before, delivery.stored = delivery.stored, after
        return await self._run(services.move_webhook, webhook, before=before, after=after, **state)

    async def _run(
        self, work: Callable[..., bool], webhook: StoredWebhook, **given: object
    ) -> bool:
        """A change of the webhook, which this node may have lost: then False."""
        return await self._log.run_in_transaction(work, webhook.id, self._node, **given)

    async def _disable(self, webhook: StoredWebhook, problem: str) -> None:
        """Switch a webhook off, with a line in the operators' journal."""
        entry = JournalEntry(
            at=self._now(),
            id=self._random(8),
            who="dealer serve",
            what="disable-webhook",
            target=f"webhook {webhook.id}",
            why=problem,
        )
        if await self._run(services.disable_webhook, webhook, problem=problem, entry=entry):
            fields = {"webhook": webhook.id, "says": problem}
            _log.error("webhook switched off", extra={"fields": fields})
