"""Histories over HTTP: for whoever may have the bundle, and in words where there is none."""

from __future__ import annotations

import asyncio
import gzip
import tomllib

import pytest

from dealer.gateway import histories
from dealer.gateway.askers import ASKERS_OF_ADDRESS
from tests.gateway.asking import get
from tests.gateway.guest import eventually
from tests.gateway.tables import shuffled


async def test_a_closed_round_is_there_to_read_and_for_poker_programs(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2, game="holdem")
    await table.host.ask("deck.deal", each=2)
    first = table.players[0]
    await eventually(lambda: len([e for e in first.events if "private" in e]) == 2)
    cards = [event["private"]["card"] for event in first.events if "private" in event]
    early = await get(gateway.port, f"/tables/{table.id}/history.txt")
    assert "draws ?? from the deck" in early.text
    assert "Round 1 is not closed" in early.text
    await table.host.ask("round.close")

    got = await get(gateway.port, f"/tables/{table.id}/history.txt")
    assert (got.status, got.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert got.headers["cache-control"] == "no-store"
    for card in cards:
        assert f"player 1 (seat 1) draws {card} from the deck" in got.text
    one = await get(gateway.port, f"/tables/{table.id}/round-1.txt")
    assert one.text.splitlines()[3].startswith("Round 1, ")

    file = await get(gateway.port, f"/tables/{table.id}/round-1.phh")
    assert (file.status, file.headers["content-type"]) == (200, "application/toml; charset=utf-8")
    fields = tomllib.loads(file.text)
    assert fields["table"] == table.id
    dealt = [action.split()[-1] for action in fields["actions"] if action.startswith("d dh p1 ")]
    assert dealt == cards
    head = await get(gateway.port, f"/tables/{table.id}/round-1.phh", method="HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.fixture
def slow(monkeypatch):
    """Histories take as long as `slow.go` is not set; `slow.made` counts them."""

    class Slow:
        go, made = asyncio.Event(), 0

    async def make(blocks, **asked):
        Slow.made += 1
        async with asyncio.timeout(10):
            await Slow.go.wait()
        return gzip.compress(b"At last.\n")

    monkeypatch.setattr(histories, "make_history", make)
    return Slow


async def test_nothing_is_made_for_who_hung_up(gateway, arrive, slow) -> None:
    table = await shuffled(arrive, gateway, players=1)
    path = f"/tables/{table.id}/history.txt"
    connections = gateway.door.connections
    before = len(connections)
    first = asyncio.ensure_future(get(gateway.port, path))
    await eventually(lambda: slow.made == 1)
    others = []
    for _ in range(ASKERS_OF_ADDRESS - 1):
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        others.append(writer)
    asking = gateway._pages._histories._askers._asking
    await eventually(lambda: asking.total() == ASKERS_OF_ADDRESS)
    for writer in others:
        writer.transport.abort()
    # They are counted until it would be their turn, so that nobody is ahead of all others.
    await eventually(lambda: len(connections) == before + 1)
    early = await get(gateway.port, path)
    assert (early.status, early.headers["retry-after"]) == (503, "5")
    assert early.text == "Many ask for histories just now; try again later.\n"
    slow.go.set()
    assert (await first).text == "At last.\n"
    assert (await get(gateway.port, path)).status == 200
    assert slow.made == 2


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("round-1.phh", "Round 1 is not closed"),
        ("round-2.phh", "1 round and no round 2"),
        ("round-2.txt", "1 round and no round 2"),
        ("round-0.phh", "nothing at this address"),
        ("round-1.pdf", "nothing at this address"),
        ("history.phh", "nothing at this address"),
    ],
)
async def test_where_there_is_none_a_sentence_says_why(gateway, arrive, what, words) -> None:
    table = await shuffled(arrive, gateway, players=1)
    got = await get(gateway.port, f"/tables/{table.id}/{what}")
    assert got.status == 404
    assert words in got.text


async def test_a_private_tables_histories_are_for_who_sits_there(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1, watch="nobody")
    await table.host.ask("round.close")
    for what in ("history.txt", "round-1.txt", "round-1.phh"):
        path = f"/tables/{table.id}/{what}"
        assert (await get(gateway.port, path)).status == 401
        got = await get(gateway.port, path, Authorization=f"Bearer {table.tokens[0]}")
        assert got.status == (404 if what.endswith("phh") else 200)
