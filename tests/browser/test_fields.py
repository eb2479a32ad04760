"""Every field of every page and dialog has letters of 16 px: with smaller ones iOS zooms in.

The sizes do not depend on the language.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import PHONE
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import choose_game, own_cards, player

WEB = Path(__file__).parents[2] / "dealer" / "web"
LEAST_PX = 16
LANDSCAPE = {"width": PHONE["height"], "height": PHONE["width"]}

FIELDS = """() => [...document.querySelectorAll("input, select, textarea, [contenteditable]")].map(
  (one) => [one.id || one.name || one.ariaLabel || one.closest("label").textContent,
    parseFloat(getComputedStyle(one).fontSize)])"""

VISITED = {
    "lobby.js",
    "lobby/choices.js",
    "lobby/tiles.js",
    "language.js",
    "theme.js",
    "audit.html",
    "table/header.js",
    "table/join_form.js",
    "table/numbers.js",
    "table/questions.js",
    "table/seat_menu.js",
    "table/shortcuts.js",
}
"""The files that make fields."""


class Sizes:
    """The sizes of the fields that were seen, in CSS pixels."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}

    async def see(self, page: Page, *names: str) -> None:
        """All fields in a page, of which those with these names must be there."""
        found = dict(await page.evaluate(FIELDS))
        assert found.keys() >= set(names), found
        self.seen |= found


def sheet(page: Page, name: str | re.Pattern[str]):
    return page.get_by_role("dialog").get_by_role("button", name=name)


async def dismiss(page: Page) -> None:
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)


async def test_the_files_that_make_fields_are_known() -> None:
    made = re.compile(
        r"""element\(\s*["'](input|select|textarea)|<(input|select|textarea)\b|contenteditable""",
        re.I,
    )
    files = [path for kind in ("html", "js") for path in WEB.rglob(f"*.{kind}")]
    found = {str(path.relative_to(WEB)) for path in files if made.search(path.read_text("utf-8"))}
    assert found == VISITED


@pytest.mark.parametrize("size", [PHONE, LANDSCAPE], ids=["portrait", "landscape"])
async def test_no_field_has_smaller_letters(open_page, server, size) -> None:
    sizes = Sizes()
    own, _ = await prepared_table(server, ("Ada", "Bob"), deal=1)
    table = own.partition("#")[0]

    page = await open_page("/", size=size)
    await choose_game(page)
    await sizes.see(page, "player", "table", "seats", "deck", "listed")

    page = await open_page(f"{table}/audit", size=size)
    await expect(page.get_by_label(re.compile("^Colours"))).to_be_attached()
    await sizes.see(page, "file", "key", "notes", "round", "viewer", "scrub", "speed", "link")

    page = await open_page(table, size=size)
    await expect(page.get_by_role("button", name="Sit down")).to_be_visible()
    await sizes.see(page, "player", "seat", "invite")

    page = await open_page(own, size=size)
    await expect(own_cards(page)).to_have_count(1)
    await page.keyboard.press("z")
    await sheet(page, "Set a counter…").wait_for()
    await sizes.see(page)
    for beginning in ("Colours", "Language", "Four colours"):
        assert any(name.startswith(beginning) for name in sizes.seen)
    await sheet(page, "Set a counter…").click()
    await page.get_by_label("Counter, such as pot").wait_for()
    await sizes.see(page, "Value")
    await dismiss(page)

    await page.keyboard.press("?")
    await page.get_by_label("Use single keys").wait_for()
    await sizes.see(page)
    await dismiss(page)

    await player(page, "Bob").click()
    await sheet(page, "Score of Bob").click()
    await page.get_by_role("spinbutton").wait_for()
    await sizes.see(page, "Score of Bob")
    await dismiss(page)
    await player(page, "Bob").click()
    await sheet(page, "Remove Bob…").click()
    await page.get_by_label("Reason").wait_for()
    await sizes.see(page)
    await dismiss(page)

    await own_cards(page).first.click()
    await page.keyboard.press("Shift+P")
    await page.get_by_label("Name of a new pile").wait_for()
    await sizes.see(page, "pile", "down")

    assert {name: px for name, px in sizes.seen.items() if px < LEAST_PX} == {}
