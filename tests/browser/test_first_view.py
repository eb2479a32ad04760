"""The first view of the pages: bytes transferred, and whether they fit a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from tests.browser.conftest import PHONE
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import choose_game

pytestmark = pytest.mark.reuse_pages

BUDGET = 125 * 1024
"""Bytes, compressed and with headers, that a browser may load before it shows a table."""

LOBBY_BUDGET = 90 * 1024
"""The same of the lobby, before anything is chosen."""

OVERFLOW = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (box.width === 0 || getComputedStyle(one).visibility === "hidden") return false;
  for (let up = one.parentElement; up !== null; up = up.parentElement) {
    if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(up).overflowX)) return false;
  }
  return box.right > innerWidth + 1 || box.left < -1;
}).map((one) => one.outerHTML.slice(0, 120))"""


LOADED = """() => performance.getEntriesByType("resource").some(
  ({ name }) => name.endsWith("/table/card_animation.js"))"""
"""Whether the page has what animates cards."""


class Transferred:
    """Bytes that a page has loaded over the network, by address."""

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self._urls: dict[str, str] = {}

    async def watch(self, page: Page) -> None:
        session = await page.context.new_cdp_session(page)
        session.on("Network.responseReceived", self._on_response)
        session.on("Network.loadingFinished", self._on_finished)
        await session.send("Network.enable")

    def _on_response(self, event: dict) -> None:
        self._urls[event["requestId"]] = event["response"]["url"]

    def _on_finished(self, event: dict) -> None:
        self.bytes[self._urls[event["requestId"]]] = event["encodedDataLength"]


@pytest.mark.reuse_pages(False)
async def test_the_first_view_of_a_table_stays_within_the_budget(server, open_page) -> None:
    host = PlayerPage(await open_page("/"), "Ada")
    path = await host.open_table()
    page = await open_page("about:blank")
    loaded = Transferred()
    await loaded.watch(page)
    await page.goto(f"http://127.0.0.1:{server.port}{path}")
    await page.get_by_role("button", name="Sit down").wait_for()
    await page.wait_for_load_state("networkidle")
    assert any(url.endswith(".js") for url in loaded.bytes)
    total = sum(loaded.bytes.values())
    assert total < BUDGET, f"{total} bytes: {loaded.bytes}"

    # A reload requests only the page itself.
    loaded.bytes.clear()
    await page.reload()
    await page.get_by_role("button", name="Sit down").wait_for()
    await page.wait_for_load_state("networkidle")
    assert sum(loaded.bytes.values()) < 2_000, loaded.bytes


@pytest.mark.reuse_pages(False)
async def test_the_first_view_of_the_lobby_stays_within_the_budget(server, open_page) -> None:
    page = await open_page("about:blank")
    loaded = Transferred()
    await loaded.watch(page)
    await page.goto(f"http://127.0.0.1:{server.port}/")
    await page.get_by_role("radio", name="Hearts 3–6 players").wait_for()
    await page.wait_for_load_state("networkidle")
    assert any(url.endswith("games.json") for url in loaded.bytes)
    total = sum(loaded.bytes.values())
    assert total < LOBBY_BUDGET, f"{total} bytes: {loaded.bytes}"


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_pages_fit_a_narrow_phone(server, open_page, path) -> None:
    page = await open_page(path, size=PHONE)
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert await page.evaluate(OVERFLOW) == []


async def test_a_table_fits_a_narrow_phone(server, open_page) -> None:
    """Ten players, and thirteen cards in the hand."""
    ada = PlayerPage(await open_page("/", size=PHONE), "Ada")
    page = ada.page
    await choose_game(page)
    await page.get_by_text("Choose deck, seats and rules").click()
    await page.get_by_label("Seats").fill("10")
    path = await ada.open_table()
    for number in range(2):
        await PlayerPage(
            await open_page(path, size=PHONE), f"A long name, number {number}"
        ).sit_down()
    await ada.do("Shuffle and start")
    await page.keyboard.press("9")
    await ada.do("Deal")
    await ada.holds(9)
    await page.keyboard.press("4")
    await ada.do("Draw")
    await ada.holds(13)
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert await page.evaluate(OVERFLOW) == []
    # Each card can be tapped: enough of it is not covered.
    for card in await ada.cards.all():
        await card.click(trial=True)


async def test_reduced_motion_has_no_animations(server, open_page) -> None:
    counts = {}
    for motion in ("reduce", "no-preference"):
        ada = PlayerPage(await open_page("/", reduced_motion=motion), "Ada")
        await ada.page.evaluate("window.animations = 0")
        await ada.open_table()
        await ada.page.wait_for_function(LOADED)
        await ada.page.evaluate(
            """() => {
              window.animations = 0;
              const animate = Element.prototype.animate;
              Element.prototype.animate = function (...given) {
                window.animations += 1;
                return animate.apply(this, given);
              };
            }"""
        )
        await ada.do("Shuffle and start")
        await ada.do("Deal")
        await ada.holds(1)
        if motion == "no-preference":  # the cards fly from the next frame on
            await ada.page.wait_for_function("() => window.animations > 0")
        counts[motion] = await ada.page.evaluate("window.animations")
    assert counts["reduce"] == 0
    assert counts["no-preference"] > 0
