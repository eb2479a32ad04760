"""Tables of services: opened once for each `ref`, listed by page; and the journal of services."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dealer.gateway import Gateway
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.identity.admin import read_journal
from tests.gateway.http_client import get
from tests.gateway.rpc_client import (
    Refusal,
    RpcClient,
    eventually,
    reason_of,
    refusal,
    refused_status,
)
from tests.gateway.tables import seat_players
from tests.harness.service_keys import add_key, revoke_key, with_key


async def projected(service: Service) -> None:
    await service.log.run_when_idle(Projector().slice)


async def journal(service: Service) -> list[tuple[Any, ...]]:
    entries = await read_journal(service.log, limit=50)
    return [
        (one.who, one.what, one.target, one.why, one.details)
        for one in reversed(entries)
        if one.who.startswith("key:")
    ]


# The id of a service for its table


async def test_a_ref_names_one_table(service, gateway, connect) -> None:
    key = await add_key(service)
    first, second = [await connect(**with_key(key)) for _ in range(2)]
    rules = {"watch": "nobody"}
    opened = await first.call("table.open", ref="match 1 ♠", rules=rules)
    assert opened["ref"] == "match 1 ♠"
    assert await second.call("table.open", ref="match 1 ♠", rules=rules, cmd="x") == opened
    assert (await second.call("table.open", ref="match 2"))["table"] != opened["table"]
    refused = await refusal(second.call("table.open", ref="match 1 ♠", rules={}))
    assert refused.reason == "command_reused"
    other = await connect(**with_key(await add_key(service, "other")))
    assert (await other.call("table.open", ref="match 1 ♠"))["table"] != opened["table"]
    # Also after the table was closed.
    await first.call("table.close", table=opened["table"])
    assert await second.call("table.open", ref="match 1 ♠", rules=rules) == opened


async def test_a_ref_needs_a_key(gateway, connect) -> None:
    client = await connect()
    refused = await refusal(client.call("table.open", ref="match 1"))
    assert refused.reason == "bad_request"
    assert "service key" in str(refused)


@pytest.mark.parametrize("ref", ["", "x" * 257, "a\x00", 1])
async def test_a_ref_has_up_to_256_characters(service, gateway, connect, ref: Any) -> None:
    client = await connect(**with_key(await add_key(service)))
    assert (await refusal(client.call("table.open", ref=ref))).code == -32602
    assert await client.call("table.open", ref="x" * 256)


async def test_a_table_without_a_host_token(service, gateway, connect) -> None:
    shop = await connect(gateway, **with_key(await add_key(service)))
    opened = await shop.call("table.open", ref="t-1", host=False)
    assert opened.keys() == {"table", "invite", "version", "origin", "key", "ref"}
    assert await shop.call("table.open", ref="t-1", host=False) == opened
    await shop.call("round.open", table=opened["table"], entropy="house")
    assert await reason_of(shop.call("table.open", ref="t-1")) == "command_reused"
    assert "host_token" in await shop.call("table.open", ref="t-2")
    with pytest.raises(Refusal, match="Only a service, with a service key"):
        await (await connect(gateway)).call("table.open", host=False)


async def test_the_same_ref_at_the_same_time_on_two_nodes(open_node, connect) -> None:
    nodes = [await open_node() for _ in range(2)]
    services = [node.context.service for node in nodes]
    key = await add_key(services[0])
    await services[1].service_keys.refresh(services[1].log)
    clients = [await connect(node, **with_key(key)) for node in nodes for _ in range(3)]
    for number in range(10):
        ref = f"match {number}"
        opened = await asyncio.gather(*(one.call("table.open", ref=ref) for one in clients))
        assert all(one == opened[0] for one in opened)
        rules = [{"seats": 2 + index} for index in range(len(clients))]
        results = await asyncio.gather(
            *(
                one.call("table.open", ref=f"other {number}", rules=given)
                for one, given in zip(clients, rules, strict=True)
            ),
            return_exceptions=True,
        )
        assert len([one for one in results if isinstance(one, dict)]) == 1
        assert {one.reason for one in results if isinstance(one, Refusal)} == {"command_reused"}
    ((streams,),) = await services[0].log.fetch("SELECT count(*) FROM stream")
    assert streams == 20


async def test_a_claim_without_a_table_is_used_again(service, gateway, connect) -> None:
    """As after a crash between the claim and the table's first event."""
    key = await add_key(service)
    client = await connect(**with_key(key))
    table = bytes(range(16))
    await service.log.run_in_transaction(
        lambda connection: connection.exec_driver_sql(
            "INSERT INTO service_table (table_id, key, ref) VALUES (?, 1, 'm1')", (table,)
        )
    )
    assert (await client.call("table.list"))["tables"] == []
    assert (await client.call("table.open", ref="m1"))["table"] == table.hex()


