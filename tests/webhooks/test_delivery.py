"""A page of events, and what is sent again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from dealer.feed.pages import Entry
from dealer.webhooks.addresses import parse_url
from dealer.webhooks.delivery import CONCURRENT, HMAC, Delivery, DeliveryFailed, WebhookSigner
from dealer.webhooks.requests import HttpPoster, RequestFailed


def entry(table: int, version: int) -> Entry:
    return Entry(f"p-{version}", "{}", bytes([table] * 16), version, "CardDrawn", 1)


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


def delivery(poster: Poster, *entries: Entry) -> Delivery:
    return Delivery(
        entries, poster, WebhookSigner(HMAC, bytes(32)), house="h", now=lambda: 1_700_000_000_900
    )


@pytest.mark.parametrize("status", [0, 199, 300, 404, 500])
async def test_after_a_failure_only_the_rest_is_sent(status: int) -> None:
    poster = Poster()
    poster.failing["01/3"] = status
    page = delivery(poster, *[entry(1, version) for version in range(1, 6)])
    with pytest.raises(DeliveryFailed) as failed:
        await page.attempt()
    assert not failed.value.gone
    assert (page.delivered, page.failed) == (2, 1)
    poster.failing.clear()
    await page.attempt()
    assert poster.sent == ["01/1", "01/2", "01/3", "01/3", "01/4", "01/5"]
    assert (page.delivered, page.failed) == (5, 1)


async def test_gone() -> None:
    poster = Poster()
    poster.failing["01/1"] = 410
    with pytest.raises(DeliveryFailed) as failed:
        await delivery(poster, entry(1, 1)).attempt()
    assert failed.value.gone


async def test_tables_are_sent_at_the_same_time_each_in_order() -> None:
    poster = Poster()
    tables = range(1, 20)
    await delivery(poster, *[entry(t, v) for v in (1, 2, 3) for t in tables]).attempt()
    for table in tables:
        sent = [id for id in poster.sent if id.startswith(f"{table:02x}")]
        assert sent == [f"{table:02x}/{version}" for version in (1, 2, 3)]
    assert poster.most == CONCURRENT
