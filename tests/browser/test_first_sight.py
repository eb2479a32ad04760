"""What comes before anything is played: how much is sent, and whether it fits a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from tests.browser.conftest import PHONE
from tests.browser.people import Person

FIRST_PAINT = 100_000
"""Bytes in all, heads included, that a page may take before the table is seen."""
ROOM = 5_000
"""Bytes of these that are kept free, for what scripts grow by."""

OVERFLOW = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (box.width === 0 || getComputedStyle(one).visibility === "hidden") return false;
  for (let up = one.parentElement; up !== null; up = up.parentElement) {
    if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(up).overflowX)) return false;
  }
  return box.right > innerWidth + 1 || box.left < -1;
}).map((one) => one.outerHTML.slice(0, 120))"""


class Transferred:
    """Bytes that came over the network to a page, by address."""

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self._urls: dict[str, str] = {}

    async def watch(self, page: Page) -> None:
        session = await page.context.new_cdp_session(page)
        session.on("Network.responseReceived", self._begun)
        session.on("Network.loadingFinished", self._done)
        await session.send("Network.enable")

    def _begun(self, event: dict) -> None:
        self._urls[event["requestId"]] = event["response"]["url"]

    def _done(self, event: dict) -> None:
        self.bytes[self._urls[event["requestId"]]] = event["encodedDataLength"]


async def test_the_table_is_seen_after_less_than_100_kb(house, arrive) -> None:
    host = Person(await arrive("/"), "Ada")
    path = await host.open_table()
    page = await arrive("about:blank")
    seen = Transferred()
    await seen.watch(page)
    await page.goto(f"http://127.0.0.1:{house.port}{path}")
    await page.get_by_role("button", name="Sit down").wait_for()
    await page.wait_for_load_state("networkidle")
    assert any(url.endswith(".js") for url in seen.bytes)
    total = sum(seen.bytes.values())
    assert total < FIRST_PAINT - ROOM, f"{total} bytes: {seen.bytes}"

    # The second time, only the page itself is asked for again.
    seen.bytes.clear()
    await page.reload()
    await page.get_by_role("button", name="Sit down").wait_for()
    await page.wait_for_load_state("networkidle")
    assert sum(seen.bytes.values()) < 2_000, seen.bytes


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_a_narrow_phone(house, arrive, path) -> None:
    page = await arrive(path, size=PHONE)
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert await page.evaluate(OVERFLOW) == []


async def test_a_table_on_a_narrow_phone(house, arrive) -> None:
    """Ten players, and thirteen cards in the hand."""
    ada = Person(await arrive("/", size=PHONE), "Ada")
    page = ada.page
    await page.get_by_text("Choose deck, seats and rules").click()
    await page.get_by_label("Seats").fill("10")
    path = await ada.open_table()
    for number in range(2):
        await Person(await arrive(path, size=PHONE), f"A long name, number {number}").sit_down()
    await ada.do("Shuffle and start")
    await page.keyboard.press("9")
    await ada.do("Deal")
    await ada.holds(9)
    await page.keyboard.press("4")
    await ada.do("Draw")
    await ada.holds(13)
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    assert await page.evaluate(OVERFLOW) == []
    # Each card can be hit with a thumb: enough of it lies free.
    for card in await ada.cards.all():
        await card.click(trial=True)


async def test_who_wants_no_motion_gets_none(house, arrive) -> None:
    counts = {}
    for motion in ("reduce", "no-preference"):
        ada = Person(await arrive("/", reduced_motion=motion), "Ada")
        await ada.page.evaluate("window.flights = 0")
        await ada.open_table()
        await ada.page.evaluate(
            """() => {
              window.flights = 0;
              const animate = Element.prototype.animate;
              Element.prototype.animate = function (...given) {
                window.flights += 1;
                return animate.apply(this, given);
              };
            }"""
        )
        await ada.do("Shuffle and start")
        await ada.do("Deal")
        await ada.holds(1)
        counts[motion] = await ada.page.evaluate("window.flights")
    assert counts["reduce"] == 0
    assert counts["no-preference"] > 0
