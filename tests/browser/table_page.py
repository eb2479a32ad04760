"""Actions and locators of the table page: open a table, join, draw cards, read the log."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

LOW = 700
"""Pixels: the page offers no help on a screen of this height or less (help_card.js)."""


async def open_table(page: Page, name: str) -> str:
    """Open a table whose host may collect all cards; returns its invite link."""
    await choose_game(page)
    await page.get_by_label("Your name").fill(name)
    await page.locator(".opened details").evaluate("(choices) => { choices.open = true; }")
    await page.get_by_label("The host may collect the cards").check()
    await page.get_by_role("button", name="Open a table").click()
    link = await shown_link(page)
    await close_invitation(page)
    return link


async def choose_game(page: Page, name: str = "Any game") -> None:
    """Choose a game in the lobby, below which its form opens, if it is not open already."""
    await page.get_by_role("radio", name=re.compile(f"^{re.escape(name)} ")).check()


async def close_invitation(page: Page) -> None:
    """Close the invitation that a new table opens with."""
    await page.get_by_role("dialog", name="Invite players").wait_for()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def shown_link(page: Page) -> str:
    """The link of the open dialog."""
    return await page.get_by_role("dialog").locator(".address").inner_text()


async def sit_down(page: Page, name: str) -> None:
    await page.get_by_label("Your name").fill(name)
    await page.get_by_role("button", name="Sit down").click()
    await expect(own_hand(page)).to_be_visible()


async def dismiss_help(page: Page) -> None:
    """Once the game file was loaded; a low screen has no room for the offer of its help."""
    if page.viewport_size is not None and page.viewport_size["height"] <= LOW:
        await page.locator('#middle:not([data-layout="free"])').wait_for()
        await page.wait_for_load_state("networkidle")  # also of what comes after the first view
    else:
        await page.locator("#notice button").last.click()


async def start_round(page: Page) -> None:
    await page.get_by_role("button", name="Shuffle and start").click()
    await expect_log(page, "Shuffled 52 cards, ")


async def close_round(page: Page) -> None:
    """Close the round with keys; the page asks for confirmation."""
    await page.keyboard.press("Shift+L")
    await expect(page.get_by_role("dialog", name="End the hand")).to_be_visible()
    await page.keyboard.press("Enter")


async def answer(page: Page, label: str) -> None:
    """Press a button of the open dialog."""
    await page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()


def later_deal(title: str) -> str:
    """The name of the button of a deal of poker to the board."""
    return f"When betting is done, deal: {title}"


def own_hand(page: Page) -> Locator:
    return page.get_by_role("listbox", name=re.compile("Your hand"))


def own_cards(page: Page) -> Locator:
    """The cards of the own hand; without the search for roles and names in the whole page."""
    return page.locator('#own [role="listbox"] > [role="option"]')


async def codes(page: Page) -> list[str]:
    """The card codes of the player's hand, from left to right."""
    shown: list[str] = (
        await own_cards(page)
        .locator(".card")
        .evaluate_all("all => all.map(one => one.dataset.card)")
    )
    return shown


def place(page: Page, stack: str) -> Locator:
    """The deck, a pile or another player's hand."""
    return page.locator(f'[data-stack="{stack}"]')


def player(page: Page, name: str) -> Locator:
    return page.get_by_role("list", name="Other players").get_by_role(
        "button", name=re.compile(f"^{name}, ")
    )


async def holds(page: Page, stack: str, count: int) -> None:
    """Wait until a stack of the table, or of a replay, shows this number of cards."""
    shown = place(page, stack)
    words = re.compile(rf"^{count}( cards?)?( · .*)?$")
    in_replay = shown.locator(".count").filter(has_text=words)
    await expect(shown.locator(f'.count[data-sign="{count}"]').or_(in_replay)).to_have_count(1)


async def has_won(page: Page, seat: int, tricks: int) -> None:
    """Wait until a seat has won this number of tricks, in a game with tricks."""
    count = place(page, f"pile:won:{seat}").locator(".count")
    await expect(count).to_have_attribute("data-sign", f"×{tricks}")


async def expect_log(page: Page, sentence: str | re.Pattern[str]) -> None:
    """Wait until the log has this sentence."""
    await expect(page.get_by_role("log").get_by_text(sentence).last).to_be_attached()


def tool(page: Page, name: str) -> Locator:
    return page.get_by_role("toolbar").get_by_role("button", name=name, exact=True)
