"""Budgets of client addresses and players, over real sockets: no reconnection resets a debt."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from dealer.gateway import Limits
from dealer.gateway.costs import COMMIT
from dealer.gateway.hops import client_network
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, Refusal
from tests.gateway.tables import seat_all

PROXY = ("127.0.0.1",)
DEFAULTS = Limits(drain=6.0, closing=0.5)
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Clock:
    """The gateway's clock, which stands still until a test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stopped(monkeypatch):
    """Stops the clock of a gateway."""

    def stop(gateway) -> Clock:
        clock = Clock()
        monkeypatch.setattr(gateway.floor, "clock", clock)
        monkeypatch.setattr(gateway.floor.pump.turns, "_clock", clock)
        return clock

    return stop


def from_address(address: str) -> dict[str, dict[str, str]]:
    return {"additional_headers": {"X-Forwarded-For": address}}


async def until_refused(guest: Guest, method: str, **params: str) -> Refusal:
    """Ask again and again; the refusal."""
    for _ in range(1000):
        try:
            await guest.ask(method, **params)
        except Refusal as refusal:
            return refusal
    raise AssertionError(f"{method} is never refused")


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


async def test_reopened_connections_get_no_more_pings_through(open_gateway, stopped) -> None:
    gateway = await open_gateway(limits=DEFAULTS)
    stopped(gateway)
    answered = [await pongs_to_a_flood(gateway.port) for _ in range(20)]
    # The first one's burst and patience, and of each later one the ping that closes it.
    assert sum(answered) <= DEFAULTS.burst + DEFAULTS.patience + 1 + 19


async def test_many_connections_share_the_budget_of_their_address(
    open_gateway, arrive, stopped
) -> None:
    limits = replace(DEFAULTS, address_burst=60.0)
    gateway = await open_gateway(limits=limits)
    stopped(gateway)
    guests = [await arrive(gateway) for _ in range(10)]
    asked = [guest.send("ping") for guest in guests for _ in range(10)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    assert len(answers) - len(refused) == 40, "60 without the ten handshakes, 2 each"
    for refusal in refused:
        assert refusal.reason == "rate_limited"
        assert refusal.error["data"]["temporary"] is True
        assert 1 <= refusal.error["data"]["retry_after_ms"] <= 1000


async def test_an_address_in_debt_is_refused_until_it_is_paid(
    open_gateway, arrive, stopped
) -> None:
    limits = replace(DEFAULTS, address_burst=20.0, address_rate=10.0, patience=30.0)
    gateway = await open_gateway(limits=limits)
    clock = stopped(gateway)
    guests = [await arrive(gateway) for _ in range(3)]
    for guest in guests:
        for _ in range(18):
            guest.send("ping")
    closed, _ = await asyncio.wait(
        [guest.closed for guest in guests], return_when="FIRST_COMPLETED"
    )
    assert {future.result() for future in closed} == {4529}
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway)
    answer = caught.value.response
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3")
    page = await get(gateway.port, "/")
    assert (page.status, page.headers["retry-after"]) == (503, "3")
    assert gateway.metrics.turned_away["rate"] == 2
    clock.now += 3.1
    assert (await get(gateway.port, "/")).status == 200
    await arrive(gateway)


async def test_a_player_brings_the_debt_to_another_address(open_gateway, arrive, stopped) -> None:
    gateway = await open_gateway(limits=DEFAULTS, trusted_proxies=PROXY)
    table = await seat_all(arrive, gateway, players=2)
    clock = stopped(gateway)
    clock.now = asyncio.get_running_loop().time()

    async def resumed(token: str, address: str) -> Guest:
        guest = await arrive(gateway, **from_address(address))
        await guest.ask("table.resume", table=table.id, token=token, after=0)
        return guest

    first = await resumed(table.tokens[0], "198.51.100.1")
    await until_refused(first, "ping")
    await first.leave()
    again = await resumed(table.tokens[0], "198.51.100.2")
    with pytest.raises(Refusal) as caught:
        await again.ask("ping")
    assert caught.value.reason == "rate_limited"
    other = await resumed(table.tokens[1], "198.51.100.3")
    await other.ask("ping")


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
def test_what_limits_count_an_address_by(address: str, network: str) -> None:
    assert client_network(address) == network


