"""A server under a path of a proxy, which passes the path on or not."""

from __future__ import annotations

import json
import re
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from dealer.cli.commands.verify import socket_address, web_address
from dealer.config.settings import Settings
from dealer.errors import ConfigurationError
from tests.gateway.http_client import get
from tests.gateway.tables import seat_and_shuffle

PATH = "/cards/"
BROWSER = "text/html"
ADDRESSES = re.compile(r'(?:href|src|content)="([^"]*)"')


@pytest.fixture(params=["", "/cards"], ids=["stripped", "passed on"])
def passed(request: pytest.FixtureRequest) -> str:
    """What the proxy leaves of the path in requests."""
    return str(request.param)


@pytest.mark.parametrize("where", ["", "audit", "tables/{}", "tables/{}/audit"])
async def test_every_address_in_a_page_is_below_the_path(
    open_gateway, connect, passed, where
) -> None:
    gateway = await open_gateway(path=PATH)
    table = await seat_and_shuffle(connect, gateway, players=1)
    where = where.format(table.id)
    page = await get(gateway.port, f"{passed}/{where}")
    assert page.status == 200
    found = [one for one in ADDRESSES.findall(page.text) if "/" in one]
    assert len(found) > 4
    for address in found:
        path = urlsplit(urljoin(f"https://example.org{PATH}{where}", address)).path
        assert path.startswith(PATH), address
        got = await get(gateway.port, passed + path.removeprefix("/cards"))
        assert got.status == 200, address


async def test_the_path_without_its_last_slash_leads_to_the_lobby(open_gateway) -> None:
    gateway = await open_gateway(path=PATH)
    got = await get(gateway.port, "/cards?a")
    assert (got.status, got.headers["location"]) == (308, f"{PATH}?a")
    assert (await get(gateway.port, "/cardsharp")).status == 404


async def test_sockets_calls_and_downloads_are_below_the_path(
    open_gateway, connect, passed
) -> None:
    gateway = await open_gateway(path=PATH)
    table = await seat_and_shuffle(connect, gateway, players=1)
    for where in (f"/ws/{table.id}", "/ws"):
        client = await connect(gateway, path=passed + where)
        assert (await client.call("table.watch", table=table.id))["table"] == table.id
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}{passed}") as http:
        call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for _ in range(2):  # on one connection
            assert "result" in (await http.post("/rpc", json=call)).json()
        for path in ("bundle.jsonl", "history.txt"):
            assert (await http.get(f"/tables/{table.id}/{path}")).status_code == 200
        drawn = (await http.get("/api/deck/new/draw/")).json()
        base = f"http://127.0.0.1:{gateway.port}"
        for address in (drawn["proof"], drawn["proof_bundle"], drawn["cards"][0]["image"]):
            assert address.startswith(f"{base}{PATH}")
            address = address.replace(f"{base}/cards", f"{base}{passed}")
            assert (await http.get(address)).status_code == 200


async def test_documents_and_errors_name_the_path(open_gateway, connect, passed) -> None:
    gateway = await open_gateway(path=PATH)
    servers = json.loads((await get(gateway.port, f"{passed}/openrpc.json")).body)["servers"]
    urls = [server["url"].partition("{host}")[2] for server in servers]
    assert set(urls) == {"/cards/ws", "/cards/rpc"}
    servers = json.loads((await get(gateway.port, f"{passed}/asyncapi.json")).body)["servers"]
    assert {server["pathname"] for server in servers.values()} == {"/cards"}
    page = await get(gateway.port, f"{passed}/no/such", Accept=BROWSER)
    (lobby,) = re.findall('<a href="([^"]*)">All tables', page.text)
    assert urljoin(f"http://example.org{PATH}no/such", lobby) == f"http://example.org{PATH}"
    assert "or start from the list of all tables.</p>" in page.text


async def test_without_the_setting_a_proxy_may_strip_any_path(open_gateway) -> None:
    gateway = await open_gateway()
    assert (await get(gateway.port, "/cards/")).status == 404
    manifest = json.loads((await get(gateway.port, "/manifest.webmanifest")).body)
    at = "https://example.org/any/where/manifest.webmanifest"
    for address in (manifest["start_url"], manifest["scope"]):
        assert urljoin(at, address) == "https://example.org/any/where/"


@pytest.mark.parametrize("path", ["/", "/cards/", "/a/b-c/_~.1/", "/play/api/"])
def test_a_path_has_a_slash_at_both_ends(path: str) -> None:
    assert Settings(path=path).path == path


@pytest.mark.parametrize(
    "path",
    ["", "cards", "/cards", "cards/", "//", "/a//b/", "/../", "/a/./", "/a b/", "/ä/", "/a?/"],
)
def test_another_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--path must be a path like /cards/"):
        Settings(path=path)


@pytest.mark.parametrize("path", ["/tables/", "/api/cards/", "/ws/"])
def test_a_path_is_no_address_of_the_server_itself(path: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--path must not begin with"):
        Settings(path=path)


@pytest.mark.parametrize(
    ("given", "pages"),
    [
        ("example.org/cards/", "http://example.org/cards"),
        ("https://example.org/cards", "https://example.org/cards"),
        ("wss://example.org/cards/ws", "https://example.org/cards"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/ws", "http://127.0.0.1:8080"),
        ("ws://127.0.0.1:8080/", "http://127.0.0.1:8080"),
    ],
)
def test_an_address_that_a_command_is_given_may_have_a_path(given: str, pages: str) -> None:
    assert web_address(given) == pages
    assert socket_address(given) == f"{pages}/ws".replace("http", "ws", 1)
