"""The targets of requests as people, programs and proxies write them (RFC 9112, section 3.2)."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from dealer.gateway.net.http import HttpExchange
from tests.gateway.conftest import serving
from tests.gateway.http_client import get
from tests.gateway.rpc_client import HANDSHAKE
from tests.gateway.tables import seat_and_shuffle
from tests.gateway.test_request_head import answer_to
from tests.service.bare_service import bare_service

ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("target", "host", "seen"),
    [
        ("/a//b?c//d", "here", ("/a/b?c//d", ["here"])),
        ("http://there:81/a?b", "here", ("/a?b", ["there:81"])),
        ("HTTPS://there", "here", ("/", ["there"])),
        ("http://there?a=/b", "here", ("/?a=/b", ["there"])),
        ("ws://[::1]:81/ws", "here", ("/ws", ["[::1]:81"])),
        ("http://user@there/a", "here", ("http:/user@there/a", ["here"])),
        ("ftp://there/a", "here", ("ftp:/there/a", ["here"])),
        ("*", "here", ("*", ["here"])),
        ("/%74ables/%30%41%7e%2d%5F%2E", "here", ("/tables/0A~-_.", ["here"])),
        ("/%2F%20%C3%BC?%41", "here", ("/%2F%20%C3%BC?%41", ["here"])),
        ("///a", "here", ("/a", ["here"])),
    ],
)
def test_a_target_has_one_form(target: str, host: str, seen: tuple[str, list[str]]) -> None:
    exchange = HttpExchange(100, "/")
    exchange.receive_head(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    request = exchange.request
    assert request is not None
    assert (request.path, request.headers.get_all("Host")) == seen


async def test_an_absolute_target_is_the_path_at_its_own_host(gateway) -> None:
    plain = await get(gateway.port, "/")
    for authority in ("127.0.0.1:8080", "localhost", f"127.0.0.1:{gateway.port}"):
        got = await get(gateway.port, f"http://{authority}/", host="ignored.example")
        assert (got.status, got.body) == (200, plain.body)
    refused = await get(gateway.port, "http://evil.example/", host="localhost")
    assert refused.status == 421
    assert (await answer_to(gateway.port, b"GET http://localhost/ HTTP/1.0\r\n\r\n")).status == 200
    twice = b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\nHost: a\r\n\r\n"
    assert (await answer_to(gateway.port, twice)).status == 400


async def test_every_port_and_interface_takes_an_absolute_target(open_gateway, tmp_path) -> None:
    gateway = await open_gateway(ops_port=0, path="/cards/")
    at = f"http://127.0.0.1:{gateway.port}"
    assert (await get(gateway.ops_port, "http://localhost/healthz")).status == 200
    for path in ("/cards/api/deck/new/", "//api//deck/new", "/api/deck/new/%20"):
        # Else a connection to a deck is kept for another request, for a minute.
        assert (await get(gateway.port, at + path, Connection="close")).status == 200
    handshake = HANDSHAKE.replace(b"GET /ws", f"GET {at}/cards/ws".encode(), 1)
    assert handshake != HANDSHAKE
    close = b"\x88\x80\0\0\0\0"
    assert (await answer_to(gateway.port, handshake + close)).status == 101


LEFT = [
    ".",
    ",",
    ")",
    ">",
    '"',
    "/",
    "%20",
    "%E2%80%8B",
    ");",
    "*",
    "_",
    "…",
    "%3E%2C",
    "/%20",
    "/.",
]
LEFT += [
    "'",
    "]",
    "!",
    "|",
    "%0A",
    "%C2%A0",
    "%20and%20more",
    "%E7%9A%84",
    "#invite=abc",
    "//",
    "%2F",
]


@pytest.mark.parametrize("left", [one for one in LEFT if one.isascii()])
@pytest.mark.parametrize(
    "what", ["", "/audit", "/broadcast", "/history", "/bundle.jsonl", "/history.txt"]
)
async def test_what_a_text_left_behind_an_address_leads_to_it(
    gateway, connect, left: str, what: str
) -> None:
    """Browsers keep the fragment of an address that redirects."""
    table = await seat_and_shuffle(connect, gateway, players=1)
    address = f"/tables/{table.id}{what}"
    for method in ("GET", "HEAD"):
        got = await get(gateway.port, f"{address}{left}?a=1", method=method)
        assert got.status == 308, left
        assert not got.headers["location"].startswith("/")
        # As the server reads the address: with one slash for several.
        at = f"http://cards.example/x{address}{left}".replace("//", "/").replace(":/", "://")
        assert urljoin(at, got.headers["location"]) == f"http://cards.example/x{address}?a=1"
    assert (await get(gateway.port, address)).status == 200


@pytest.mark.parametrize(
    "path", ["/audit.", "/finished)", "/%20", "/.", "/audit/", "/audit%E2%80%8B"]
)
async def test_other_pages_are_found_like_that_too(gateway, path: str) -> None:
    got = await get(gateway.port, path)
    assert got.status == 308
    again = urljoin(f"http://x{path}", got.headers["location"]).removeprefix("http://x")
    assert (await get(gateway.port, again)).status == 200


@pytest.mark.parametrize(
    "path",
    [
        f"/tables/{ID}x", f"/tables/{ID}0", f"/tables/{ID}/nosuch", f"/tables/{ID[1:]}.",
        f"/tables/{ID}", f"/table%C5%BF/{ID}.", "/.env", "/nowhere.", "/tables/.", "/web/.",
    ],
)  # fmt: skip
async def test_other_addresses_lead_nowhere(gateway, path: str) -> None:
    assert (await get(gateway.port, path)).status == 404


async def test_a_sockets_address_may_be_followed_by_something(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1)
    for left in (".", "%20", "/", "%E2%80%8B)"):
        client = await connect(gateway, path=f"/ws/{table.id}{left}")
        assert (await client.call("table.watch", table=table.id))["table"] == table.id


@pytest.mark.parametrize("target", ["/", "*", "/tables/x", "/ws", "/nowhere", "http://localhost/"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_options_are_said(gateway, target: str, version: str) -> None:
    """A load balancer asks for them to know whether the server is alive."""
    got = await get(gateway.port, target, method="OPTIONS", version=version)
    assert (got.status, got.body, got.headers["allow"]) == (204, b"", "GET, HEAD, OPTIONS")


async def test_options_are_said_without_a_host_and_of_every_kind(tmp_path) -> None:
    opening = bare_service(f"sqlite:///{tmp_path / 'dealer.db'}")
    async with serving(opening, ops_port=0) as gateway:
        for port in (gateway.port, gateway.ops_port):
            got = await answer_to(port, b"OPTIONS / HTTP/1.0\r\n\r\n")
            assert (got.status, got.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        for target, allowed in (
            ("/healthz", "GET, HEAD, OPTIONS"),
            ("/readyz", "GET, HEAD, OPTIONS"),
        ):
            got = await get(gateway.ops_port, target, method="OPTIONS")
            assert (got.status, got.headers["allow"]) == (204, allowed)
        got = await get(gateway.port, "/rpc", method="OPTIONS")
        assert (got.status, got.headers["allow"]) == (204, "POST, OPTIONS")
        got = await get(gateway.port, "/api/deck/new/", method="OPTIONS", Connection="close")
        assert got.status == 200
        assert "GET" in got.headers["access-control-allow-methods"]
        # A body is still refused, and another site's name.
        got = await get(gateway.port, "/", method="OPTIONS", Content_Length="2")
        assert got.status == 405
        assert (await get(gateway.port, "/", method="OPTIONS", host="evil.example")).status == 421
