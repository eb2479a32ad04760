"""The sheets of the table page: what is likeliest is in view, and what scrolls shows that."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.geometry import DRAWN, expect_seen
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import own_cards, place, player
from tests.browser.test_large_states import DESKTOP, LOW, SMALL, TABLET, shown
from tests.harness.server_process import ServerProcess

NAMES = ("Ada", "Bob", "Cleo", "Dan", "Eve")
SIZES = [SMALL, LOW, TABLET, DESKTOP]
MARK = """(shown) =>
  getComputedStyle(document.querySelector("dialog"), "::after").opacity === shown"""
"""Whether the opacity of the sign that a sheet has more below is this."""


async def dealt(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> Page:
    page = await shown(open_page, (await prepared_table(server, NAMES, deal=5))[0], size, letters)
    await expect(own_cards(page)).to_have_count(5)
    return page


def sheet(page: Page) -> Locator:
    return page.get_by_role("dialog")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", SIZES)
async def test_the_likeliest_choice_of_each_sheet_is_in_view(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    page = await dealt(open_page, server, size, letters)
    await own_cards(page).first.tap()
    await page.keyboard.press("p")
    await expect(own_cards(page)).to_have_count(4)
    for opened in (
        own_cards(page).first,
        place(page, "deck").locator(".stack"),
        place(page, "pile:table").get_by_role("button"),
        player(page, "Bob"),
    ):
        await opened.click(button="right")
        await expect_seen(page, "#dialog-title", "dialog .rows > [autofocus]")
        await page.keyboard.press("Escape")


@pytest.mark.parametrize("letters", [150, 200])
@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_the_answers_of_a_question_stay_in_view(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    page = await dealt(open_page, server, size, letters)
    await player(page, "Bob").tap()
    await sheet(page).get_by_role("button", name="Remove Bob…").tap()
    await expect(page.get_by_role("dialog", name="Remove Bob?")).to_be_visible()
    await expect_seen(page, "dialog .answers > *")


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_a_sheet_shows_that_it_has_more_until_its_end(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    page = await dealt(open_page, server, size, 150)
    await page.get_by_role("button", name="Menu").tap()
    menu = sheet(page)
    await expect(menu).to_have_attribute("data-more", "end")
    await page.wait_for_function(MARK, arg="1")  # it fades
    await menu.evaluate("(one) => one.scrollTo({ top: one.scrollHeight, behavior: 'instant' })")
    await expect(menu).to_have_attribute("data-more", "start")
    await page.wait_for_function(MARK, arg="0")
    await expect_seen(page, "dialog .groups section:last-child .rows > :last-child")


async def test_a_low_screen_has_the_rows_of_a_sheet_in_two_columns(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await dealt(open_page, server, LOW, 150)
    await own_cards(page).first.click(button="right")
    await expect_seen(page, "dialog .rows > *")
    await page.evaluate(DRAWN)
    assert await sheet(page).get_attribute("data-more") is None


async def test_what_is_possible_comes_first_among_the_other_actions(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await dealt(open_page, server, SMALL, 100)
    await page.get_by_role("button", name="More…").tap()
    disabled = (
        await sheet(page)
        .locator(".choices button")
        .evaluate_all("(all) => all.map((one) => one.ariaDisabled === 'true')")
    )
    assert disabled == sorted(disabled)
    assert disabled[-1]


async def test_a_pile_names_who_played_a_card_and_the_minute(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await dealt(open_page, server, SMALL, 100)
    await own_cards(page).first.tap()
    await page.keyboard.press("p")
    await place(page, "pile:table").get_by_role("button").click()
    played = sheet(page).locator(".spread li")
    await expect(played).to_have_text(re.compile(r"Ada, \d\d:\d\d$"))
