"""The check of `Host` against DNS rebinding, which allows IP addresses."""

from __future__ import annotations

import pytest

from dealer.gateway.http.host_names import HostNames
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import refused_status

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
def test_which_names_are_allowed(host: str | None, allowed: bool) -> None:
    assert HostNames(NAMES).allows(host) is allowed
    assert HostNames((*NAMES, "*")).allows(host) is True


def test_names_without_a_dot_are_allowed_on_the_operators_port() -> None:
    assert HostNames(single_label=True).allows("dealer-1:9090")
    assert not HostNames(single_label=True).allows("rebind.example:9090")


async def test_requests_of_a_rebound_page_are_refused(open_gateway, connect) -> None:
    gateway = await open_gateway(ops_port=0)
    for path in ("/", "/client.js", "/openrpc.json"):
        refused = await get(gateway.port, path, host=f"rebind.example:{gateway.port}")
        assert refused.status == 421
        assert "--host-name" in refused.text
    # A browser sends the name in its address bar in both headers.
    rebound = f"rebind.example:{gateway.port}"
    assert await refused_status(connect(gateway, host=rebound, origin=f"http://{rebound}")) == 421
    assert gateway.metrics.refused == {"host": 4}
    refused = await get(gateway.ops_port, "/metrics", host="rebind.example:9090")
    assert refused.status == 421
    for host in ("dealer-1:9090", f"127.0.0.1:{gateway.ops_port}"):
        assert (await get(gateway.ops_port, "/healthz", host=host)).status == 200


async def test_names_in_the_settings_are_allowed(open_gateway, connect) -> None:
    gateway = await open_gateway(
        host_names=["cards.example.org"], origins=["https://other.example"], limits=TEST_LIMITS
    )
    for host in ("cards.example.org", "other.example", "192.168.1.20:8080"):
        assert (await get(gateway.port, "/", host=host)).status == 200
    await (
        await connect(gateway, host="cards.example.org", origin="http://cards.example.org")
    ).call("ping")


async def test_a_request_with_two_hosts_is_refused(gateway) -> None:
    got = await get(gateway.port, "/", Host="localhost")
    assert got.status == 400
