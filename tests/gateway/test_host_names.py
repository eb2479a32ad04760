"""The check of `Host` against DNS rebinding, which allows IP addresses, and that of origins."""

from __future__ import annotations

import logging

import pytest

from dealer.gateway.net import host_names
from dealer.gateway.net.host_names import HostNames, is_own
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import refused_status

NAMES = ("cards.example.org", "*.games.example", "KÄSE.example", "xn--strae-oqa.example")


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
        ("käse.example", True),
        ("xn--kse-qla.example:443", True),
        ("XN--KSE-QLA.example.", True),
        ("ks.example", False),
        ("straße.example", True),
        ("strasse.example", False),
        ("[0:0:0:0:0:0:0:1]:80", True),
    ],
)
def test_which_names_are_allowed(host: str | None, allowed: bool) -> None:
    assert HostNames(NAMES).allows(host) is allowed
    assert HostNames((*NAMES, "*")).allows(host) is True


SAME = [
    ("https://x.example", "x.example:443"),
    ("https://x.example:443", "x.example"),
    ("http://x.example", "X.Example:80"),
    ("HTTP://x.example:80", "x.example"),
    ("https://x.example.", "x.example"),
    ("https://x.example", "x.example.:443"),
    ("https://x.example:8443", "x.example:8443"),
    ("https://xn--kse-qla.example", "xn--kse-qla.example"),
    ("https://käse.example", "xn--kse-qla.example"),
    ("https://[2001:db8::1]", "[2001:0db8:0::1]:443"),
    ("https://x.example", "x.example:"),
]
OTHER = [
    ("http://x.example", "x.example:443"),
    ("https://x.example", "x.example:80"),
    ("https://x.example:8443", "x.example"),
    ("https://x.example", "y.x.example"),
    ("https://x.example:0", "x.example"),
    ("https://x.example@evil.example", "evil.example"),
    ("https://x.example/", "x.example"),
    ("chrome-extension://x.example", "x.example"),
    ("x.example", "x.example"),
    ("null", "null"),
    ("", ""),
]


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [*((*pair, True) for pair in SAME), *((*pair, False) for pair in OTHER)],
)
def test_an_origin_is_compared_without_its_default_port_and_last_dot(
    origin: str, host: str, same: bool
) -> None:
    assert is_own(origin, host) is same


async def test_a_default_port_is_no_port_in_any_place(open_gateway, connect) -> None:
    names, origins = ["cards.example.org"], ["https://Other.example:443", "http://käse.example."]
    gateway = await open_gateway(ops_port=0, host_names=names, origins=origins)
    for host, origin in (
        ("cards.example.org:443", "https://cards.example.org"),
        ("cards.example.org", "https://cards.example.org:443"),
        ("Cards.Example.org.:80", "http://cards.example.org"),
        ("cards.example.org", "https://other.example"),
        ("cards.example.org", "http://xn--kse-qla.example:80"),
    ):
        await (await connect(gateway, host=host, origin=origin)).call("ping")
    refused = connect(gateway, host="cards.example.org:443", origin="http://cards.example.org")
    assert await refused_status(refused) == 403
    same = {"host": "localhost:80", "Origin": "http://localhost"}
    assert (await get(gateway.ops_port, "/healthz", **same)).status == 200
    other = {"host": "localhost:80", "Origin": "https://localhost"}
    assert (await get(gateway.ops_port, "/healthz", **other)).status == 403


async def test_decks_at_a_private_address_compare_origins_in_the_same_way(open_gateway) -> None:
    gateway = await open_gateway(origins=["https://other.example"])
    for origin, host, status in (
        ("https://other.example:443", "192.168.1.5", 200),
        ("http://192.168.1.5:80", "192.168.1.5", 200),
        ("http://else.example", "localhost.", 403),
        ("http://else.example", "printer.localhost.:80", 403),
        ("https://other.example:8443", "192.168.1.5", 403),
    ):
        path, more = "/api/deck/new/", {"Origin": origin, "Connection": "close"}
        assert (await get(gateway.port, path, host=host, **more)).status == status, (origin, host)


async def test_a_refused_origin_is_logged_once_with_the_flag_that_allows_it(
    open_gateway, connect, caplog
) -> None:
    caplog.set_level(logging.INFO, "dealer.gateway")
    gateway = await open_gateway()
    refused = (
        "nonsense",
        "null",
        "https://Game.example:443",
        "https://game.example",
        "https://a.b",
    )
    for origin in refused:
        assert await refused_status(connect(gateway, origin=origin)) == 403
    lines = [record.fields for record in caplog.records if record.message == "origin refused"]
    flags = [line["allowed_by"] for line in lines]
    assert flags == ["--origin https://game.example"]
    named = await open_gateway(origins=[flag.split(" ")[1] for flag in flags])
    await (await connect(named, origin="https://game.example")).call("ping")


async def test_the_host_that_a_trusted_proxy_reports_is_as_good_as_host(
    open_gateway, connect
) -> None:
    names = {"host_names": ["cards.example.org"]}
    gateway = await open_gateway(trusted_proxies=["127.0.0.1"], **names)
    page = {"origin": "https://cards.example.org"}
    for header in (
        {"X-Forwarded-Host": "cards.example.org:443"}, {"Forwarded": "host=cards.example.org"},
    ):  # fmt: skip
        await (await connect(gateway, additional_headers=header, **page)).call("ping")
        untrusted = await open_gateway(**names)
        assert await refused_status(connect(untrusted, additional_headers=header, **page)) == 403
    # A proxy that serves every name may be reached under one that another site has resolved to it.
    rebound = {"X-Forwarded-Host": "rebind.example"}
    page = {"origin": "http://rebind.example"}
    assert await refused_status(connect(gateway, additional_headers=rebound, **page)) == 403


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


def test_a_name_that_is_no_name_of_the_dns_is_not_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    converted: list[str] = []

    def convert(label: str) -> str:
        converted.append(label)
        return label

    monkeypatch.setattr(host_names, "_ascii_label", convert)
    for name in ("é" * 254, "é" * 64 + ".example", "\ufdfa" * 40, f"{'é' * 40}.{'é' * 5000}"):
        host_names.ascii_name(name)
    assert converted == []
    host_names.ascii_name("é" * 63)
    assert len(converted) == 1
