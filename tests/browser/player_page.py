"""Page object of a player: one browser page, and the actions and expectations of its player."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.table_page import (
    choose_game,
    close_invitation,
    expect_log,
    own_cards,
    own_hand,
    player,
    sit_down,
)


class PlayerPage:
    """A player with a browser context of their own."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.name = name

    @property
    def errors(self) -> Any:
        """The console messages and errors of the browser."""
        return self.page.errors  # type: ignore[attr-defined]

    # Joining

    async def open_table(self) -> str:
        """Open a table in the lobby; returns the path of the table."""
        await choose_game(self.page)
        await self.page.get_by_label("Your name").fill(self.name)
        await self.button("Open a table").click()
        await self.page.wait_for_url(re.compile(r"/tables/[0-9a-f]{32}$"))
        await close_invitation(self.page)
        await expect(self.hand).to_be_visible()
        return self.page.url[self.page.url.index("/tables/") :]

    async def sit_down(self) -> None:
        await sit_down(self.page, self.name)

    # Reading

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name, exact=isinstance(name, str))

    @property
    def hand(self) -> Locator:
        return own_hand(self.page)

    @property
    def cards(self) -> Locator:
        return own_cards(self.page)

    async def names(self) -> list[str]:
        """The names of the cards of the hand, from left to right."""
        return [str(await card.get_attribute("aria-label")) for card in await self.cards.all()]

    @property
    def log(self) -> Locator:
        return self.page.get_by_role("log", name="What happened")

    @property
    def banner(self) -> Locator:
        """The banner about the connection."""
        return self.page.locator("#connection")

    def other(self, name: str) -> Locator:
        return player(self.page, name)

    async def expect_log(self, sentence: str | re.Pattern[str]) -> None:
        """Wait until the log has this sentence."""
        await expect_log(self.page, sentence)

    async def holds(self, count: int) -> None:
        await expect(self.cards).to_have_count(count)

    async def expect_checks(self, checks: int = 7) -> None:
        """Wait until this many checks of the browser have passed."""
        mark = self.button(re.compile(f"^Fair ✓ .* all {checks} checks passed"))
        await expect(mark).to_be_visible()

    # Acting

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
        """Select the card at an index of the hand; returns its name."""
        card = self.cards.nth(place)
        await card.click()
        await expect(card).to_have_attribute("aria-selected", "true")
        return str(await card.get_attribute("aria-label"))


TwoPlayers = tuple[PlayerPage, PlayerPage]
