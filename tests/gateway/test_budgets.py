"""Budgets of client addresses and players, over real sockets: no reconnection resets a debt."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from dealer.gateway import Limits
from dealer.gateway.net.proxies import client_network
from dealer.gateway.rate_limit.costs import BYTES_PER_COMMIT, past_state_weight
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import HANDSHAKE, Refusal, RpcClient, reason_of, refused_status
from tests.gateway.tables import seat_players

PROXY = ("127.0.0.1",)
DEFAULTS = Limits(drain=6.0, closing=0.5)


def from_address(address: str) -> dict[str, dict[str, str]]:
    return {"additional_headers": {"X-Forwarded-For": address}}


async def until_refused(client: RpcClient, method: str, **params: object) -> Refusal:
    """Call a method repeatedly; its first refusal."""
    for _ in range(1000):
        try:
            await client.call(method, **params)
        except Refusal as refusal:
            return refusal
    raise AssertionError(f"{method} was not refused")


async def pongs_to_a_flood(port: int) -> int:
    """Pings answered on a new connection before the server closes it, or 0 if it is refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE)
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 101 "):
        writer.write(300 * Frame(Opcode.PING, b"!").serialize(mask=True))
        answered = (await reader.read()).count(b"\x8a\x01!")
    else:
        answered = 0
    writer.close()
    return answered


@pytest.mark.slow
async def test_reopened_connections_get_no_more_pings_answered(open_gateway, stop_clock) -> None:
    gateway = await open_gateway(limits=DEFAULTS)
    stop_clock(gateway)
    answered = [await pongs_to_a_flood(gateway.port) for _ in range(20)]
    # Burst and patience of the first one, and the ping that closes each later one.
    assert sum(answered) <= DEFAULTS.burst + DEFAULTS.patience + 1 + 19