async def test_a_ref_of_an_archived_table(service, gateway, connect) -> None:
    key = await add_key(service)
    client = await connect(**with_key(key))
    opened = await client.call("table.open", ref="m1")
    await client.call("table.close", table=opened["table"])
    await projected(service)
    stream = "SELECT id, x'00', x'00', 'f', 0, x'00', 0, 0 FROM stream"
    await service.log.run_in_transaction(
        lambda connection: connection.exec_driver_sql(
            "INSERT INTO archived (stream, root, house_key, file, length, sha256, closed_at, at,"
            f" size) SELECT *, 2 FROM ({stream})"
        )
    )
    other = await connect(**with_key(key))
    live_table = service.tables.get(opened["table"])
    service.tables.remove(live_table)
    refused = await refusal(other.call("table.open", ref="m1"))
    assert refused.reason == "table_archived"
    listed = await other.call("table.list")
    assert [one["state"] for one in listed["tables"]] == ["archived"]


# Lists


async def test_a_service_lists_its_own_tables_by_page(service, gateway, connect) -> None:
    client = await connect(**with_key(await add_key(service)))
    other = await connect(**with_key(await add_key(service, "other")))
    await other.call("table.open", ref="m0")
    await seat_players(connect, gateway, players=1)
    tables = []
    for number in range(7):
        opened = await client.call("table.open", ref=f"m{number}", name=f"table {number}")
        tables.append(opened["table"])
    for table in tables[::2]:
        await client.call("table.close", table=table)
    before = await client.call("table.list")
    assert sorted(one["version"] for one in before["tables"]) == [1, 1, 1, 2, 2, 2, 2]
    await projected(service)
    listed: list[Any] = []
    after: dict[str, Any] = {}
    while True:
        page = await client.call("table.list", limit=3, **after)
        assert len(page["tables"]) <= 3
        listed += page["tables"]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert [one["table"] for one in listed] == sorted(tables)
    assert {one["ref"]: one["name"] for one in listed} == {
        f"m{number}": f"table {number}" for number in range(7)
    }
    assert {one["opened_by"] for one in listed} == {"shop"}
    closed = await client.call("table.list", state="closed")
    assert {one["table"] for one in closed["tables"]} == set(tables[::2])
    assert all(one["closed_at"] >= one["opened_at"] for one in closed["tables"])
    opened = await client.call("table.list", state="open", limit=2)
    assert len(opened["tables"]) == 2
    rest = await client.call("table.list", state="open", after=opened["next"])
    assert len(rest["tables"]) == 1
    (one,) = (await client.call("table.list", ref="m4"))["tables"]
    assert (one["table"], one["state"]) == (tables[4], "closed")
    assert (await client.call("table.list", ref="none"))["tables"] == []


async def test_a_page_reads_a_bounded_number_of_tables(
    service, gateway, connect, monkeypatch
) -> None:
    monkeypatch.setattr("dealer.service.identity.service_tables.SCANNED", 3)
    client = await connect(**with_key(await add_key(service)))
    tables = sorted([(await client.call("table.open"))["table"] for _ in range(8)])
    await client.call("table.close", table=tables[-1])
    await projected(service)
    pages = 0
    found: list[Any] = []
    after: dict[str, Any] = {}
    while True:
        page = await client.call("table.list", state="closed", **after)
        pages += 1
        found += page["tables"]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert [one["table"] for one in found] == [tables[-1]]
    assert pages == 3


async def test_admin_lists_all_tables(service, gateway, connect) -> None:
    client = await connect(**with_key(await add_key(service, "shop", "open")))
    own = (await client.call("table.open", ref="m1"))["table"]
    theirs = (await seat_players(connect, gateway, players=1, watch="nobody")).id
    admin = await connect(**with_key(await add_key(service, "ops", "admin")))
    listed = (await admin.call("table.list"))["tables"]
    assert {one["table"]: one.get("opened_by") for one in listed} == {own: "shop", theirs: None}
    assert (await admin.call("table.list", ref="m1"))["tables"] == []  # not one of its own
    assert await reason_of(client.call("table.list")) == "not_entitled"


