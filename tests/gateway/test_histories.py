"""Histories over HTTP: of closed and open rounds, their permissions, and their limits."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from dealer.gateway.pages import histories
from dealer.gateway.pages.streams import MAX_CONCURRENT_PER_ADDRESS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import seat_and_shuffle

pytestmark = pytest.mark.slow


async def test_a_closed_round_is_served_as_text(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2, game="holdem")
    await table.host.call("deck.deal", each=2)
    first = table.players[0]
    await eventually(lambda: len([e for e in first.events if "private" in e]) == 2)
    cards = [event["private"]["card"] for event in first.events if "private" in event]
    early = await get(gateway.port, f"/tables/{table.id}/history.txt")
    assert "draws ?? from the deck" in early.text
    assert "Round 1 is not closed" in early.text
    await table.host.call("round.close")

    got = await get(gateway.port, f"/tables/{table.id}/history.txt")
    assert (got.status, got.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert got.headers["cache-control"] == "no-store"
    for card in cards:
        assert f"player 1 (seat 1) draws {card} from the deck" in got.text
    one = await get(gateway.port, f"/tables/{table.id}/round-1.txt")
    assert one.text.splitlines()[3].startswith("Round 1, ")

    head = await get(gateway.port, f"/tables/{table.id}/round-1.txt", method="HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.fixture
def slow(monkeypatch):
    """Histories that wait for `slow.may_end`; `slow.made` counts them."""

    class SlowHistories:
        may_end, made = asyncio.Event(), 0

    async def make(blocks, **options):
        SlowHistories.made += 1
        async with asyncio.timeout(30):
            await SlowHistories.may_end.wait()
        return gzip.compress(b"A history.\n")

    monkeypatch.setattr(histories, "make_history", make)
    return SlowHistories


async def test_no_history_is_made_for_a_closed_connection(gateway, connect, slow) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    path = f"/tables/{table.id}/history.txt"
    connections = gateway.registry.connections
    before = len(connections)
    first = asyncio.ensure_future(get(gateway.port, path))
    await eventually(lambda: slow.made == 1)
    others = []
    for _ in range(MAX_CONCURRENT_PER_ADDRESS - 1):
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        others.append(writer)
    active = gateway._router._downloads._histories._concurrency._active
    await eventually(lambda: active.total() == MAX_CONCURRENT_PER_ADDRESS)
    for writer in others:
        writer.transport.abort()
    # They count until their turn, so that an address cannot get ahead of all others.
    await eventually(lambda: len(connections) == before + 1)
    early = await get(gateway.port, path)
    assert (early.status, early.headers["retry-after"]) == (503, "5")
    assert early.text == "Too many requests for histories at the moment; try again later.\n"
    slow.may_end.set()
    assert (await first).text == "A history.\n"
    assert (await get(gateway.port, path)).status == 200
    assert slow.made == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("round-2.txt", "1 round and no round 2"),
        ("round-0.txt", "nothing at this address"),
        ("round-1.pdf", "nothing at this address"),
        ("round-1.phh", "nothing at this address"),
    ],
)
async def test_a_missing_history_is_explained(gateway, connect, name, message) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    got = await get(gateway.port, f"/tables/{table.id}/{name}")
    assert got.status == 404
    assert message in got.text


async def test_only_players_get_the_histories_of_a_private_table(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    await table.host.call("round.close")
    for name in ("history.txt", "round-1.txt"):
        path = f"/tables/{table.id}/{name}"
        assert (await get(gateway.port, path)).status == 401
        got = await get(gateway.port, path, Authorization=f"Bearer {table.tokens[0]}")
        assert got.status == 200
