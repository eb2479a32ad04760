"""The pages in every language, by the browser's language and by the switch, on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from dealer.languages.language import Language, languages
from tests.browser.test_first_view import OVERFLOW

PHONE = {"width": 360, "height": 640}
TAGS = sorted(languages())
CUT = """() => [...document.querySelectorAll("button:not(.badge, .seat)")].filter((one) =>
  one.offsetParent !== null && (one.scrollWidth > one.clientWidth + 1 ||
    one.scrollHeight > one.clientHeight + 1)).map((one) => one.outerHTML.slice(0, 160))"""


async def assert_shown(page: Page, language: Language) -> None:
    """The page has the language and its direction, fits the screen, and no button is cut."""
    root = page.locator("html")
    await expect(root).to_have_attribute("lang", language.tag)
    await expect(root).to_have_attribute("dir", language.direction)
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= await page.evaluate("document.documentElement.clientWidth")
    assert await page.evaluate(OVERFLOW) == []
    assert await page.evaluate(CUT) == []


async def open_table(page: Page) -> None:
    await page.locator(".tile input").last.check()
    await page.locator("input[name=player]").fill("Ada")
    await page.locator("#lobby button.primary").click()
    await page.wait_for_url("**/tables/*")
    await page.locator("dialog").wait_for()
    await page.keyboard.press("Escape")
    await page.locator("#middle button.primary:visible").wait_for()


@pytest.mark.parametrize("tag", TAGS)
async def test_the_pages_follow_the_browser(open_page, axe, tag) -> None:
    language = languages()[tag]
    page = await open_page("/", size=PHONE, locale=f"{tag}-XX" if tag == "de" else tag)
    await expect(page.locator("h1")).to_have_text(language.message("lobby.headline"))
    await assert_shown(page, language)
    if tag in ("ar", "zh"):
        await axe(page)
    await open_table(page)
    await page.get_by_role("button", name=language.message("table.startFirst")).click()
    deal = page.locator(".tool[data-action=deal]")
    await expect(deal).to_contain_text(language.message("table.actions.deal"))
    await expect(deal).not_to_have_attribute("aria-disabled", "true")
    await deal.click()
    await expect(page.locator("#hand li")).to_have_count(1)
    await page.locator(".tool[data-action=draw]").click()
    await expect(page.locator("#hand li")).to_have_count(2)
    label = language.text("table.yourHand", cards=2)
    await expect(page.locator("#hand-title")).to_have_text(label)
    drawn = language.message("table.logLines.youDrew").partition("{")[0]
    await expect(page.locator("#log-panel")).to_contain_text(drawn)
    await assert_shown(page, language)
    if tag in ("ar", "zh"):
        await axe(page)

    await page.goto("/audit")
    await expect(page.locator("#open-title")).to_have_text(language.message("audit.open"))
    await assert_shown(page, language)
    if tag in ("ar", "zh"):
        await axe(page)


async def test_the_switch_changes_all_pages(open_page) -> None:
    page = await open_page("/", locale="en-GB")
    await page.locator("label.language select").select_option("de")
    german = languages()["de"]
    await expect(page.locator("h1")).to_have_text(german.message("lobby.headline"))
    await open_table(page)
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await page.goto("/audit")
    await expect(page.locator("#open-title")).to_have_text(german.message("audit.open"))
    await page.locator("label.language select").select_option("")
    await expect(page.locator("#open-title")).to_have_text("Was the game fair?")


async def test_an_unknown_language_is_english(open_page) -> None:
    page = await open_page("/", locale="sw")
    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await expect(page.locator("h1")).to_have_text("A card table that proves its shuffle")


async def test_a_page_in_one_file_has_every_language(open_page, server, tmp_path) -> None:
    page = await open_page("/audit", locale="en-GB")
    text = await page.evaluate("fetch('/audit.html').then((got) => got.text())")
    file = tmp_path / "audit.html"
    file.write_text(text, encoding="utf-8")
    for tag in ("en", "pl", "ar"):
        page = await open_page(file.as_uri(), locale=tag)
        language = languages()[tag]
        await expect(page.locator("#open-title")).to_have_text(language.message("audit.open"))
        await expect(page.locator("html")).to_have_attribute("dir", language.direction)
    await page.locator("label.language select").select_option("fr")
    await expect(page.locator("#open-title")).to_have_text(re.compile("La partie"))


async def test_a_page_of_an_error_is_in_the_language_of_the_browser(open_page) -> None:
    page = await open_page("/", locale="fr")
    page.errors.expect("404")
    await page.goto(f"/tables/{'0' * 32}")
    await expect(page.get_by_role("heading")).to_have_text("Il n’y a rien ici")