async def test_an_ipv6_client_is_its_64_bit_prefix(open_gateway, arrive) -> None:
    limits = replace(EAGER, connections_per_address=1)
    gateway = await open_gateway(limits=limits, trusted_proxies=PROXY)
    await arrive(gateway, **from_address("2001:db8::1"))
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway, **from_address("2001:db8::2:3:4"))
    assert caught.value.response.status_code == 503
    await arrive(gateway, **from_address("2001:db8:0:1::1"))


async def test_made_up_addresses_fill_no_memory(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(trusted_proxies=PROXY)
    monkeypatch.setattr(gateway.floor.budgets, "_bound", 8)
    monkeypatch.setattr(gateway.floor.budgets, "_forget_at", 8)
    for number in range(40):
        await get(gateway.port, "/nothing", X_Forwarded_For=f"2001:db8:{number:x}::1")
    assert len(gateway.floor.budgets) <= 8 + 2


async def test_tables_of_one_address_in_an_hour(open_gateway, arrive, stopped) -> None:
    gateway = await open_gateway(limits=replace(EAGER, tables_per_hour=3.0))
    clock = stopped(gateway)
    for _ in range(3):
        await (await arrive(gateway)).ask("table.open")
    guest = await arrive(gateway)
    with pytest.raises(Refusal) as caught:
        await guest.ask("table.open")
    assert caught.value.reason == "rate_limited"
    assert "opened as many tables" in str(caught.value)
    assert caught.value.error["data"]["retry_after_ms"] == 1_200_001
    clock.now += 1201
    await guest.ask("table.open")


async def test_bytes_written_are_charged_and_what_is_refused_is_not(
    open_gateway, arrive, stopped
) -> None:
    limits = replace(EAGER, address_bytes=1000.0, address_bytes_burst=30.0 * COMMIT)
    gateway = await open_gateway(limits=limits)
    clock = stopped(gateway)
    table = await seat_all(arrive, gateway, players=1)
    host, player = table.host, table.players[0]
    for _ in range(50):
        with pytest.raises(Refusal, match="No round"):
            await player.ask("deck.draw")
    await host.ask("round.open", entropy="house", deck={"decks": 19})
    await host.ask("deck.shuffle")
    for guest, method in ((host, "deck.shuffle"), (player, "deck.draw"), (host, "table.open")):
        with pytest.raises(Refusal, match="written to disk") as caught:
            await guest.ask(method)
        assert caught.value.reason == "rate_limited"
        assert caught.value.error["data"]["temporary"] is True
    await player.ask("table.state")
    clock.now += caught.value.error["data"]["retry_after_ms"] / 1000
    await player.ask("deck.draw")


async def test_a_download_is_charged_only_for_the_checkpoint_it_makes(
    open_gateway, arrive, stopped
) -> None:
    limits = replace(EAGER, address_bytes=1.0, address_bytes_burst=4.0 * COMMIT)
    gateway = await open_gateway(limits=limits)
    stopped(gateway)
    host = await arrive(gateway)
    table = (await host.ask("table.open"))["table"]
    path = f"/tables/{table}/bundle.jsonl"
    for _ in range(6):
        assert (await get(gateway.port, path)).status == 200
    for _ in range(2):
        await (await arrive(gateway)).ask("table.join", table=table, name="Ada")
    assert "written to disk" in str(await until_refused(host, "deck.cut", at=1, table=table))
    refused = await get(gateway.port, path)
    assert (refused.status, "written to disk" in refused.text) == (503, True)
    assert int(refused.headers["retry-after"]) > 1
