"""Delivery: sends the feed's events to a webhook, each table's in their order.

Events of several tables are sent at the same time, at most `CONCURRENT` of them. If a request
fails, its table waits, longer after each failure, and the others go on: up to `AHEAD` events are
taken from the feed before the oldest one is accepted. The body of a request is one CloudEvent 1.0
as structured JSON, signed as https://www.standardwebhooks.com/ specifies:

webhook-signature: v1,<base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>">
webhook-signature: v1a,<base64 of the Ed25519 signature of the same>
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dealer.backoff import Backoff
from dealer.feed.pages import Entry
from dealer.webhooks.addresses import AddressRefused
from dealer.webhooks.requests import HttpPoster, RequestFailed

CONCURRENT = 8
"""Requests to one webhook at the same time."""

AHEAD = 512
"""Events that are sent, or wait, while an older one is not accepted: they are sent again if the
process ends meanwhile."""

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.05, 300.0

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
            public = key.public_key().public_bytes_raw()
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


async def run_together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await these at the same time until the first one ends; then cancel the others.

    Raises what the ended ones raise.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class RequestCounts:
    """Requests that receivers accepted, and those that they did not."""

    delivered: int = 0
    failed: int = 0


@dataclass(slots=True, eq=False)
class _Sending:
    """An event that was taken from the feed."""

    entry: Entry
    accepted: bool = False


@dataclass(slots=True, eq=False)
class _TableQueue:
    """What is to be sent of one table, in order.

    `failed_after` is how many events the receiver had accepted when a request of this table failed
    for the first time since one of its own was accepted.
    """

    events: deque[_Sending] = field(default_factory=deque)
    backoff: Backoff = field(
        default_factory=lambda: Backoff(first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS)
    )
    failed_after: int | None = None


class Delivery:
    """Delivers events to one webhook, from `position` on; `now` gives milliseconds since 1970.

    `position` moves after the newest event up to which all are accepted; `stored` is its owner's
    note of the one in the database. `failing_since` is when
    the first request failed after the last one that was accepted, None if that was the last;
    `problem` is why a table waits. `gone` says that the receiver wants no more. `changed` is set
    when one of them changes.
    """

    def __init__(
        self,
        position: str,
        poster: HttpPoster,
        signer: WebhookSigner,
        counts: RequestCounts,
        *,
        house: str,
        now: Callable[[], int],
        failing_since: int | None = None,
    ) -> None:
        self.position = self.stored = position
        self.failing_since = failing_since
        self.problem = ""
        self.gone = False
        self.changed = asyncio.Event()
        self._poster = poster
        self._signer = signer
        self._counts = counts
        self._house = house
        self._now = now
        self._taken: deque[_Sending] = deque()
        self._tables: dict[bytes, _TableQueue] = {}
        self._ready: asyncio.Queue[_TableQueue] = asyncio.Queue()
        self._waiting: dict[_TableQueue, asyncio.TimerHandle] = {}
        self._accepted_before = 0
        self._moved = asyncio.Event()

    def add(self, entries: Sequence[Entry]) -> None:
        """Send these, too, the next ones of the feed."""
        for entry in entries:
            sending = _Sending(entry)
            self._taken.append(sending)
            table = self._tables.get(entry.table)
            if table is None:
                table = self._tables[entry.table] = _TableQueue()
                self._ready.put_nowait(table)
            table.events.append(sending)

    async def until_fewer_than(self, count: int) -> None:
        """Wait until fewer events than `count` were taken from the oldest one not accepted on."""
        while len(self._taken) >= count:
            self._moved.clear()
            await self._moved.wait()

    def lag_ms(self) -> int:
        """The age of the oldest event that is not accepted, 0 if there is none."""
        now = self._now()
        # Objects that stand for archived or damaged versions have no time.
        times = (table.events[0].entry.at for table in self._tables.values())
        return now - min(filter(None, times), default=now)

    async def run(self) -> None:
        """Send until cancelled, or until the receiver is gone."""
        try:
            await run_together(self._work() for _ in range(CONCURRENT))
        finally:
            for timer in self._waiting.values():
                timer.cancel()

    async def _work(self) -> None:
        while not self.gone:
            table = await self._ready.get()
            sending = table.events[0]
            try:
                await self._send(sending.entry)
            except DeliveryFailed as error:
                self._refused(table, error)
            else:
                self._accepted(table, sending)
            self.changed.set()

    def _refused(self, table: _TableQueue, error: DeliveryFailed) -> None:
        self._counts.failed += 1
        self.failing_since = self.failing_since or self._now()
        if not self.gone:
            self.problem, self.gone = str(error), error.gone
        if table.failed_after is None:
            table.failed_after = self._accepted_before
        delay = table.backoff.next_jittered()
        loop = asyncio.get_running_loop()
        self._waiting[table] = loop.call_later(delay, self._again, table)

    def _again(self, table: _TableQueue) -> None:
        self._waiting.pop(table).cancel()
        self._ready.put_nowait(table)

    def _accepted(self, table: _TableQueue, sending: _Sending) -> None:
        self._counts.delivered += 1
        table.backoff.reset()
        table.failed_after = None
        table.events.popleft()
        sending.accepted = True
        if table.events:
            self._ready.put_nowait(table)
        else:
            del self._tables[sending.entry.table]
        while self._taken and self._taken[0].accepted:
            self.position = self._taken.popleft().entry.position
        # What began to fail while nothing was accepted is tried at once: the receiver is back. A
        # table that fails while others are accepted goes on waiting.
        for each in [one for one in self._waiting if one.failed_after == self._accepted_before]:
            each.backoff.reset()
            self._again(each)
        self._accepted_before += 1
        self.failing_since = None
        if not self._waiting:
            self.problem = ""
        self._moved.set()

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
