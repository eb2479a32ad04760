"""Errors as pages for browsers; programs get the plain text."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from urllib.parse import urljoin, urlsplit

import pytest

from dealer.gateway.pages.appearance import Appearance
from dealer.gateway.rate_limit.budgets import ClientBudget
from tests.gateway.http_client import HttpResponse, get
from tests.gateway.tables import seat_and_shuffle

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
NOWHERE = f"/tables/{'0' * 32}"


def link_of(page: HttpResponse, path: str, name: str) -> str:
    """The path to which a link of a page at this path leads."""
    (address,) = re.findall(f'<a href="([^"]*)">{name}</a>', page.text)
    assert not address.startswith("/"), "a proxy may serve the server under a path"
    return urlsplit(urljoin(f"http://cards.example{path}", address)).path


def assert_page(page: HttpResponse, sentence: str) -> None:
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["content-length"] == str(len(page.body))
    assert sentence in page.text
    (style,) = re.findall("<style>(.*?)</style>", page.text, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert re.search('<a href="[^"]*">', page.text)


@pytest.mark.parametrize("path", ["/nowhere", NOWHERE, f"{NOWHERE}/bundle.jsonl", "/web/x"])
async def test_a_browser_gets_a_page_with_the_same_sentence(gateway, path) -> None:
    plain = await get(gateway.port, path)
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    page = await get(gateway.port, path, Accept=BROWSER)
    assert (page.status, plain.status) == (404, 404)
    assert_page(page, plain.text.strip())
    assert link_of(page, path, "All tables") == "/"


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "text/event-stream", "text/html;q=0", "text/plain"]
)
async def test_a_program_gets_the_same_bytes_as_before(gateway, accept) -> None:
    plain, given = (
        await get(gateway.port, "/nowhere"),
        await get(gateway.port, "/nowhere", Accept=accept),
    )
    assert (given.status, given.headers, given.body) == (404, plain.headers, plain.body)


async def test_head_and_other_methods_are_answered_as_before(gateway) -> None:
    for method in ("HEAD", "DELETE"):
        plain = await get(gateway.port, "/nowhere", method=method)
        given = await get(gateway.port, "/nowhere", method=method, Accept=BROWSER)
        assert (given.headers, given.body) == (plain.headers, plain.body)


async def test_a_wrong_host_name_leads_to_no_page_under_that_name(gateway) -> None:
    page = await get(gateway.port, "/", host="rebind.example", Accept=BROWSER)
    assert page.status == 421
    assert_page(page, "This server does not answer under the name")
    assert re.findall('href="([^"]*)"', page.text.split("<body>")[1]) == [""]


async def test_a_refusal_of_too_many_requests_is_a_page_that_can_be_tried_again(
    gateway, monkeypatch
) -> None:
    monkeypatch.setattr(ClientBudget, "blocked", lambda budget, now: 2.5)
    page = await get(gateway.port, "/?again", Accept=BROWSER)
    assert (page.status, page.headers["retry-after"], page.headers["refresh"]) == (503, "3", "3")
    assert_page(page, "Too many requests from your address")
    assert '<a href="">Try again</a>' in page.text


async def test_a_private_bundle_leads_to_the_audit_page_that_has_the_token(
    gateway, connect
) -> None:
    table = await seat_and_shuffle(connect, gateway, players=1, watch="nobody")
    page = await get(gateway.port, f"/tables/{table.id}/bundle.jsonl", Accept=BROWSER)
    assert (page.status, page.headers["www-authenticate"]) == (401, "Bearer")
    assert_page(page, "")
    name = "The audit page of this table"
    path = f"/tables/{table.id}/bundle.jsonl"
    assert link_of(page, path, name) == f"/tables/{table.id}/audit"


async def test_a_page_has_the_operators_title_colours_and_frames(open_gateway) -> None:
    appearance = Appearance("A & <b>", None, {"--felt": "#1d3b6a"})
    origin = "https://game.example.org"
    gateway = await open_gateway(appearance=appearance, frame_ancestors=(origin,))
    page = await get(gateway.port, "/nowhere", Accept=BROWSER)
    assert_page(page, "There is nothing at this address")
    assert "· A &amp; &lt;b&gt;</title>" in page.text
    assert "--felt: #1d3b6a;" in page.text
    assert f"frame-ancestors {origin}" in page.headers["content-security-policy"]


async def test_a_page_is_in_the_language_of_the_browser(gateway) -> None:
    plain = await get(gateway.port, "/nowhere")
    page = await get(gateway.port, "/nowhere", Accept=BROWSER, Accept_Language="de-AT, en;q=0.5")
    assert_page(page, "Hier gibt es nichts")
    assert '<html lang="de" dir="ltr">' in page.text
    assert f'lang="en" dir="ltr">{plain.text.strip()}</p>' in page.text
    assert page.headers["vary"] == "Accept, Accept-Language"
    arabic = await get(gateway.port, "/nowhere", Accept=BROWSER, Accept_Language="ar")
    assert '<html lang="ar" dir="rtl">' in arabic.text
