"""Delivery: sends one page of the feed to a webhook, each table's events in their order.

Events of several tables are sent at the same time, at most `CONCURRENT` of them. If a request
fails, the page is sent again later, without what was delivered before. The body of a request is one
CloudEvent 1.0 as structured JSON, signed as https://www.standardwebhooks.com/ specifies:

webhook-signature: v1,<base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>">
webhook-signature: v1a,<base64 of the Ed25519 signature of the same>
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dealer.feed.pages import Entry
from dealer.webhooks.addresses import AddressRefused
from dealer.webhooks.requests import HttpPoster, RequestFailed

CONCURRENT = 8
"""Requests to one webhook at the same time."""

CONTENT_TYPE = "application/cloudevents+json"

SKIPPED = "Skipped"
"""The type of what stands for versions that were archived or damaged before their delivery."""

SECRET_BYTES = 32

HMAC, ED25519 = "v1", "v1a"
SIGNINGS = {"hmac": HMAC, "ed25519": ED25519}
"""The kinds of signatures by their names on the command line."""

_GONE = 410


class WebhookSigner:
    """Signs the requests of one webhook, with its secret of 32 bytes.

    `verifier` is what the receiver checks them with: with HMAC the secret itself, `whsec_…`, with
    Ed25519 the public key, `whpk_…`. ValueError for another `signing`.
    """

    def __init__(self, signing: str, secret: bytes) -> None:
        self._signing = signing
        if signing == HMAC:
            self._sign: Callable[[bytes], bytes] = partial(hmac.digest, secret, digest="sha256")
            self.verifier = "whsec_" + b64encode(secret).decode()
        elif signing == ED25519:
            key = Ed25519PrivateKey.from_private_bytes(secret)
            self._sign = key.sign
            public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            self.verifier = "whpk_" + b64encode(public).decode()
        else:
            raise ValueError(f"unknown signing {signing!r}")

    def sign(self, id: str, timestamp: int, body: bytes) -> str:
        """The value of `webhook-signature`; the time is in seconds since 1970."""
        signature = self._sign(f"{id}.{timestamp}.".encode() + body)
        return f"{self._signing},{b64encode(signature).decode()}"


def id_of(entry: Entry) -> str:
    """The id of an object, the same at each delivery: its table and its version."""
    return f"{entry.table.hex()}/{entry.version}{'' if entry.type else '-skipped'}"


def body_of(entry: Entry, *, house: str) -> bytes:
    """One CloudEvent; `house` is the name of the house."""
    table = entry.table.hex()
    source = json.dumps(f"https://{house}/tables/{table}")
    time = ""
    if entry.type:
        at = datetime.fromtimestamp(entry.at // 1000, UTC)
        time = f'"time":"{at:%Y-%m-%dT%H:%M:%S}.{entry.at % 1000:03d}Z",'
    return (
        f'{{"specversion":"1.0","id":"{id_of(entry)}","source":{source},'
        f'"type":"dealer.{entry.type or SKIPPED}",{time}"subject":"{table}",'
        f'"datacontenttype":"application/json","data":{entry.text}}}'
    ).encode()


class DeliveryFailed(Exception):
    """An event was not accepted; `gone` if the receiver wants no more."""

    def __init__(self, problem: str, *, gone: bool = False) -> None:
        super().__init__(problem)
        self.gone = gone


async def run_together(works: Iterable[Coroutine[Any, Any, None]], *, until: str) -> None:
    """Await these at the same time, `until` as of `asyncio.wait`; then cancel the others.

    Raises what the ended ones raise.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=until)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Delivery:
    """Delivers the events of one page; `now` gives milliseconds since 1970.

    `delivered` counts the accepted requests, `failed` those that were not.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        poster: HttpPoster,
        signer: WebhookSigner,
        *,
        house: str,
        now: Callable[[], int],
    ) -> None:
        in_order = sorted(entries, key=attrgetter("table"))  # stable: versions stay in order
        self._tables = {
            table: list(group) for table, group in groupby(in_order, key=attrgetter("table"))
        }
        self._done: Counter[bytes] = Counter()
        self._poster = poster
        self._signer = signer
        self._house = house
        self._now = now
        self.delivered = 0
        self.failed = 0

    async def attempt(self) -> None:
        """Send what was not delivered yet; raises DeliveryFailed for the first failure."""
        turns = asyncio.Semaphore(CONCURRENT)
        left = [table for table, each in self._tables.items() if self._done[table] < len(each)]
        works = [self._table(table, turns) for table in left]
        await run_together(works, until=asyncio.FIRST_EXCEPTION)

    async def _table(self, table: bytes, turns: asyncio.Semaphore) -> None:
        async with turns:
            for entry in self._tables[table][self._done[table] :]:
                try:
                    await self._send(entry)
                except DeliveryFailed:
                    self.failed += 1
                    raise
                self.delivered += 1
                self._done[table] += 1

    async def _send(self, entry: Entry) -> None:
        body, id, timestamp = body_of(entry, house=self._house), id_of(entry), self._now() // 1000
        headers = {
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "dealer",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": self._signer.sign(id, timestamp, body),
        }
        try:
            status = await self._poster.post(headers, body)
        except (RequestFailed, AddressRefused) as error:
            raise DeliveryFailed(str(error)) from None
        if not 200 <= status < 300:
            redirected = ", and no redirect is followed" if 300 <= status < 400 else ""
            raise DeliveryFailed(f"the answer was {status}{redirected}", gone=status == _GONE)
