"""Every state of the pages on a small phone, in languages with long words and one to the left.

Nothing is too wide or cut off, and axe finds no fault, nor too little contrast.
"""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from dealer.languages.language import Language, languages
from tests.browser.conftest import AxeCheck
from tests.browser.prepared_table import prepared_table
from tests.browser.test_languages import assert_shown
from tests.browser.test_large_text import wide

PHONE = {"width": 360, "height": 640}
TOUCH = {"size": PHONE, "has_touch": True, "is_mobile": True}

pytestmark = pytest.mark.reuse_pages


class Reader:
    """A page in a language, whose states are checked one after the other."""

    def __init__(self, page: Page, language: Language, axe: AxeCheck) -> None:
        self.page = page
        self.language = language
        self._axe = axe

    def says(self, key: str) -> str:
        return self.language.message(f"table.{key}")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    async def check(self) -> None:
        await assert_shown(self.page, self.language)
        await self.page.evaluate("() => new Promise(requestAnimationFrame)")  # the row is measured
        assert await wide(self.page) == []
        await self._axe(self.page)

    async def check_dialog(self, opening: Locator) -> None:
        """Check the state with the dialog that a button opens, and close it."""
        await opening.click()
        dialog = self.page.locator("dialog")
        await expect(dialog).to_be_visible()
        await self.check()
        assert await dialog.evaluate("(one) => one.scrollWidth - one.clientWidth") == 0
        await self.page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tag", ["de", "fr", "ar"])
async def test_no_state_cuts_words_or_lacks_contrast(server, open_page, axe, tag, theme) -> None:
    language = languages()[tag]
    options = {**TOUCH, "locale": tag, "color_scheme": theme}
    ada_path, _ = await prepared_table(server, ("Ada", "Maximiliane"), deal=5)
    table = ada_path.partition("#")[0]
    spectator = Reader(await open_page(table, **options), language, axe)
    await expect(spectator.page.locator("#join form")).to_be_visible()
    await spectator.check()

    reader = Reader(await open_page(ada_path, **options), language, axe)
    page = reader.page
    await expect(page.locator("#hand li")).to_have_count(5)
    await reader.check()
    await reader.check_dialog(reader.button(reader.says("menu")))
    await reader.check_dialog(reader.button(reader.says("invite")))
    await reader.check_dialog(reader.button(reader.says("actions.more")))
    await reader.check_dialog(reader.button(reader.says("notes.say")))
    await reader.check_dialog(page.locator(".badge"))
    await reader.check_dialog(page.locator("button.seat"))
    await page.get_by_role("button", name=reader.says("showLog"), exact=True).click()
    await reader.check()
    await page.get_by_role("button", name=reader.says("showLess"), exact=True).click()
    await page.locator("#hand li").nth(1).click()
    await expect(page.locator(".tool.primary")).to_be_visible()
    await reader.check()
    await reader.check_dialog(reader.button(reader.says("actions.more")))
    await page.locator(".tool.primary").click()
    await expect(page.locator("#hand li")).to_have_count(4)
    await reader.check()

    await page.keyboard.press("Shift+L")
    await page.locator("dialog").get_by_role("button").last.click()
    await expect(page.locator(".between .primary")).to_be_visible()
    await reader.check()

    for path, shown in (
        ("/", ".tile"), ("/finished", "#lobby h1"), (f"{table}/history", "#lobby h1"),
        (f"{table}/audit", "#verdict"),
    ):  # fmt: skip
        await page.goto(path)
        await expect(page.locator(shown).first).to_be_visible()
        await reader.check()
    page.errors.expect("404")  # type: ignore[attr-defined]
    await page.goto("/nowhere")
    await expect(page.locator("main")).to_contain_text(language.message("errorPages.titles.404"))
    await expect(page.locator("html")).to_have_attribute("lang", re.compile(f"^{tag}"))
    assert await wide(page) == []
    await axe(page)
