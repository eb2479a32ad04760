"""The `Host` check, which ends DNS rebinding; a LAN game by IP address goes on."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from dealer.gateway.host_names import HostNames
from tests.gateway.asking import get
from tests.gateway.conftest import EAGER

NAMES = ("cards.example.org", "*.games.example")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        (None, True),
        ("localhost", True),
        ("localhost:8080", True),
        ("LOCALHOST.:80", True),
        ("dealer.localhost:8080", True),
        ("127.0.0.1:8080", True),
        ("192.168.1.20:8080", True),
        ("[::1]:8080", True),
        ("[fd00::20]", True),
        ("cards.example.org", True),
        ("Cards.Example.Org:443", True),
        ("cards.example.org.", True),
        ("a.games.example", True),
        ("a.b.games.example", True),
        ("games.example", False),
        ("evilgames.example", False),
        ("rebind.example", False),
        ("rebind.example:8080", False),
        ("127.0.0.1.rebind.example", False),
        ("localhost.rebind.example", False),
        ("notlocalhost", False),
        ("dealer-1:9090", False),
        ("cards.example.org@rebind.example", False),
        ("", False),
        ("[", False),
        ("cards.example.org:8080:80", False),
    ],
)
def test_names(host: str | None, allowed: bool) -> None:
    assert HostNames(NAMES).allows(host) is allowed
    assert HostNames((*NAMES, "*")).allows(host) is True


def test_a_name_without_a_dot_is_for_machines_of_ones_own_network() -> None:
    assert HostNames(single_label=True).allows("dealer-1:9090")
    assert not HostNames(single_label=True).allows("rebind.example:9090")


async def test_a_page_that_was_rebound_gets_nothing(open_gateway, arrive) -> None:
    gateway = await open_gateway(ops_port=0)
    for path in ("/", "/client.js", "/openrpc.json"):
        refused = await get(gateway.port, path, host=f"rebind.example:{gateway.port}")
        assert refused.status == 421
        assert "--host-name" in refused.text
    # A browser names in both headers what its address bar shows.
    rebound = f"rebind.example:{gateway.port}"
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway, host=rebound, origin=f"http://{rebound}")
    assert caught.value.response.status_code == 421
    assert gateway.metrics.turned_away == {"host": 4}
    refused = await get(gateway.ops_port, "/metrics", host="rebind.example:9090")
    assert refused.status == 421
    for host in ("dealer-1:9090", f"127.0.0.1:{gateway.ops_port}"):
        assert (await get(gateway.ops_port, "/healthz", host=host)).status == 200


async def test_the_names_that_the_operator_gives(open_gateway, arrive) -> None:
    gateway = await open_gateway(
        host_names=["cards.example.org"], origins=["https://other.example"], limits=EAGER
    )
    for host in ("cards.example.org", "other.example", "192.168.1.20:8080"):
        assert (await get(gateway.port, "/", host=host)).status == 200
    await (await arrive(gateway, host="cards.example.org", origin="http://cards.example.org")).ask(
        "ping"
    )


async def test_a_request_with_two_hosts_is_refused(gateway) -> None:
    got = await get(gateway.port, "/", Host="localhost")
    assert got.status == 400
