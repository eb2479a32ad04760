"""What a page is about keeps its room: the name of the table, the felt, and the hand."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.browser.album import ENLARGE
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import close_round, own_cards
from tests.browser.test_large_text import DRAWN, hearts, phone
from tests.browser.test_ownership import TOUCH

pytestmark = pytest.mark.reuse_pages


async def test_large_letters_leave_the_name_of_the_table(open_page, server) -> None:
    page = await phone(open_page, await hearts(server), (360, 640), letters=200)
    name = page.get_by_role("heading", name="Friday")
    await expect(name).to_be_visible()
    shown = "(one) => one.scrollWidth <= one.clientWidth && one.clientWidth > 0"
    assert await name.evaluate(shown)


async def test_a_watcher_sees_three_quarters_of_the_table(open_page, server) -> None:
    path = (await hearts(server)).partition("#")[0]
    page = await open_page(path, **TOUCH)
    await expect(page.get_by_role("button", name="Sit down")).to_be_visible()
    await page.evaluate(DRAWN)
    height = await page.locator("#join").evaluate("(one) => one.getBoundingClientRect().height")
    assert height < 640 / 4


async def test_the_sheet_leaves_the_hand_on_its_side(open_page, server) -> None:
    path, _ = await prepared_table(server, ("Ada", "Bob"), deal=5)
    page = await open_page(path, size={"width": 844, "height": 390}, has_touch=True, is_mobile=True)
    await expect(own_cards(page)).to_have_count(5)
    await close_round(page)
    await expect(page.get_by_role("heading", name=re.compile("Round 1 is over"))).to_be_visible()
    await page.evaluate(DRAWN)
    for card in await own_cards(page).all():
        await expect(card).to_be_in_viewport(ratio=0.9)
    hit = """() => {
      const { left, top, width, height } =
        document.querySelector("#hand [data-slot]").getBoundingClientRect();
      const found = document.elementFromPoint(left + 8, top + height / 2);
      return found?.closest("#hand") !== null && width > 0;
    }"""
    assert await page.evaluate(hit)
    start = page.get_by_role("button", name=re.compile("next round|Deal again", re.IGNORECASE))
    await expect(start.first).to_be_in_viewport(ratio=0.9)


async def test_the_name_of_a_button_has_the_words_that_are_seen(open_page, server) -> None:
    """A person who speaks to a page says what they read, which initials and signs are not."""
    path, *_ = await prepared_table(server, ("Ada", "Bob", "Cleo"), deal=2)
    page = await open_page(path)
    await expect(own_cards(page)).to_have_count(2)
    await expect(page.locator(".seat .count").first).to_be_visible()
    results = await Axe().run(page, options={"runOnly": ["label-content-name-mismatch"]})
    assert results.violations_count == 0, results.generate_report()


async def test_the_toolbar_has_its_buttons_again_after_large_letters(open_page, server) -> None:
    path, *_ = await prepared_table(server, ("Ada", "Bob"), deal=2)
    page = await open_page(path, size={"width": 390, "height": 844})
    await expect(own_cards(page)).to_have_count(2)
    seen = page.locator("#tools .tool:visible")
    await page.evaluate(DRAWN)
    names = await seen.all_text_contents()
    for letters in (200, 100):
        await page.evaluate(ENLARGE, letters)
        fits = """() => {
          const { scrollWidth, clientWidth } = document.querySelector("#tools");
          return scrollWidth <= clientWidth + 1;
        }"""
        await page.wait_for_function(fits)
    await expect(seen).to_have_text(names)
