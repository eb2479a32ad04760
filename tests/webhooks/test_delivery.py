"""Events of several tables, and what is sent again after a failure."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from dealer.backoff import Backoff
from dealer.feed.pages import Entry
from dealer.webhooks.addresses import parse_url
from dealer.webhooks.delivery import CONCURRENT, HMAC, Delivery, RequestCounts, WebhookSigner
from dealer.webhooks.requests import HttpPoster, RequestFailed

START = "start"


def entry(table: int, version: int, *, at: int = 1) -> Entry:
    return Entry(f"p-{table}-{version}", "{}", bytes([table] * 16), version, "CardDrawn", at)


class Poster(HttpPoster):
    """Answers 204, or as `failing` says for an id."""

    def __init__(self) -> None:
        super().__init__(parse_url("https://example.org", allow_private=False), allow_private=False)
        self.sent: list[str] = []
        self.failing: dict[str, int] = {}
        self.open = 0
        self.most = 0

    async def post(self, headers: Mapping[str, str], body: bytes) -> int:
        id = headers["webhook-id"]
        self.sent.append(id[-4:])
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        status = self.failing.get(id[-4:], 204)
        if not status:
            raise RequestFailed("no answer")
        return status


class Delivering:
    """A delivery, its counts, and the delays that its tables waited for after failures."""

    def __init__(self, poster: Poster, *entries: Entry) -> None:
        self.counts = RequestCounts()
        self.delivery = Delivery(
            START,
            poster,
            WebhookSigner(HMAC, bytes(32)),
            self.counts,
            house="h",
            now=lambda: 10_000,
        )
        self.delivery.add(entries)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Delivery]:
        task = asyncio.create_task(self.delivery.run())
        try:
            yield self.delivery
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, wanted: Callable[[Delivery], object]) -> None:
        """Deliver until the delivery is as wanted; each change is looked at."""
        async with self.running() as delivery, asyncio.timeout(30):
            while not wanted(delivery):
                delivery.changed.clear()
                await delivery.changed.wait()


def _all_accepted(delivery: Delivery) -> bool:
    return not delivery._taken


@pytest.mark.parametrize("status", [0, 199, 300, 404, 500])
async def test_after_a_failure_only_the_rest_is_sent(status: int) -> None:
    poster = Poster()
    poster.failing["01/3"] = status
    one = Delivering(poster, *[entry(1, version) for version in range(1, 6)])
    await one.until(lambda delivery: delivery.failing_since)
    assert (one.counts.delivered, one.counts.failed) == (2, 1)
    assert (one.delivery.position, one.delivery.gone) == ("p-1-2", False)
    poster.failing.clear()
    for table in tuple(one.delivery._waiting):  # unless its time has come already
        one.delivery._again(table)
    await one.until(_all_accepted)
    assert poster.sent == ["01/1", "01/2", "01/3", "01/3", "01/4", "01/5"]
    assert (one.counts.delivered, one.counts.failed) == (5, 1)
    assert (one.delivery.position, one.delivery.failing_since) == ("p-1-5", None)


async def test_gone() -> None:
    poster = Poster()
    poster.failing |= {"01/1": 410, "02/1": 500}
    one = Delivering(poster, entry(1, 1), entry(2, 1))
    await one.until(lambda delivery: delivery.gone)
    assert "410" in one.delivery.problem


async def test_tables_are_sent_at_the_same_time_each_in_order() -> None:
    poster = Poster()
    tables = range(1, 20)
    one = Delivering(poster, *[entry(t, v) for v in (1, 2, 3) for t in tables])
    await one.until(_all_accepted)
    for table in tables:
        sent = [id for id in poster.sent if id.startswith(f"{table:02x}")]
        assert sent == [f"{table:02x}/{version}" for version in (1, 2, 3)]
    assert poster.most == CONCURRENT


async def test_one_table_that_fails_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its event is older than all of theirs: the position stays, and its age shows."""
    monkeypatch.setattr(Backoff, "next_jittered", lambda _: 3600.0)
    poster = Poster()
    poster.failing["01/1"] = 500
    others = [entry(table, version) for table in range(2, 40) for version in range(1, 9)]
    one = Delivering(poster, entry(1, 1, at=4_000), entry(1, 2), *others)
    await one.until(lambda _: one.counts.delivered == len(others))
    counts = Counter(poster.sent)
    # Again when another one was accepted: that may have been the receiver's failure.
    assert counts.pop("01/1") <= 2
    assert counts == dict.fromkeys(
        (f"{each.table.hex()[-2:]}/{each.version}" for each in others), 1
    )
    delivery = one.delivery
    assert (delivery.position, delivery.failing_since) == (START, None)
    assert delivery.problem == "the answer was 500"
    assert delivery.lag_ms() == 6_000


async def test_a_receiver_that_is_back_gets_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has failed, and would wait for an hour: the first success ends that."""
    monkeypatch.setattr(Backoff, "next_jittered", lambda _: 3600.0)
    poster = Poster()
    tables = range(1, 30)
    poster.failing = {f"{table:02x}/1": 503 for table in tables}
    one = Delivering(poster, *[entry(table, 1) for table in tables])
    async with one.running() as delivery, asyncio.timeout(30):
        while len(delivery._waiting) < len(tables):
            await delivery.changed.wait()
            delivery.changed.clear()
        poster.failing.clear()
        delivery._again(next(iter(delivery._waiting)))
        await delivery.until_fewer_than(1)
    assert one.counts == RequestCounts(delivered=len(tables), failed=len(tables))


async def test_the_next_failure_of_a_table_is_a_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second request fails: no delay grows."""
    delays: list[float] = []

    def soon(backoff: Backoff) -> float:
        delays.append(backoff.next())
        return 0.0

    monkeypatch.setattr(Backoff, "next_jittered", soon)

    class Flickering(Poster):
        async def post(self, headers: Mapping[str, str], body: bytes) -> int:
            await super().post(headers, body)
            return 503 if len(self.sent) % 2 else 204

    one = Delivering(Flickering(), *[entry(1, version) for version in range(1, 50)])
    await one.until(_all_accepted)
    assert one.counts == RequestCounts(delivered=49, failed=49)
    assert len(set(delays)) == 1
