"""The server's log of a whole game at the lowest level: nothing in it reveals cards or secrets."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

from tests.gateway.http_client import get
from tests.gateway.rpc_client import Refusal, RpcClient, reason_of
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import (
    Clients,
    connect_clients,
    play_everything,
    play_to_the_end,
)

NAMES = ("Ada-the-first", "Bob-the-second", "Cleo-the-third", "Dan-the-fourth")
DECK = [f"<<{rank}{suit}>>" for rank in "A23456789TJQK" for suit in "shdc"]


def secrets_of(clients: Clients, folder: Path) -> set[str]:
    """Every token, invitation, nonce and key that a client stores, and the faces and names."""
    found = {*NAMES, "spectator", "From socket to audit", *DECK}
    for file in folder.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            found |= set(re.findall(r"(?:host|seat)\.[0-9a-f.]+", text))
            found |= set(re.findall(r"\b[0-9a-f]{32,}\b", text))
    return {one for one in found if clients.id not in one}


async def misbehave(server: ServerProcess, table: str, token: str) -> None:
    """Send input that a log might quote."""
    client = await RpcClient.connect(server.port)
    for method, params in (
        ("table.resume", {"table": table, "token": token[:-1] + "x", "after": 0}),
        ("table.join", {"table": token, "name": NAMES[0]}),
        ("table.state", {"table": table, "token": f"{NAMES[2]} {DECK[3]}"}),
    ):
        try:
            await client.call(method, **params)
        except Refusal:
            continue
        raise AssertionError(method)
    await client.send_raw(f'{{"token":"{token}","name":"{NAMES[3]}"')
    await client.send_raw(token.encode())
    await client.wait_closed()
    refused = await get(server.port, f"/ws?token={token}", Origin=f"http://{NAMES[0]}")
    assert refused.status in (400, 403, 426)
    await get(server.port, f"/{token}", Authorization=f"Bearer {token}")


async def test_no_log_line_reveals_cards_or_secrets(tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    server = ServerProcess(tmp_path, **{"log-level": "DEBUG", "log-format": "json"})
    async with server, connect_clients(server.url, folder=stores, names=NAMES) as clients:
        await clients.sit_down(deck=DECK)
        known = secrets_of(clients, stores)
        await play_everything(clients)
        token = next(one for one in known if one.startswith("host."))
        await misbehave(server, clients.id, token)
        await server.kill()
        await server.open()
        await clients.all_see(lambda table: table.version > 0)
        await play_to_the_end(clients)
        known |= secrets_of(clients, stores)
        secret = re.findall(rb'"secret":"([0-9a-f]+)"', await server.bundle(clients.id))
        known |= {one.decode() for one in secret}
    known.add((tmp_path / "dealer.db.key").read_bytes().hex())
    assert len(known) > 70
    lines = [line for line in server.output.read_text().splitlines() if line.startswith("{")]
    records = [json.loads(line) for line in lines]
    events = [one["event"] for one in records]
    assert events.count("ready") == 2
    assert {"start", "migrated", "drain", "drained", "stop", "client suspect"} <= set(events)
    assert any(one.get("table") == clients.id for one in records)
    assert all({"at", "level", "event"} <= set(one) for one in records)
    output = server.output.read_text()
    assert [one for one in known if one in output] == []
    assert server.database.name in output


async def test_a_failing_database_and_its_recovery_are_logged_once_each(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, busy=0, **{"log-format": "json"})
    async with server:
        client = await RpcClient.connect(server.port)
        with closing(connect(server.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(3):
                assert await reason_of(client.call("table.open")) == "unavailable"
            other.execute("ROLLBACK")
        await client.call("table.open")
    lines = [json.loads(x) for x in server.output.read_text().splitlines() if x.startswith("{")]
    database_lines = [one for one in lines if one["event"].startswith("database")]
    assert [one["event"] for one in database_lines] == ["database failing", "database recovered"]
    assert "Another program holds" in database_lines[0]["says"]
