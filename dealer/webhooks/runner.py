"""Runner: delivers the feed to every webhook that this node has claimed.

A claim is a lease, which each stored position and each failure renews; when a node dies another one
takes over after `LEASE_MS`. Positions are stored by compare-and-set: if it fails, the webhook was
changed, or another node has it, and this one stops. An event is sent again if its delivery was not
stored, so receivers see every event at least once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from logging import getLogger

from dealer.backoff import Backoff, LastingFailure, Polls
from dealer.errors import ConfigurationError, DatabaseDamaged, DealerError, PositionLost
from dealer.eventlog import Log, services
from dealer.eventlog.admin import JournalEntry
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.eventlog.services import StoredWebhook, stored_webhooks
from dealer.feed.feed import Feed
from dealer.feed.pages import FeedFilter
from dealer.webhooks.addresses import parse_url
from dealer.webhooks.delivery import SIGNINGS, Delivery, DeliveryFailed, WebhookSigner, run_together
from dealer.webhooks.requests import HttpPoster

POLL_SECONDS = 1.0
"""Seconds between two looks for webhooks to claim."""

PAGE = 64
"""Events between two stored positions, about."""

RENEW_SECONDS = 5.0
REVOKED_SECONDS = 0.5
"""Seconds between two checks whether the key of a webhook is still valid."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 300.0

_log = getLogger("dealer.webhooks")


def _is_known(webhook: StoredWebhook) -> bool:
    """Whether this release can deliver to it; nodes of a later one may know more."""
    try:
        parse_url(webhook.url, allow_private=bool(webhook.allow_private))
    except ConfigurationError:
        return False
    return webhook.signing in SIGNINGS.values()


class WebhookRunner:
    """Delivers to the webhooks of `log`; `keys` open their secrets.

    `filter_of` gives what a webhook's key may follow, None if it is not valid. `house` is the name
    of the house, `random` draws bytes, `now` is the wall clock in milliseconds. After `give_up_ms`
    of failures a webhook is switched off; 0 means never.

    `delivered` and `failed` count requests, `disabled` the webhooks that are switched off.
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
        self.delivered = 0
        self.failed = 0
        self.failing = 0
        self.disabled = 0

    async def run(self) -> None:
        """Claim and deliver until cancelled; while the database is unavailable, try again."""
        try:
            await Polls(self._claim).run(POLL_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            with suppress(DealerError):
                await self._log.run_in_transaction(
                    lambda connection: services.release_webhooks(connection, self._node)
                )

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
            if await self._log.run_in_transaction(
                partial(
                    services.claim_webhook,
                    number=webhook.id,
                    owner=self._node,
                    position=webhook.position,
                )
            ):
                work = self._guarded(webhook, WebhookSigner(webhook.signing, secret))
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
                partial(
                    services.reseal_webhook, number=webhook.id, before=webhook.secret, after=after
                )
            )
        return secret

    async def _guarded(self, webhook: StoredWebhook, signed_by: WebhookSigner) -> None:
        """Deliver until the webhook is changed or switched off, or another node has it."""
        private = bool(webhook.allow_private)
        try:
            url = parse_url(webhook.url, allow_private=private)
            with closing(HttpPoster(url, allow_private=private)) as poster:
                works = (self._deliver(webhook, poster, signed_by), self._hold(webhook))
                await run_together(works, until=asyncio.FIRST_COMPLETED)
        except DealerError as error:
            # The next look claims it again, and may meet the same.
            now = asyncio.get_running_loop().time()
            self._failures[webhook.id].met(error, now, webhook=webhook.id)

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

    async def _deliver(
        self, webhook: StoredWebhook, poster: HttpPoster, signed_by: WebhookSigner
    ) -> None:
        feed = self._feed
        position, failing_since = webhook.position, webhook.failing_since
        try:
            place = await feed.place(position)
        except PositionLost as error:
            await self._disable(webhook, str(error))
            return
        while (filter := self._filter_of(webhook)) is not None and not feed.head.closing:
            page = await feed.reader.read(place, filter, limit=PAGE)
            place = page.place
            if page.entries:
                delivery = Delivery(
                    page.entries, poster, signed_by, house=self._house, now=self._now
                )
                if not await self._until_delivered(webhook, delivery, failing_since):
                    return
                failing_since = None
                after = feed.generations.text(place)
                if not await self._run(
                    services.move_webhook, webhook, before=position, after=after
                ):
                    return
                position = after
            elif page.more:
                continue  # it was not moved, so it may have to pass what failed again
            if not page.entries:
                await feed.head.wait(place.seq - 1, seconds=RENEW_SECONDS)

    async def _until_delivered(
        self, webhook: StoredWebhook, delivery: Delivery, failing_since: int | None
    ) -> bool:
        """Send a page until it is accepted; False if this node no longer delivers."""
        backoff = Backoff(first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS)
        while True:
            delivered, failed = delivery.delivered, delivery.failed
            try:
                await delivery.attempt()
                return True
            except DeliveryFailed as error:
                now = self._now()
                since = failing_since = failing_since or now
                if error.gone or 0 < self._give_up_ms <= now - since:
                    await self._disable(webhook, str(error))
                    return False
                if not await self._run(
                    services.webhook_fails, webhook, at=since, problem=str(error)
                ):
                    return False
            finally:
                self.delivered += delivery.delivered - delivered
                self.failed += delivery.failed - failed
            await asyncio.sleep(backoff.next_jittered())

    async def _run(
        self, work: Callable[..., bool], webhook: StoredWebhook, **given: object
    ) -> bool:
        """A change of the webhook, which this node may have lost: then False."""
        return await self._log.run_in_transaction(
            partial(work, number=webhook.id, owner=self._node, **given)
        )

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
