"""Addresses: which URLs and IP addresses requests are sent to."""

from __future__ import annotations

import asyncio

import pytest

from dealer.errors import ConfigurationError
from dealer.webhooks.addresses import AddressRefused, checked_addresses, is_public, parse_url
from dealer.webhooks.requests import HttpPoster, RequestFailed
from tests.webhooks.receiver import Receiver

PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"]
REFUSED = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "169.254.169.254", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
    "2001:db8::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110", "2002:a83f:8110::1",
    "192.0.0.192", "100.100.100.200", "161.26.0.10", "166.9.1.1", "192.88.99.1", "3fff::1",
    "fd20:ce::254", "fe80::1234:5678:9abc", "::ffff:0:168.63.129.16", "64:ff9b:1::7f00:1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", REFUSED)
async def test_other_addresses_are_refused(address: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC[0], address]

    assert not is_public(address)
    target = parse_url("https://shop.example.org/", allow_private=False)
    with pytest.raises(AddressRefused, match=r"shop\.example\.org") as raised:
        await checked_addresses(target, resolve, allow_private=False)
    assert str(raised.value).endswith(f": {address}.")
    found = await checked_addresses(target, resolve, allow_private=True)
    assert found == [PUBLIC[0], address]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "[::1]", "0"]
)
async def test_no_way_to_write_this_machine_gets_a_request(host: str) -> None:
    async with Receiver() as receiver:
        url = receiver.url.replace("127.0.0.1", host)
        target = parse_url(url, allow_private=True)
        poster = HttpPoster(target, allow_private=False)
        with pytest.raises((AddressRefused, RequestFailed)):
            await poster.post({}, b"")
        assert receiver.connections == 0


async def test_the_connection_goes_to_the_checked_address() -> None:
    """A second answer of the name server, which leads to this machine, is not asked for."""
    answers = [[PUBLIC[0]], ["127.0.0.1"]]
    connected: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async def open_connection(host: str, *_: object, **named: object) -> object:
        connected.append(host)
        assert named["server_hostname"] == "shop.example.org"
        raise ConnectionRefusedError

    target = parse_url("https://shop.example.org/", allow_private=False)
    poster = HttpPoster(target, allow_private=False, resolve=resolve)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(asyncio, "open_connection", open_connection)
        with pytest.raises(RequestFailed):
            await poster.post({}, b"")
    assert (connected, len(answers)) == ([PUBLIC[0]], 1)


def test_parts_of_a_url() -> None:
    target = parse_url("https://Shop.Example.org/a/b?c=d", allow_private=False)
    assert target == (True, "shop.example.org", 443, "/a/b?c=d")
    assert target.authority == "shop.example.org"
    target = parse_url("http://[2001:db8::1]:8080", allow_private=True)
    assert (target.path, target.authority) == ("/", "[2001:db8::1]:8080")


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example.org/", "ftp://shop.example.org/", "https:///x", "shop.example.org",
        "https://user@shop.example.org/", "https://shop.example.org/#x", "https://shop:x/",
        "https://shop.example.org/ HTTP/1.1\r\nX: y", "https://shop.example.org/" + "x" * 2048,
        "https://bü.example.org/ä", "https://[::1/",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_url(url, allow_private=False)
