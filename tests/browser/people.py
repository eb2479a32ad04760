"""People with a browser each, for what several of them do together: `seated` step by step."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.seated import own_cards, own_hand, player, sit_down, told


class Person:
    """Somebody with a browser of their own; `page` is what they look at."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.name = name

    @property
    def watched(self) -> Any:
        """What their browser complained of."""
        return self.page.watched  # type: ignore[attr-defined]

    # Coming

    async def open_table(self) -> str:
        """From the lobby; gives the path of the table."""
        await self.page.get_by_label("Your name").fill(self.name)
        await self.button("Open a table").click()
        await self.page.wait_for_url(re.compile(r"/tables/[0-9a-f]{32}$"))
        await expect(self.hand).to_be_visible()
        return self.page.url[self.page.url.index("/tables/") :]

    async def sit_down(self) -> None:
        await sit_down(self.page, self.name)

    # Looking

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name, exact=isinstance(name, str))

    @property
    def hand(self) -> Locator:
        return own_hand(self.page)

    @property
    def cards(self) -> Locator:
        return own_cards(self.page)

    async def names(self) -> list[str]:
        """Of the cards of their hand, as they lie."""
        return [str(await card.get_attribute("aria-label")) for card in await self.cards.all()]

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log", name="What happened")

    @property
    def line(self) -> Locator:
        """What is said of the line to the house."""
        return self.page.locator("#line")

    def other(self, name: str) -> Locator:
        return player(self.page, name)

    async def sees(self, sentence: str | re.Pattern[str]) -> None:
        """Wait until the log tells it."""
        await told(self.page, sentence)

    async def holds(self, count: int) -> None:
        await expect(self.cards).to_have_count(count)

    async def trusts(self, checks: int = 7) -> None:
        """Wait until their own browser has checked all of it."""
        mark = self.button(re.compile(f"^✓ Checked by this browser: all {checks} hold"))
        await expect(mark).to_be_visible()

    # Doing

    async def do(self, action: str) -> None:
        button = self.button(action)
        await expect(button).to_be_enabled()
        await button.click()

    async def set_count(self, count: int) -> None:
        for _ in range(count - 1):
            await self.button("More cards").click()
        await expect(
            self.page.get_by_role("group", name=f"How many cards: {count}")
        ).to_be_visible()

    async def choose(self, place: int) -> str:
        """Tap the card at a place of one's hand; gives its name."""
        card = self.cards.nth(place)
        await card.click()
        await expect(card).to_have_attribute("aria-selected", "true")
        return str(await card.get_attribute("aria-label"))
