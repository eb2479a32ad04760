"""The screenshots of the README, taken at a real table.

With `DEALER_PICTURES=tests/browser/pictures` they replace those of the README.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import PHONE
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import close_round

NAMED = re.compile(r"tests/browser/pictures/([a-z-]+\.png)")
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def album(tmp_path: Path) -> Path:
    return Path(os.environ.get("DEALER_PICTURES", tmp_path))


async def take(page: Page, album: Path, name: str) -> None:
    await page.mouse.move(0, 0)
    taken = await page.screenshot(path=album / f"{name}.png", animations="disabled")
    assert len(taken) > 10_000, "the picture is nearly empty"


async def test_the_pictures_of_the_readme_are_taken(server, open_page, album) -> None:
    ada = PlayerPage(await open_page("/"), "Ada")
    path = await ada.open_table()
    bob, cleo, dan = players = [
        PlayerPage(await open_page(path, size=PHONE if name == "Bob" else None), name)
        for name in ("Bob", "Cleo", "Dan")
    ]
    for one in players:
        await one.sit_down()
    await ada.do("Shuffle and start")
    await ada.expect_log(re.compile("Shuffled 52 cards"))
    await ada.page.keyboard.press("7")
    await ada.do("Deal")
    await ada.holds(7)
    await bob.holds(7)
    await ada.do("Suit")
    await bob.do("Rank")
    for one in (ada, cleo, dan):
        await one.choose(3)
        await one.do("Play")
    await bob.choose(1)
    await bob.do("Discard")
    await ada.expect_log("Bob discarded 1 card.")
    await ada.expect_checks()
    await bob.expect_checks()
    await ada.choose(2)
    await take(ada.page, album, "table")
    await take(bob.page, album, "phone")

    await close_round(ada.page)
    await ada.page.get_by_role("link", name="Check the shuffle").click()
    await expect(ada.page.get_by_text("All 7 checks passed")).to_be_visible()
    timeline = ada.page.get_by_role("slider", name="Event")
    await timeline.focus()
    await ada.page.keyboard.press("Home")  # it starts after the shuffle
    for _ in range(3):
        await ada.page.keyboard.press("PageDown")
    await expect(ada.page.get_by_text(re.compile("^Swap "))).to_be_visible()
    await ada.page.locator("#replay").evaluate("(one) => one.scrollIntoView()")
    await take(ada.page, album, "audit")
    assert set(NAMED.findall(README.read_text())) == {"table.png", "phone.png", "audit.png"}
