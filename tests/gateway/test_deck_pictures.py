"""Pictures of the cards: each as SVG and as PNG, of one size, for pages of every origin."""

from __future__ import annotations

import struct
from xml.etree import ElementTree

import pytest

from dealer.gateway import Gateway
from dealer.gateway.decks.parameters import picture
from dealer.gateway.pages.static_files import StaticFiles
from tests.gateway.decks import ORDER, Decks, deck_server, decks
from tests.gateway.http_client import get

__all__ = ["deck_server", "decks"]


FILES = StaticFiles().files

WIDTH, HEIGHT = 226, 314
"""Pixels of a picture, as of the original's."""


def test_every_card_and_the_back_have_both_pictures() -> None:
    for name in [*ORDER, "X1", "X2", "back", "aceDiamonds"]:
        drawn, pixels = (FILES[picture(f"{name}{kind}")] for kind in (".svg", ".png"))
        root = ElementTree.fromstring(drawn.data)
        assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT))
        assert pixels.data.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", pixels.data[16:24]) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("10H.png", "0H.png"),
        ("0h.png", "0H.png"),
        ("TH.svg", "0H.svg"),
        ("10d.SVG", "0D.svg"),
        ("as.Png", "AS.png"),
        ("x1.svg", "X1.svg"),
        ("BACK.svg", "back.svg"),
        ("acediamonds.png", "AD.png"),
    ],
)
def test_a_picture_is_named_as_clients_write_it(file: str, name: str) -> None:
    found = picture(file)
    assert found in FILES
    assert found == picture(name)


def test_there_are_no_others() -> None:
    for file in (
        "AS.gif",
        "11.svg",
        "1S.png",
        "10.svg",
        "010S.png",
        "../AS.png",
        "AS",
        "",
        "AS.svg.png",
    ):
        assert picture(file) not in FILES


@pytest.mark.asyncio(loop_scope="session")
async def test_pictures_are_served(decks: Decks, deck_server: Gateway) -> None:
    answer = await decks.get("new/draw/")
    (card,) = answer["cards"]
    for kind, media in (("svg", "image/svg+xml"), ("png", "image/png")):
        sent = await decks.http.get(card["images"][kind])
        assert sent.status_code == 200
        assert sent.headers["content-type"] == media
        assert sent.headers["access-control-allow-origin"] == "*"
        assert sent.headers["cache-control"] == "public, max-age=86400"
        known = {"If-None-Match": sent.headers["etag"]}
        again = await decks.http.get(card["images"][kind], headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["access-control-allow-origin"] == "*"
    head = await get(deck_server.port, "/static/img/AS.png", method="HEAD", Connection="close")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["content-length"]) > 500
    # A request that is refused by its head is answered, too.
    elsewhere = {"host": "example.org", "Connection": "close"}
    head = await get(deck_server.port, "/static/img/AS.png", method="HEAD", **elsewhere)
    assert (head.status, head.body) == (421, b"")
    missing = await decks.http.get("/static/img/none.png")
    assert missing.status_code == 404
