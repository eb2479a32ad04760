"""Guests behind a proxy are counted by their own addresses, and nobody makes theirs up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway.hops import Hops
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER
from tests.gateway.guest import eventually

TRUSTED = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "guest"),
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
def test_the_first_hop_from_the_right_that_is_no_proxy(
    peer: str, forwarded: list[str], guest: str
) -> None:
    assert Hops(TRUSTED).guest(peer, forwarded) == guest


def test_without_proxies_nothing_is_believed() -> None:
    assert Hops().guest("127.0.0.1", ["198.51.100.1"]) == "127.0.0.1"


@pytest.mark.parametrize("trusted", [(), ("127.0.0.0/8",)])
async def test_the_limit_of_an_address_is_the_guests(open_gateway, arrive, trusted) -> None:
    limits = replace(EAGER, connections_per_address=1)
    gateway = await open_gateway(limits=limits, trusted_proxies=trusted)
    first = {"additional_headers": {"X-Forwarded-For": "198.51.100.1"}}
    other = {"additional_headers": {"X-Forwarded-For": "6.6.6.6, 198.51.100.2"}}
    await arrive(gateway, **first)
    with pytest.raises(InvalidStatus):
        await arrive(gateway, **first)
    if trusted:
        await arrive(gateway, **other)
    else:
        with pytest.raises(InvalidStatus):
            await arrive(gateway, **other)
    refused = 1 if trusted else 2
    assert gateway.metrics.turned_away == {"address": refused}


async def test_a_page_behind_a_proxy_leaves_no_count_behind(open_gateway) -> None:
    gateway = await open_gateway(trusted_proxies=("127.0.0.1",))
    for number in range(3):
        await get(gateway.port, "/nothing", X_Forwarded_For=f"198.51.100.{number}")
    await eventually(lambda: not gateway.door.connections)
    budgets = gateway.floor.budgets._clients
    assert [one for one in budgets.values() if one.connections] == []