async def test_players_list_without_parameters(gateway, connect) -> None:
    client = await connect()
    assert await client.call("table.list") == {"tables": []}
    for given in ({"ref": "x"}, {"state": "open"}, {"after": "0" * 32}, {"limit": 10}):
        refused = await refusal(client.call("table.list", **given))
        assert refused.reason == "bad_request"


# The journal


async def test_what_a_service_does_to_others_is_journalled(service, gateway, connect) -> None:
    key = await add_key(service)
    client = await connect(**with_key(key))
    table = (await client.call("table.open"))["table"]
    players = [await connect() for _ in range(2)]
    for number, player in enumerate(players):
        await player.call("table.join", table=table, name=f"player {number}")
    await client.call("round.open", entropy="house")
    vacated = await client.call("seat.vacate", seat=1, reason="cheats")
    moved = await client.call("table.transfer_host", seat=2)
    await refusal(client.call("seat.vacate", seat=1))
    closed = await client.call("table.close")
    await service.service_journal.close()
    found = sorted(await journal(service), key=lambda entry: entry[4]["version"])
    assert found == [
        ("key:shop", "seat.vacate", table, "cheats", {"seat": 1, "version": vacated["version"]}),
        ("key:shop", "table.transfer_host", table, "", {"seat": 2, "version": moved["version"]}),
        ("key:shop", "table.close", table, "", {"version": closed["version"]}),
    ]
    assert "dk_" not in json.dumps(found)


# Settings


async def test_only_services_open_tables(service, open_gateway, connect) -> None:
    gateway = await open_gateway(open_tables="service")
    player = await connect(gateway)
    refused = await refusal(player.call("table.open"))
    assert refused.reason == "not_entitled"
    assert "only services open tables" in str(refused)
    client = await connect(gateway, **with_key(await add_key(service)))
    table = (await client.call("table.open"))["table"]
    assert await player.call("table.join", table=table, name="ann")
    assert "tables" in await player.call("table.list")


async def test_only_services_list_tables(service, open_gateway, connect) -> None:
    gateway = await open_gateway(lobby="service")
    player = await connect(gateway)
    table = (await player.call("table.open"))["table"]
    refused = await refusal(player.call("table.list"))
    assert refused.reason == "not_entitled"
    client = await connect(gateway, **with_key(await add_key(service)))
    assert await client.call("table.list") == {"tables": []}
    assert await player.call("table.state", table=table)


async def test_a_player_lists_closed_tables(service, open_gateway, connect) -> None:
    player = await connect(await open_gateway())
    assert await player.call("table.list", state="closed") == {"tables": []}
    for members in ({"state": "archived"}, {"limit": 5}, {"state": "closed", "limit": 5}):
        refused = await refusal(player.call("table.list", **members))
        assert refused.reason == "bad_request", members
        assert "`state` may be closed" in str(refused)
    hidden = await connect(await open_gateway(finished="service"))
    refused = await refusal(hidden.call("table.list", state="closed"))
    assert refused.reason == "not_entitled"
    assert "tables" in await hidden.call("table.list")


async def open_services_port(open_gateway: Any) -> Gateway:
    gateway: Gateway = await open_gateway(service_port=0)
    return gateway


async def test_the_services_port_needs_a_key(service, open_gateway) -> None:
    gateway = await open_services_port(open_gateway)
    key = await add_key(service)
    port = gateway.service_port
    for path in ("/", "/rpc", "/openrpc.json"):
        refused = await get(port, path)
        assert refused.status == 401, path
        assert "for services" in refused.text
    assert await refused_status(RpcClient.connect(port)) == 401
    client = await RpcClient.connect(port, **with_key(key))
    assert await client.call("table.open")
    assert (await get(port, "/openrpc.json", Authorization=f"Bearer {key}")).status == 200
    await revoke_key(service)
    assert await client.wait_closed() == 4401
    await client.close()
    await eventually(lambda: not gateway.registry.connections)


async def test_draining_closes_the_services_port(service, open_gateway) -> None:
    gateway = await open_services_port(open_gateway)
    client = await RpcClient.connect(gateway.service_port, **with_key(await add_key(service)))
    port = gateway.service_port
    await gateway.drain()
    assert await client.wait_closed() == 1012
    await client.close()
    with pytest.raises(ConnectionRefusedError):
        await RpcClient.connect(port)
