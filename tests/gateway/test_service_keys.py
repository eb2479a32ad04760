"""Connections of services: how they identify themselves, what a key may do, and how it ends."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.session.methods import METHODS
from dealer.service.identity.service_keys import POLL_SECONDS, RIGHTS, new_key
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import Refusal, RpcClient, reason_of, refusal, refused_status
from tests.gateway.tables import seat_players
from tests.gateway.test_private_tables import PARAMS
from tests.harness.service_keys import add_key, revoke_key, with_key

SERVICES = Path(__file__).parents[2] / "dealer/gateway/SERVICES.md"
METHOD_RIGHTS = {name: each.right for name, each in METHODS.items() if each.right is not None}
AT_A_TABLE = sorted(set(METHOD_RIGHTS) - {"table.open", "table.list"})
PARAMS = PARAMS | {
    "deck.return": {"from": "deck", "count": 1},  # a service has no hand
    "seat.move": {"seat": 1, "to": 2},
}


async def outcome(client: RpcClient, method: str, **params: Any) -> str:
    """The reason of the refusal and its sentence; nothing if it is accepted."""
    try:
        await client.call(method, **params)
    except Refusal as refused:
        return f"{refused.reason}: {refused}"
    return ""


def test_every_right_is_that_of_a_method() -> None:
    assert set(METHOD_RIGHTS.values()) == set(RIGHTS) - {"admin"}
    assert set(METHOD_RIGHTS) >= {name for name, each in METHODS.items() if each.journal}


def test_the_document_lists_the_methods_of_each_right() -> None:
    """SERVICES.md; the right for `feed.follow` is checked where that for `GET /feed` is."""
    text = SERVICES.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE)
    documented = {
        (name, right)
        for right, words in rows
        if right in RIGHTS
        for name in re.findall(r"`([\w.]+)`", words)
    }
    assert documented - {("feed.follow", "read")} == set(METHOD_RIGHTS.items())


@pytest.mark.parametrize("path", ["/ws", "/"])
async def test_a_key_that_is_not_valid_is_refused_at_the_handshake(
    service, gateway, connect, path: str
) -> None:
    key = await add_key(service)
    wrong = [new_key(), key[:-1], key + "x", "dk_"]
    await revoke_key(service)
    for one in [*wrong, key]:
        with pytest.raises(InvalidStatus) as refused:
            await connect(path=path, **with_key(one))
        answer = refused.value.response
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.body == b"This service key is not valid, or was revoked.\n"


async def test_two_keys_in_one_request_are_refused(service, gateway, connect) -> None:
    key = f"Bearer {await add_key(service)}"
    headers = [("Authorization", key), ("Authorization", key)]
    assert await refused_status(connect(additional_headers=headers)) == 400


async def test_another_credential_does_not_keep_a_client_out(gateway, connect) -> None:
    for given in ("Basic ZDpk", "Bearer of-a-proxy"):
        client = await connect(additional_headers={"Authorization": given})
        assert await client.call("ping")


async def test_a_key_is_given_with_hello(service, gateway, connect) -> None:
    key, client = await add_key(service), await connect()
    refused = await refusal(client.call("session.hello", key=new_key()))
    assert (refused.reason, refused.code) == ("bad_key", 6)
    await client.call("session.hello", key=key)
    await client.call("session.hello", key=key)  # again the same
    opened = await client.call("table.open")
    await client.call("round.open", table=opened["table"], entropy="house")
    other = await add_key(service, "other")
    assert await reason_of(client.call("session.hello", key=other)) == "bad_request"


async def test_a_player_does_not_become_a_service(service, gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=1)
    key = await add_key(service)
    assert await reason_of(table.players[0].call("session.hello", key=key)) == "bad_request"
    assert await outcome(table.players[0], "table.close") != ""


@pytest.mark.parametrize("right", [right for right in RIGHTS if right != "admin"])
async def test_a_key_may_do_what_its_rights_say(service, gateway, connect, right: str) -> None:
    opener = await connect(**with_key(await add_key(service, "a", "open", "close", "seat")))
    key = await add_key(service, "b", right)
    client = await connect(**with_key(key))
    rules = {"watch": "nobody"}
    table = (await opener.call("table.open", rules=rules))["table"]
    # The table becomes one of the other key's.
    service.service_tables._owners[bytes.fromhex(table)] = 2
    player = await connect()
    await player.call("table.join", table=table, name="ann")
    for method in AT_A_TABLE:
        needed = METHOD_RIGHTS[method]
        said = await outcome(client, method, table=table, **PARAMS.get(method, {}))
        lacks = f"not_entitled: This needs the right `{needed}`, which your service key does not"
        assert said.startswith(lacks) == (needed != right), (method, said)
        if needed == right:
            assert not said.startswith(("not_entitled", "not_your_seat")), (method, said)


@pytest.mark.parametrize("right", RIGHTS)
async def test_table_open_needs_its_right(service, gateway, connect, right: str) -> None:
    client = await connect(**with_key(await add_key(service, "b", right)))
    said = await outcome(client, "table.open")
    assert (said == "") == (right in ("open", "admin"))


async def test_a_key_is_a_stranger_at_tables_of_others(service, gateway, connect) -> None:
    private = {"watch": "nobody", "join": "invite"}
    ours = await connect(**with_key(await add_key(service, "a")))
    tables = [
        (await seat_players(connect, gateway, players=1, **private)).id,
        (await ours.call("table.open", rules=private))["table"],
    ]
    stranger = await connect(**with_key(await add_key(service, "b")))
    for table in tables:
        for method, of in METHODS.items():
            if of.build is not None or method in AT_A_TABLE:
                said = await outcome(stranger, method, table=table, **PARAMS.get(method, {}))
                assert said == "not_entitled: This table is not open to spectators."


async def test_admin_is_for_all_tables(service, gateway, connect) -> None:
    table = await seat_players(connect, gateway, players=2, watch="nobody", join="invite")
    admin = await connect(**with_key(await add_key(service, "ops", "admin")))
    await admin.call("table.watch", table=table.id)
    await admin.call("round.open", entropy="house")
    await admin.call("deck.shuffle")
    await admin.call("deck.deal", each=1)
    vacated = await admin.call("seat.vacate", seat=1, reason="idle")
    await admin.until_version(vacated["version"])
    (event,) = (one for one in admin.events if one["type"] == "SeatVacated")
    assert event["public"] == {"seat": 1, "by": "service"}
    assert event["opened"]["part"] == {"reason": "idle"}
    await admin.call("table.close")


async def test_a_service_sees_what_a_spectator_sees(service, gateway, connect) -> None:
    """Even of a private table, live, on resume and in the state: no hidden card, no salt."""
    client = await connect(**with_key(await add_key(service)))
    opened = await client.call("table.open", rules={"watch": "nobody"})
    table = opened["table"]
    await client.call("table.watch", table=table)
    players = [await connect() for _ in range(2)]
    for number, player in enumerate(players):
        await player.call("table.join", table=table, name=f"p{number}")
    await client.call("round.open", entropy="house")
    await client.call("deck.shuffle")
    await client.call("deck.deal", each=2)
    drawn = await players[0].call("deck.draw")
    await client.until_version(drawn["version"])
    state = (await client.call("table.state"))["state"]
    assert state["round"]["cards"] == []
    again = await connect(**with_key(await add_key(service, "reader", "admin")))
    await again.call("table.watch", table=table, after=0)
    await again.until(lambda: again.notices("resumed"))
    for seen in (client, again):
        dealt = [one for one in seen.events if one["type"] == "CardDrawn"]
        assert len(dealt) == 5
        assert not any("private" in one or "card" in one["public"] for one in seen.events)
    assert [one for one in players[0].events if "private" in one]


async def test_a_token_acts_instead_of_the_key(service, gateway, connect) -> None:
    client = await connect(**with_key(await add_key(service, "shop", "open")))
    opened = await client.call("table.open")
    table = opened["table"]
    player = await connect()
    await player.call("table.join", table=table, name="ann")
    assert await reason_of(client.call("seat.vacate", table=table, seat=1)) == "not_entitled"
    token = opened["host_token"]
    vacated = await client.call("seat.vacate", table=table, seat=1, token=token)
    await player.until_version(vacated["version"])
    assert player.events[-1]["public"]["by"] == "host"


async def test_the_command_ids_of_a_key_are_its_own(service, gateway, connect) -> None:
    """On another connection too, where a connection without a key would be a stranger."""
    key = await add_key(service)
    first, second = [await connect(**with_key(key)) for _ in range(2)]
    opened = [await one.call("table.open", cmd="1") for one in (first, second)]
    assert opened[0] == opened[1]
    table = opened[0]["table"]
    rounds = [
        await one.call("round.open", table=table, entropy="house", cmd="2")
        for one in (first, second)
    ]
    assert rounds[0] == rounds[1]
    refused = await refusal(second.call("deck.shuffle", table=table, cmd="2"))
    assert refused.reason == "command_reused"
    admin = await connect(**with_key(await add_key(service, "ops", "admin")))
    await admin.call("deck.shuffle", table=table, cmd="2")
    other = await connect(**with_key(await add_key(service, "other")))
    assert (await other.call("table.open", cmd="1"))["table"] != table


async def test_a_revoked_key_ends_open_connections(service, gateway, connect) -> None:
    key = await add_key(service)
    said_hello = await connect()
    await said_hello.call("session.hello", key=key)
    clients = [await connect(**with_key(key)), said_hello]
    other = await connect(**with_key(await add_key(service, "other")))
    player = await connect()
    await revoke_key(service)
    for client in clients:
        assert await client.wait_closed() == int(CloseCode.KEY_REVOKED)
    assert await other.call("ping")
    assert await player.call("ping")


async def test_a_key_that_is_revoked_during_the_handshake(
    service, gateway, connect, monkeypatch
) -> None:
    key = await add_key(service)
    monkeypatch.setattr(service.service_keys, "is_valid", lambda key: False)
    client = await connect(**with_key(key))
    assert await client.wait_closed() == 4401


async def test_revocation_reaches_all_nodes_within_a_second(open_node, connect) -> None:
    nodes = [await open_node() for _ in range(2)]
    key = await add_key(nodes[0].context.service)
    await nodes[1].context.service.service_keys.refresh(nodes[1].context.service.log)
    clients = [await connect(node, **with_key(key)) for node in nodes]
    await revoke_key(nodes[0].context.service, at_once=False)
    for client in clients:
        assert await client.wait_closed() == 4401
    assert POLL_SECONDS <= 0.5


async def test_a_key_reaches_no_log_line(service, gateway, connect, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    key = await add_key(service)
    client = await connect(**with_key(key))
    await client.call("table.open")
    await refusal(client.call("table.state", table=key))
    await refusal(client.call("table.state", **{key: 1}))
    said_hello = await connect()
    await refusal(said_hello.call("session.hello", key=key[:-1] + "-"))
    await said_hello.call("session.hello", key=key)
    await revoke_key(service)
    await client.wait_closed()
    with pytest.raises(InvalidStatus):
        await connect(**with_key(key))
    own = [one for one in caplog.records if one.name != "websockets.client"]
    text = "".join(f"{one.getMessage()} {vars(one)}\n" for one in own)
    assert "client suspect" in text
    assert "connection closed" in text
    assert "dk_" not in text


async def test_a_service_has_no_limit_of_tables(service, open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables=2, tables_per_hour=2.0))
    client = await connect(gateway, **with_key(await add_key(service)))
    for _ in range(4):
        await client.call("table.open")
    player = await connect(gateway)
    for _ in range(2):
        await player.call("table.open")
    assert await reason_of(player.call("table.open")) == "too_many_tables"


async def test_a_key_has_a_rate_of_its_own(service, open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, key_rate=0.001, key_burst=9.0)
    gateway = await open_gateway(limits=limits)
    key, player = await add_key(service), await connect(gateway)
    clients = [await connect(gateway, **with_key(key)) for _ in range(2)]  # two each
    said = [await outcome(client, "ping") for _ in range(3) for client in clients]
    assert said[:5] == [""] * 5
    assert said[5].startswith("rate_limited")
    for _ in range(20):
        assert await player.call("ping")


async def test_a_key_has_a_share_of_the_processor(service, open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, key_cpu=1e-9, key_cpu_burst=1e-6)
    gateway = await open_gateway(limits=limits)
    key, player = await add_key(service), await connect(gateway)
    client = await connect(gateway, **with_key(key))
    assert await client.call("ping")
    said = await outcome(client, "ping")
    assert said.startswith("rate_limited: Your service key has used up its share of the server's")
    assert await player.call("ping")


async def test_a_key_has_a_share_of_the_disk(service, open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, key_bytes=1e-3, key_bytes_burst=10.0)
    gateway = await open_gateway(limits=limits)
    client = await connect(gateway, **with_key(await add_key(service)))
    await client.call("table.open")
    said = await outcome(client, "table.open")
    assert "Your service key has used up its share of the server's disk writes" in said
    assert await (await connect(gateway)).call("table.open")


async def test_a_key_has_a_number_of_connections(service, open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, connections_per_address=2, key_connections=3)
    gateway = await open_gateway(limits=limits)
    key = await add_key(service)
    clients = [await connect(gateway, **with_key(key)) for _ in range(3)]
    with pytest.raises(InvalidStatus):
        await connect(gateway, **with_key(key))
    player = await connect(gateway)
    assert await reason_of(player.call("session.hello", key=key)) == "overloaded"
    await clients[0].close()
    await player.call("session.hello", key=key)
    assert await connect(gateway)  # the address has none but this one
