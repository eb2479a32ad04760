"""What trusted proxies say of clients: addresses, which no client can choose, scheme and host."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus

from dealer.gateway.net.proxies import TrustedProxies
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.http_client import get
from tests.gateway.rpc_client import eventually

TRUSTED = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")


def headers_of(**lines: list[str]) -> Headers:
    """Headers with these lines; a `_` in a name is a `-`."""
    found = Headers()
    for name, values in lines.items():
        for value in values:
            found[name.replace("_", "-")] = value
    return found


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
        ("10.1.2.3", ["203.0.113.7:4711"], "203.0.113.7"),
        ("10.1.2.3", ["1.1.1.1, 203.0.113.7:4711, 10.0.0.8:80"], "203.0.113.7"),
        ("10.1.2.3", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.1.2.3", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.1.2.3", ["[::ffff:203.0.113.7]:80"], "203.0.113.7"),
        ("10.1.2.3", ['"[2001:db8::1]:443"'], "2001:db8::1"),
        ("10.1.2.3", ['"203.0.113.7", "10.0.0.8:1"'], "203.0.113.7"),
        ("10.1.2.3", ["203.0.113.7:_hidden"], "203.0.113.7"),
        ("10.1.2.3", ["203.0.113.7, , ", ""], "203.0.113.7"),
        ("10.1.2.3", ["203.0.113.7, unknown"], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.7, _gate, 10.0.0.8"], "10.0.0.8"),
        ("10.1.2.3", ["203.0.113.7:"], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.7:80:80"], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.7:443x"], "10.1.2.3"),
        ("10.1.2.3", ["[2001:db8::1"], "10.1.2.3"),
        ("10.1.2.3", [f"203.0.113.7{' ' * 5000}, 10.0.0.8"], "10.0.0.8"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_trusted_proxy(
    peer: str, forwarded: list[str], client: str
) -> None:
    headers = headers_of(X_Forwarded_For=forwarded)
    assert TrustedProxies(TRUSTED).seen(peer, headers).address == client


@pytest.mark.parametrize(
    ("forwarded", "client", "unread"),
    [
        (["for=203.0.113.7"], "203.0.113.7", None),
        (["For=203.0.113.7:4711;Proto=https"], "203.0.113.7", None),
        (['for="[2001:db8::1]:443"'], "2001:db8::1", None),
        (["for=[2001:db8::1]:443"], "2001:db8::1", None),
        (['for="203.0.113.7:4711"; by=10.0.0.9;'], "203.0.113.7", None),
        (["for=1.1.1.1, for=203.0.113.7;proto=https, for=10.0.0.8"], "203.0.113.7", None),
        (["for=1.1.1.1", "for=203.0.113.7", "for=10.0.0.8"], "203.0.113.7", None),
        (['host="a, for=1.1.1.1";for=203.0.113.7'], "203.0.113.7", None),
        (['for="1.1.1.1, for=203.0.113.7'], "203.0.113.7", None),
        (['for="\\203.0.113.7"'], "203.0.113.7", None),
        (["for=203.0.113.7, for=unknown"], "10.1.2.3", "unknown"),
        (["for=_SEVKISEK, for=10.0.0.8"], "10.0.0.8", "_SEVKISEK"),
        (["for=203.0.113.7, proto=https"], "10.1.2.3", "proto=https"),
        (["for=203.0.113.7, for"], "10.1.2.3", "for=203.0.113.7,for"),
        (["for = 203.0.113.7"], "10.1.2.3", "for = 203.0.113.7"),
        ([",".join(["for=10.0.0.1"] * 10_000)], "10.0.0.1", None),
        ([], "10.1.2.3", None),
    ],
)
def test_forwarded_names_the_client_as_well(
    forwarded: list[str], client: str, unread: str | None
) -> None:
    seen = TrustedProxies(TRUSTED).seen("10.1.2.3", headers_of(Forwarded=forwarded))
    assert (seen.address, seen.unread) == (client, unread)


def test_a_client_chooses_no_address_by_the_header_that_its_proxy_passes_on() -> None:
    """Most proxies set X-Forwarded-For and pass Forwarded on."""
    trusted = TrustedProxies(TRUSTED)
    for forged in ("for=6.6.6.6", "for=10.0.0.8", "for=unknown", "for=10.0.0.8, for=10.0.0.9", "?"):
        headers = headers_of(X_Forwarded_For=["198.51.100.1"], Forwarded=[forged])
        seen = trusted.seen("10.1.2.3", headers)
        assert (seen.address, seen.unread) == ("198.51.100.1", None), forged
    seen = trusted.seen("10.1.2.3", headers_of(X_Forwarded_For=["?"], Forwarded=["for=6.6.6.6"]))
    assert (seen.address, seen.unread) == ("10.1.2.3", "?")


HTTPS_OF_CLIENT = {"X_Forwarded_For": ["203.0.113.7, 10.0.0.8"]}
HTTP_AT_PROXY = {"X_Forwarded_For": ["10.0.0.9, 203.0.113.7"]}


@pytest.mark.parametrize(
    ("said", "scheme"),
    [
        ({}, "http"),
        ({"X_Forwarded_Proto": ["https"]}, "https"),
        ({"X_Forwarded_Proto": [" HTTPS "]}, "https"),
        ({"X_Forwarded_Proto": ["wss"]}, "https"),
        ({"X_Forwarded_Proto": ["ws"]}, "http"),
        ({"X_Forwarded_Proto": ["https,http"]}, "https"),
        ({"X_Forwarded_Proto": ["https", "http"]}, "https"),
        ({"X_Forwarded_Proto": ["javascript"]}, "http"),
        ({"X_Forwarded_Proto": ["javascript, https"]}, "https"),
        ({"X_Forwarded_Proto": ["https", "http"], **HTTPS_OF_CLIENT}, "https"),
        ({"X_Forwarded_Proto": ["http, https, http"], **HTTPS_OF_CLIENT}, "https"),
        ({"X_Forwarded_Proto": ["https, http"], **HTTP_AT_PROXY}, "http"),
        ({"X_Forwarded_Proto": ["https"], **HTTPS_OF_CLIENT}, "https"),
        ({"Forwarded": ["for=203.0.113.7;proto=HTTPS"]}, "https"),
        ({"Forwarded": ['for=203.0.113.7;proto="https", for=10.0.0.8;proto=http']}, "https"),
        ({"Forwarded": ["for=6.6.6.6;proto=https, for=203.0.113.7;proto=http"]}, "http"),
        ({"Forwarded": ["proto=https"]}, "https"),
        ({"Forwarded": ["for=203.0.113.7;proto=https"], "X_Forwarded_Proto": ["http"]}, "http"),
        ({"Forwarded": ["for=203.0.113.7;proto=ftp"]}, "http"),
    ],
)
def test_the_scheme_is_that_of_the_trusted_proxy_nearest_to_the_client(
    said: dict[str, list[str]], scheme: str
) -> None:
    headers = headers_of(Host=["inner:8080"], **said)
    assert TrustedProxies(TRUSTED).seen("10.1.2.3", headers).scheme == scheme
    assert TrustedProxies(TRUSTED).seen("203.0.113.5", headers).scheme == "http"


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ({}, "inner:8080"),
        ({"X_Forwarded_Host": ["cards.example.org"]}, "cards.example.org"),
        ({"X_Forwarded_Host": ["cards.example.org:8443, inner"]}, "cards.example.org:8443"),
        (
            {"X_Forwarded_Host": ["evil.example, cards.example.org, b"], **HTTPS_OF_CLIENT},
            "cards.example.org",
        ),
        ({"X_Forwarded_Host": ["evil.example, a.example"], **HTTP_AT_PROXY}, "a.example"),
        ({"Forwarded": ['for=203.0.113.7;host="cards.example.org:81"']}, "cards.example.org:81"),
        ({"Forwarded": ['for=203.0.113.7;host="[2001:db8::2]:81"']}, "[2001:db8::2]:81"),
        ({"X_Forwarded_Host": ["a/b@c"]}, "inner:8080"),
        ({"X_Forwarded_Host": ['a"onload="']}, "inner:8080"),
    ],
)
def test_the_host_is_that_of_the_trusted_proxy_nearest_to_the_client(
    said: dict[str, list[str]], host: str
) -> None:
    headers = headers_of(Host=["inner:8080"], **said)
    assert TrustedProxies(TRUSTED).seen("10.1.2.3", headers).host == host
    assert TrustedProxies(TRUSTED).seen("203.0.113.5", headers).host == "inner:8080"


async def test_an_address_that_cannot_be_read_is_logged_once(open_gateway, caplog) -> None:
    caplog.set_level(logging.WARNING, "dealer.gateway")
    gateway = await open_gateway(trusted_proxies=("127.0.0.1",))
    for member in ("unknown", "x" * 3000, "198.51.100.1"):
        assert (await get(gateway.port, "/", X_Forwarded_For=member)).status == 200
    (line,) = [record for record in caplog.records if "unreadable" in record.getMessage()]
    assert line.fields == {"counted": "127.0.0.1", "example": "unknown"}


async def test_clients_of_a_proxy_that_sends_ports_are_counted_one_by_one(
    open_gateway, connect
) -> None:
    limits = replace(TEST_LIMITS, connections_per_address=1)
    gateway = await open_gateway(limits=limits, trusted_proxies=("127.0.0.1",))
    for number in (1, 2, 3):
        forwarded = {"X-Forwarded-For": f"203.0.113.{number}:4711"}
        await connect(gateway, additional_headers=forwarded)
    for header in (
        {"X-Forwarded-For": "203.0.113.3:4712"}, {"Forwarded": 'for="203.0.113.3:4713"'},
    ):  # fmt: skip
        with pytest.raises(InvalidStatus):
            await connect(gateway, additional_headers=header)
    await connect(gateway, additional_headers={"Forwarded": "for=203.0.113.4"})


def test_without_trusted_proxies_the_header_is_ignored() -> None:
    headers = headers_of(X_Forwarded_For=["198.51.100.1"])
    assert TrustedProxies().seen("127.0.0.1", headers).address == "127.0.0.1"


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
