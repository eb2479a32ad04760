"""Addresses of clients behind trusted proxies, which a client cannot choose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway.ws.client_ip import TrustedProxies
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually

TRUSTED = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.5", ["198.51.100.1"], "203.0.113.5"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1, 192.0.2.7"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1", "198.51.100.1", "10.9.9.9"], "198.51.100.1"),
        ("10.1.2.3", ["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
        ("10.1.2.3", ["1.1.1.1, nonsense"], "10.1.2.3"),
        ("10.1.2.3", ["1.1.1.1, nonsense, 10.0.0.8"], "10.0.0.8"),
        ("::ffff:10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("10.1.2.3", [",".join(["10.0.0.1"] * 10_000)], "10.0.0.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_the_client_is_the_last_address_that_is_no_trusted_proxy(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert TrustedProxies(TRUSTED).client_ip(peer, forwarded) == client


def test_without_trusted_proxies_the_header_is_ignored() -> None:
    assert TrustedProxies().client_ip("127.0.0.1", ["198.51.100.1"]) == "127.0.0.1"


@pytest.mark.parametrize("trusted", [(), ("127.0.0.0/8",)])
async def test_connections_are_limited_by_the_client_address(
    open_gateway, connect, trusted
) -> None:
    limits = replace(TEST_LIMITS, connections_per_address=1)
    gateway = await open_gateway(limits=limits, trusted_proxies=trusted)
    first = {"additional_headers": {"X-Forwarded-For": "198.51.100.1"}}
    other = {"additional_headers": {"X-Forwarded-For": "6.6.6.6, 198.51.100.2"}}
    await connect(gateway, **first)
    with pytest.raises(InvalidStatus):
        await connect(gateway, **first)
    if trusted:
        await connect(gateway, **other)
    else:
        with pytest.raises(InvalidStatus):
            await connect(gateway, **other)
    refused = 1 if trusted else 2
    assert gateway.metrics.refused == {"address": refused}


async def test_requests_for_pages_through_a_proxy_leave_no_connection_counted(
    open_gateway,
) -> None:
    gateway = await open_gateway(trusted_proxies=("127.0.0.1",))
    for number in range(3):
        await get(gateway.port, "/nothing", X_Forwarded_For=f"198.51.100.{number}")
    await eventually(lambda: not gateway.registry.connections)
    budgets = gateway.context.budgets._clients
    assert [one for one in budgets.values() if one.connections] == []
