"""Pages in frames of other origins, and the operator's title, logo and colours."""

from __future__ import annotations

import re

import pytest

from dealer.gateway.pages.appearance import Appearance
from tests.gateway.http_client import get
from tests.gateway.tables import seat_players

GAME = "https://game.example.org"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


def ancestors(headers) -> str:
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    return policy["frame-ancestors"]


@pytest.mark.parametrize("origins", [(), (GAME, "http://localhost:3000")])
async def test_pages_may_be_framed_by_the_listed_origins_only(
    open_gateway, connect, origins
) -> None:
    gateway = await open_gateway(frame_ancestors=origins)
    table = await seat_players(connect, gateway, players=1)
    of_table = f"/tables/{table.id}"
    for path in ("/", "/audit", "/audit.html", of_table, f"{of_table}/audit"):
        page = await get(gateway.port, path)
        assert ancestors(page.headers) == (" ".join(origins) or "'none'")
        assert "x-frame-options" not in page.headers
        again = await get(gateway.port, path, If_None_Match=page.headers["etag"])
        assert again.status == 304
        # A browser takes the headers of the 304, also when the operator has changed the list.
        assert ancestors(again.headers) == ancestors(page.headers)


@pytest.mark.parametrize("what", ["", "/audit", "/broadcast", "/history"])
async def test_a_messenger_has_something_to_show_of_a_table(
    open_gateway, connect, what: str
) -> None:
    """Without the names of players and of the table."""
    gateway = await open_gateway(appearance=Appearance("A & <b>"))
    table = await seat_players(connect, gateway, players=2, name="Friday")
    for path in (f"/tables/{table.id}{what}", "/", "/finished", "/audit"):
        page = await get(gateway.port, path)
        tags = dict(re.findall('<meta (?:name|property)="([a-z:]+)" content="([^"]*)">', page.text))
        assert tags["og:title"].startswith("A &amp; &lt;b&gt; · ")
        assert tags["og:description"] == tags["description"]
        assert len(tags["description"]) > 30
        assert "Friday" not in page.text


async def test_a_title_and_a_logo_are_in_every_page(open_gateway) -> None:
    appearance = Appearance("A & <b>", (".svg", SVG), {"--felt": "#1d3b6a"})
    gateway = await open_gateway(appearance=appearance)
    page = (await get(gateway.port, "/")).text
    assert "<title>A &amp; &lt;b&gt;</title>" in page
    assert '<meta name="application-name" content="A &amp; &lt;b&gt;">' in page
    (logo,) = set(re.findall(r'"\.(/web/\w+/appearance/logo\.svg)"', page))
    got = await get(gateway.port, logo)
    assert (got.body, got.headers["content-type"]) == (SVG, "image/svg+xml")
    (theme,) = re.findall(r'"stylesheet" href="\.(/web/\w+/appearance/theme\.css)">', page)
    assert page.index(theme) > page.index("lobby.css")  # the later one wins
    got = await get(gateway.port, theme)
    assert got.text == ":root{--felt:#1d3b6a}"
    assert got.headers["content-type"] == "text/css; charset=utf-8"
    assert got.headers["cache-control"].endswith("immutable")


async def test_another_appearance_has_other_addresses(open_gateway) -> None:
    found = set()
    for colour in ("#1d3b6a", "#3b1d6a"):
        gateway = await open_gateway(appearance=Appearance(properties={"--felt": colour}))
        page = (await get(gateway.port, "/")).text
        found |= set(re.findall(r"/web/(\w+)/base\.css", page))
    assert len(found) == 2


async def test_without_an_appearance_the_pages_are_as_they_are(gateway) -> None:
    page = (await get(gateway.port, "/")).text
    assert "appearance" not in page
    assert "<title>dealer</title>" in page
    assert "application-name" not in page
