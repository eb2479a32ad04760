"""Plain HTTP: the pages, the bundle to take home, and the operator's own port."""

from __future__ import annotations

import asyncio
import json

import pytest

from dealer.errors import DatabaseFull
from dealer.eventlog.wal import library_version
from dealer.gateway import Gateway
from dealer.proof.verify import verify
from tests.gateway.asking import get
from tests.gateway.tables import seat_all, shuffled


async def test_a_page_says_nothing_of_its_table(gateway, arrive) -> None:
    """What is on a table comes over the websocket, to who may see it."""
    table = await shuffled(arrive, gateway, players=1, name="<b>Friday</b>")
    other = await shuffled(arrive, gateway, players=2)
    page = await get(gateway.port, f"/tables/{table.id}")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await get(gateway.port, f"/tables/{other.id}")).body == page.body
    assert (await get(gateway.port, f"/tables/{table.id}/audit")).status == 200


async def test_a_private_table_shows_nothing(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1, watch="nobody", name="secret club")
    bundle = f"/tables/{table.id}/bundle.jsonl"
    assert (await get(gateway.port, bundle)).status == 401
    assert (await get(gateway.port, bundle, Authorization="Bearer nonsense")).status == 401
    for token in (table.host_token, table.tokens[0]):
        got = await get(gateway.port, bundle, Authorization=f"Bearer {token}")
        assert got.status == 200


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_the_bundle_can_be_verified(gateway, arrive, version) -> None:
    table = await shuffled(arrive, gateway, players=2)
    for _ in range(3):
        await table.host.ask("deck.shuffle")
    await table.host.ask("deck.deal", each=2)
    await table.host.ask("round.close")
    await table.host.ask("table.close")
    got = await get(gateway.port, f"/tables/{table.id}/bundle.jsonl", version=version)
    assert got.status == 200
    assert got.headers.get("transfer-encoding") == ("chunked" if version == "1.1" else None)
    assert len(got.body) > 64 * 1024
    lines = got.text.splitlines()
    assert verify(lines).fault is None
    head = await get(gateway.port, f"/tables/{table.id}/bundle.jsonl", method="HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/nowhere", "GET", 404),
        ("/tables/xyz", "GET", 404),
        (f"/tables/{'0' * 32}", "GET", 404),
        (f"/tables/{'0' * 32}/bundle.jsonl", "GET", 404),
        ("/", "POST", 405),
        ("/", "DELETE", 405),
        ("/ws", "GET", 426),
        ("/ws", "POST", 405),
        ("/ws/short", "GET", 404),
        ("/../etc/passwd", "GET", 404),
        ("//", "GET", 404),
    ],
)
async def test_other_addresses(gateway, path, method, status) -> None:
    got = await get(gateway.port, path, method=method)
    assert got.status == status
    if status == 405:
        assert "GET" in got.headers["allow"]


async def test_an_answer_to_head_has_no_body(gateway) -> None:
    page, head = await get(gateway.port, "/"), await get(gateway.port, "/", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == page.headers["content-length"]


async def test_the_operators_port(open_gateway, arrive, monkeypatch) -> None:
    gateway: Gateway = await open_gateway(ops_port=0)
    table = await seat_all(arrive, gateway, players=2)
    with pytest.raises(Exception, match="No round"):
        await table.players[0].ask("deck.draw")
    assert (await get(gateway.ops_port, "/healthz")).status == 200
    ready = await get(gateway.ops_port, "/readyz")
    assert (ready.status, ready.text) == (200, f"ready\nSQLite {library_version()}\n")
    assert (await get(gateway.ops_port, "/")).status == 404
    assert (await get(gateway.ops_port, "/healthz", method="PUT")).status == 405
    assert (await get(gateway.port, "/metrics")).status == 404
    page = (await get(gateway.ops_port, "/metrics")).text
    assert 'dealer_calls_total{method="deck.draw",outcome="no_round"} 1.0' in page
    assert 'dealer_calls_total{method="table.join",outcome="ok"} 2.0' in page
    assert "dealer_connections 3.0" in page
    assert "dealer_tables_resident 1.0" in page
    assert "dealer_append_events_count 3.0" in page
    assert table.id not in page
    assert "player" not in page

    async def full(name: str, value: bytes) -> bytes:
        raise DatabaseFull("The disk is full.")

    monkeypatch.setattr(gateway.floor.service.log, "put_house", full)
    monkeypatch.setattr("dealer.gateway.operations.FRESH_SECONDS", 0.0)
    ready = await get(gateway.ops_port, "/readyz")
    assert (ready.status, ready.text) == (503, "The disk is full.\n")
    gateway.floor.draining = True
    assert (await get(gateway.ops_port, "/readyz")).text == "draining\n"
    assert (await get(gateway.ops_port, "/healthz")).status == 200
    gateway.floor.draining = False


async def test_tokens_are_in_no_log_line(gateway, arrive, caplog) -> None:
    caplog.set_level("DEBUG")
    table = await shuffled(arrive, gateway, players=1)
    other = await arrive(gateway)
    await other.ask("table.resume", table=table.id, token=table.tokens[0], after=0)
    await get(gateway.port, f"/tables/{table.id}/bundle.jsonl", Authorization="Bearer host.x")
    server = [r for r in caplog.records if not r.name.startswith(("websockets.client", "asyncio"))]
    text = json.dumps([record.getMessage() for record in server])
    assert table.tokens[0] not in text
    assert table.host_token not in text


async def test_a_header_that_stands_twice(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1, watch="nobody")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    twice = f"Authorization: Bearer {table.host_token}\r\n" * 2
    request = f"GET /tables/{table.id}/bundle.jsonl HTTP/1.1\r\nHost: localhost\r\n{twice}\r\n"
    writer.write(request.encode())
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert table.host_token.encode() not in answer
    writer.close()