async def test_many_connections_share_the_budget_of_their_address(
    open_gateway, connect, stop_clock
) -> None:
    limits = replace(DEFAULTS, address_burst=60.0)
    gateway = await open_gateway(limits=limits)
    stop_clock(gateway)
    clients = [await connect(gateway) for _ in range(10)]
    requests = [client.send("ping") for client in clients for _ in range(10)]
    answers = await asyncio.gather(*requests, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(answers) - len(refused) == 40, "60 without the ten handshakes, 2 each"
    for refusal in refused:
        assert refusal.reason == "rate_limited"
        assert refusal.error["data"]["temporary"] is True
        assert 1 <= refusal.error["data"]["retry_after_ms"] <= 1000


async def test_an_address_is_refused_until_its_debt_is_paid(
    open_gateway, connect, stop_clock
) -> None:
    limits = replace(DEFAULTS, address_burst=20.0, address_rate=10.0, patience=30.0)
    gateway = await open_gateway(limits=limits)
    clock = stop_clock(gateway)
    clients = [await connect(gateway) for _ in range(3)]
    for client in clients:
        for _ in range(18):
            client.send("ping")
    closed, _ = await asyncio.wait(
        [client.closed for client in clients], return_when="FIRST_COMPLETED"
    )
    assert {future.result() for future in closed} == {4529}
    with pytest.raises(InvalidStatus) as caught:
        await connect(gateway)
    answer = caught.value.response
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")
    page = await get(gateway.port, "/")
    assert (page.status, page.headers["retry-after"]) == (503, "3")
    assert gateway.metrics.refused["rate"] == 2
    clock.now += 3.1
    assert (await get(gateway.port, "/")).status == 200
    await connect(gateway)


async def test_past_states_cost_what_is_folded_for_them(open_gateway, connect, stop_clock) -> None:
    """One address asks a hundred times a second, on two connections; another one plays on."""
    limits = replace(TEST_LIMITS, address_rate=100.0, address_burst=200.0)
    gateway = await open_gateway(limits=limits, trusted_proxies=PROXY)
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open", entropy="house", deck={"decks": 4})
    version = (await table.host.call("deck.shuffle"))["version"]
    live_table = await gateway.context.service.lifecycle.load(table.id)
    cost = 1 + past_state_weight(gateway.context.service.past_states.length(live_table, version))
    greedy = [await connect(gateway, **from_address("198.51.100.1")) for _ in range(2)]
    honest = await connect(gateway, **from_address("198.51.100.2"))
    clock = stop_clock(gateway)
    answered, refusals, seconds = 0, [], 10
    for _ in range(seconds * 100 // len(greedy)):
        for client in greedy:
            try:
                await client.call("table.state", table=table.id, at=version)
                answered += 1
            except Refusal as refused:
                refusals.append(refused)
        await honest.call("ping")
        clock.now += len(greedy) / 100
    allowed = (limits.address_burst + seconds * limits.address_rate) / cost
    assert cost > 4
    assert limits.address_burst / cost < answered <= allowed + 1
    assert {refused.reason for refused in refusals} == {"rate_limited"}
    clock.now += refusals[-1].error["data"]["retry_after_ms"] / 1000
    await greedy[0].call("table.state", table=table.id, at=version)


async def test_the_debt_of_a_player_follows_it_to_another_address(
    open_gateway, connect, stop_clock
) -> None:
    gateway = await open_gateway(limits=DEFAULTS, trusted_proxies=PROXY)
    table = await seat_players(connect, gateway, players=2)
    stop_clock(gateway)

    async def resumed(token: str, address: str) -> RpcClient:
        client = await connect(gateway, **from_address(address))
        await client.call("table.resume", table=table.id, token=token, after=0)
        return client

    first = await resumed(table.tokens[0], "198.51.100.1")
    await until_refused(first, "ping")
    await first.close()
    again = await resumed(table.tokens[0], "198.51.100.2")
    assert await reason_of(again.call("ping")) == "rate_limited"
    other = await resumed(table.tokens[1], "198.51.100.3")
    await other.call("ping")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1:2:3", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_limits_count_an_address_by_its_network(address: str, network: str) -> None:
    assert client_network(address) == network


async def test_an_ipv6_client_is_counted_by_its_64_bit_prefix(open_gateway, connect) -> None:
    limits = replace(TEST_LIMITS, connections_per_address=1)
    gateway = await open_gateway(limits=limits, trusted_proxies=PROXY)
    await connect(gateway, **from_address("2001:db8::1"))
    assert await refused_status(connect(gateway, **from_address("2001:db8::2:3:4"))) == 503
    await connect(gateway, **from_address("2001:db8:0:1::1"))


async def test_the_number_of_remembered_addresses_is_bounded(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(trusted_proxies=PROXY)
    monkeypatch.setattr(gateway.context.budgets, "_bound", 8)
    monkeypatch.setattr(gateway.context.budgets, "_forget_at", 8)
    for number in range(40):
        await get(gateway.port, "/nothing", X_Forwarded_For=f"2001:db8:{number:x}::1")
    assert len(gateway.context.budgets) <= 8 + 2


async def test_tables_opened_by_an_address_in_an_hour_are_limited(
    open_gateway, connect, stop_clock
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, tables_per_hour=3.0))
    clock = stop_clock(gateway)
    for _ in range(3):
        await (await connect(gateway)).call("table.open")
    client = await connect(gateway)
    with pytest.raises(Refusal) as caught:
        await client.call("table.open")
    assert caught.value.reason == "rate_limited"
    assert "opened the maximum number of tables" in str(caught.value)
    assert caught.value.error["data"]["retry_after_ms"] == 1_200_001
    clock.now += 1201
    await client.call("table.open")


async def test_written_bytes_are_charged_and_refused_commands_are_not(
    open_gateway, connect, stop_clock
) -> None:
    limits = replace(TEST_LIMITS, address_bytes=1000.0, address_bytes_burst=30.0 * BYTES_PER_COMMIT)
    gateway = await open_gateway(limits=limits)
    clock = stop_clock(gateway)
    table = await seat_players(connect, gateway, players=1)
    host, player = table.host, table.players[0]
    for _ in range(50):
        with pytest.raises(Refusal, match="No round"):
            await player.call("deck.draw")
    await host.call("round.open", entropy="house", deck={"decks": 19})
    await host.call("deck.shuffle")
    for client, method in ((host, "deck.shuffle"), (player, "deck.draw"), (host, "table.open")):
        with pytest.raises(Refusal, match="disk writes") as caught:
            await client.call(method)
        assert caught.value.reason == "rate_limited"
        assert caught.value.error["data"]["temporary"] is True
    await player.call("table.state")
    clock.now += caught.value.error["data"]["retry_after_ms"] / 1000
    await player.call("deck.draw")


async def test_a_download_is_charged_only_for_the_checkpoint_that_it_writes(
    open_gateway, connect, stop_clock
) -> None:
    limits = replace(TEST_LIMITS, address_bytes=1.0, address_bytes_burst=4.0 * BYTES_PER_COMMIT)
    gateway = await open_gateway(limits=limits)
    stop_clock(gateway)
    host = await connect(gateway)
    table = (await host.call("table.open"))["table"]
    path = f"/tables/{table}/bundle.jsonl"
    for _ in range(6):
        assert (await get(gateway.port, path)).status == 200
    for name in ("Ada", "Bob"):
        await (await connect(gateway)).call("table.join", table=table, name=name)
    assert "disk writes" in str(await until_refused(host, "deck.cut", at=1, table=table))
    refused = await get(gateway.port, path)
    assert (refused.status, "disk writes" in refused.text) == (503, True)
    assert int(refused.headers["retry-after"]) > 1
