"""Plain HTTP: the pages, the download of the bundle, and the operator's port."""

from __future__ import annotations

import asyncio
import json

import pytest

from dealer.errors import DatabaseFull
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.sqlite.wal import library_version
from dealer.gateway import Gateway
from dealer.proof.verify import verify
from dealer.service.operations import probe
from tests.gateway.http_client import get
from tests.gateway.tables import seat_and_shuffle, seat_players


async def test_the_page_is_the_same_for_all_tables(gateway, connect) -> None:
    """What is on a table is sent over the WebSocket, to clients that may see it."""
    table = await seat_and_shuffle(connect, gateway, players=1, name="<b>Friday</b>")
    other = await seat_and_shuffle(connect, gateway, players=2)
    page = await get(gateway.port, f"/tables/{table.id}")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await get(gateway.port, f"/tables/{other.id}")).body == page.body
    assert (await get(gateway.port, f"/tables/{table.id}/audit")).status == 200


async def test_the_bundle_of_a_private_table_needs_a_token(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody", name="secret club")
    bundle = f"/tables/{table.id}/bundle.jsonl"
    assert (await get(gateway.port, bundle)).status == 401
    assert (await get(gateway.port, bundle, Authorization="Bearer nonsense")).status == 401
    for token in (table.host_token, table.tokens[0]):
        got = await get(gateway.port, bundle, Authorization=f"Bearer {token}")
        assert got.status == 200


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_the_bundle_verifies(gateway, connect, version) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    for _ in range(3):
        await table.host.call("deck.shuffle")
    await table.host.call("deck.deal", each=2)
    await table.host.call("round.close")
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
    ],
)
async def test_other_paths_and_methods_are_refused(gateway, path, method, status) -> None:
    got = await get(gateway.port, path, method=method)
    assert got.status == status
    if status == 405:
        assert "GET" in got.headers["allow"]


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/", "localhost", 200),
        (f"/tables/{'0' * 32}/bundle.jsonl", "localhost", 404),
        ("/", "example.org", 421),
    ],
)
async def test_an_answer_to_head_has_no_body(gateway, path: str, host: str, status: int) -> None:
    whole = await get(gateway.port, path, host=host)
    head = await get(gateway.port, path, host=host, method="HEAD")
    assert (whole.status, head.status, head.body) == (status, status, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]


async def test_an_operators_answer_to_head_has_no_body(open_gateway) -> None:
    gateway: Gateway = await open_gateway(ops_port=0)
    head = await get(gateway.ops_port, "/healthz", method="HEAD")
    assert (head.status, head.body) == (200, b"")


async def test_the_operators_port_serves_health_readiness_and_metrics(
    open_gateway, connect, monkeypatch
) -> None:
    gateway: Gateway = await open_gateway(ops_port=0)
    service = gateway.context.service
    service.stats.events.observe(2.0)
    table = await seat_players(connect, gateway, players=2)
    with pytest.raises(Exception, match="No round"):
        await table.players[0].call("deck.draw")
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
    assert "dealer_append_events_count 1.0" in page
    assert "dealer_append_events_sum 2.0" in page
    assert table.id not in page
    assert "player" not in page

    async def full(work: object) -> None:
        raise DatabaseFull("The disk is full.")

    monkeypatch.setattr(service.log, "run_in_transaction", full)
    await gateway.probe.check()
    ready = await get(gateway.ops_port, "/readyz")
    assert (ready.status, ready.text) == (503, "The disk is full.\n")
    gateway.context.draining = True
    assert (await get(gateway.ops_port, "/readyz")).text == "draining\n"
    assert (await get(gateway.ops_port, "/healthz")).status == 200
    gateway.context.draining = False


async def test_a_running_server_notices_a_failure_and_its_end(open_gateway, monkeypatch) -> None:
    monkeypatch.setattr(probe, "SECONDS", 0.01)
    gateway: Gateway = await open_gateway(ops_port=0)
    problem: list[DatabaseFull] = []

    async def transaction(work: object) -> None:
        if problem:
            raise problem[0]

    monkeypatch.setattr(gateway.context.service.log, "run_in_transaction", transaction)
    for expected in (200, 503, 200):
        problem[:] = [DatabaseFull("The disk is full.")] * (expected == 503)
        async with asyncio.timeout(20):
            while (await get(gateway.ops_port, "/readyz")).status != expected:
                pass


async def test_tokens_are_in_no_log_line(gateway, connect, caplog) -> None:
    caplog.set_level("DEBUG")
    table = await seat_and_shuffle(connect, gateway, players=1)
    other = await connect(gateway)
    await other.call("table.resume", table=table.id, token=table.tokens[0], after=0)
    await get(gateway.port, f"/tables/{table.id}/bundle.jsonl", Authorization="Bearer host.x")
    records = [r for r in caplog.records if not r.name.startswith(("websockets.client", "asyncio"))]
    text = json.dumps([record.getMessage() for record in records])
    assert table.tokens[0] not in text
    assert table.host_token not in text


async def test_a_repeated_authorization_header_is_refused(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    twice = f"Authorization: Bearer {table.host_token}\r\n" * 2
    request = f"GET /tables/{table.id}/bundle.jsonl HTTP/1.1\r\nHost: localhost\r\n{twice}\r\n"
    writer.write(request.encode())
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert table.host_token.encode() not in answer
    writer.close()


async def test_a_node_without_the_newest_key_is_ready_but_not_for_new_tables(
    open_gateway, tmp_path
) -> None:
    gateway: Gateway = await open_gateway(ops_port=0)
    service, path = gateway.context.service, "/readyz?for=new-tables"
    assert (await get(gateway.ops_port, path)).status == 200
    assert (await get(gateway.ops_port, "/metrics")).text.count("dealer_restart_needed 0.0") == 1
    earlier = HouseKeys(bytes(32))
    service.maintenance._keys = earlier, tmp_path / "nowhere"
    await service.maintenance.refresh(service.log)
    refused, ready = await get(gateway.ops_port, path), await get(gateway.ops_port, "/readyz")
    assert (refused.status, ready.status) == (503, 200)
    assert refused.text.splitlines() == ready.text.splitlines()[-1:]
    assert "copy all key files" in refused.text
    assert (await get(gateway.ops_port, "/metrics")).text.count("dealer_restart_needed 1.0") == 1
