"""Each page loads under its policy, without console errors, and is accessible."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import PHONE
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import choose_game, open_table

pytestmark = pytest.mark.reuse_pages

LIGHT, DARK = "rgb(245, 242, 234)", "rgb(21, 25, 21)"
"""The background of the pages."""


def is_module(route) -> bool:
    return not route.request.url.endswith("/early.js")


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_pages_load_without_console_errors(open_page, axe, path) -> None:
    page = await open_page(path)
    assert await page.title()
    await axe(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_of_an_error_is_accessible_and_leads_to_the_lobby(
    open_page, axe, scheme
) -> None:
    page = await open_page("/", size=PHONE, color_scheme=scheme)
    page.errors.expect("404")
    await page.goto("/nowhere")
    await expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    await axe(page)
    await page.get_by_role("link", name="All tables").click()
    await expect(page.get_by_role("radio", name="Any game")).to_be_visible()


@pytest.mark.reuse_pages(False)
async def test_a_chosen_theme_is_that_of_all_pages_before_they_are_painted(open_page, axe) -> None:
    page = await open_page("/", color_scheme="light")
    body = page.locator("body")
    await expect(body).to_have_css("background-color", LIGHT)
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("dark")
    await expect(body).to_have_css("background-color", DARK)
    await axe(page)
    # Without its modules a page has the theme, too: they would run after the first paint.

    async def only_early(route) -> None:
        await (route.abort() if is_module(route) else route.continue_())

    await page.route("**/*.js", only_early)
    page.errors.expect("ERR_FAILED")
    for path in ("/", "/audit"):
        await page.goto(path)
        await expect(body).to_have_css("background-color", DARK)
    await page.unroute("**/*.js")
    await page.goto("/audit")
    await axe(page)
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("system")
    await expect(body).to_have_css("background-color", LIGHT)
    await page.reload()
    await expect(body).to_have_css("background-color", LIGHT)
    await page.emulate_media(color_scheme="dark")
    await expect(body).to_have_css("background-color", DARK)


async def test_the_table_has_the_chosen_theme_and_the_choice(open_page, axe) -> None:
    page = await open_page("/", color_scheme="light")
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("dark")
    await open_table(page, "Ada")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("button", name="Menu").click()
    await axe(page)
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("light")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await axe(page)


@pytest.mark.reuse_pages(False)
async def test_a_page_without_storage_has_the_theme_until_it_is_left(open_page) -> None:
    page = await open_page("/")
    await page.add_init_script(
        "Object.defineProperty(globalThis, 'localStorage', { get() { throw new Error('denied') } })"
    )
    await page.reload()
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("dark")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


FILL = """
  let text = "x".repeat(1 << 20);
  for (let n = 0; text.length; n++) {
    try { localStorage.setItem(`full-${n}`, text); }
    catch { text = text.slice(text.length / 2 + 1); }
  }
"""


@pytest.mark.reuse_pages(False)
async def test_a_browser_without_room_says_why_no_seat_is_taken(open_page) -> None:
    """Without its tokens and random bytes on the disk the player would lose the seat."""
    page = await open_page("/")
    await page.evaluate(FILL)
    await choose_game(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_role("combobox", name=re.compile("^Colours")).select_option("dark")
    opening = page.get_by_role("button", name="Open a table")
    await opening.click()
    await expect(page.get_by_text("could not be stored")).to_be_visible()
    await expect(opening).to_be_enabled()
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.reuse_pages(False)
async def test_browsers_read_the_manifest_and_find_no_fault(open_page) -> None:
    page = await open_page("/")
    session = await page.context.new_cdp_session(page)
    found = await session.send("Page.getAppManifest")
    assert found["url"].endswith("/manifest.webmanifest")
    assert found["errors"] == []
    faults = await session.send("Page.getInstallabilityErrors")
    assert [one["errorId"] for one in faults["installabilityErrors"]] in ([], ["in-incognito"])


async def test_every_page_says_that_it_needs_javascript(open_page) -> None:
    """Only where there is none do browsers make elements of it."""
    page = await open_page("/")
    table = await PlayerPage(page, "Ada").open_table()
    for path in ("/", "/audit", table, f"{table}/audit"):
        await page.goto(path)
        assert "This page needs JavaScript" in (await page.locator("noscript").text_content() or "")
