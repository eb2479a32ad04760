"""A whole round without a mouse: every action has a key, and the focus is always visible."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.player_page import PlayerPage
from tests.browser.table_page import close_invitation

pytestmark = pytest.mark.reuse_pages

FOCUS = """() => {
  const one = document.activeElement;
  const box = one.getBoundingClientRect();
  const ringed = (which) => {
    const style = getComputedStyle(which);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  };
  const ring = ringed(one) || [...one.children].some(ringed);
  return {
    name: one.getAttribute("aria-label") ?? one.textContent.trim(),
    shown: one.matches(":focus-visible") && ring,
    inside: box.width > 0 && box.top < innerHeight && box.bottom > 0,
  };
}"""


async def tab_to(page: Page, target: Locator, *, most: int = 60) -> None:
    """Press Tab until the target has the focus; the focus must be visible at each stop."""
    for _ in range(most):
        if await target.evaluate("(one) => one === document.activeElement"):
            return
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement === document.body"):
            continue  # back at the start
        here = await page.evaluate(FOCUS)
        assert here["shown"], f"the focus is not visible on {here['name']!r}"
        assert here["inside"], f"the focus is outside of the window, on {here['name']!r}"
    raise AssertionError(f"Tab does not reach {target}")


async def to_first_card(person: PlayerPage) -> None:
    """Tab reaches the card of the hand that had the focus last, Home the first."""
    await tab_to(person.page, person.hand.locator('[tabindex="0"]'))
    await person.page.keyboard.press("Home")


async def test_a_round_with_the_keyboard_only(server, open_page) -> None:
    page = await open_page("/")
    ada, keys = PlayerPage(page, "Ada"), page.keyboard
    await tab_to(page, page.get_by_role("radio").first)
    await keys.press("ArrowUp")  # the last one, a table without a game, which opens the form
    await tab_to(page, page.get_by_text("Choose deck, seats and rules"))
    await keys.press("Enter")
    await tab_to(page, page.get_by_label("The host may collect the cards of players’ hands"))
    await keys.press("Space")
    await tab_to(page, page.get_by_label("Your name"))
    await keys.type("Ada")
    await keys.press("Enter")
    await close_invitation(page)
    await expect(ada.hand).to_be_visible()

    bob_page = await open_page(page.url)
    bob = PlayerPage(bob_page, "Bob")
    await expect(bob_page.get_by_text("the host may collect the cards")).to_be_visible()
    await tab_to(bob_page, bob_page.get_by_label("Your name"))
    await bob_page.keyboard.type("Bob")
    await tab_to(bob_page, bob.button("Sit down"))
    await bob_page.keyboard.press("Enter")
    await expect(bob.hand).to_be_visible()

    await keys.press("o")  # open a round and shuffle
    await bob.expect_log(re.compile("Shuffled 52 cards"))
    await keys.press("5")
    await keys.press("a")  # deal
    await ada.holds(5)
    await bob.holds(5)

    # Tab to the hand, arrows from card to card; a moved card keeps its position.
    await to_first_card(ada)
    first, second, *rest = await ada.names()
    await keys.press("Alt+ArrowRight")
    assert await ada.names() == [second, first, *rest]
    await keys.press("ArrowLeft")
    await keys.press("Space")
    await expect(ada.cards.first).to_have_attribute("aria-selected", "true")
    await keys.press("p")  # play
    await bob.expect_log(re.compile("^Ada played"))
    await expect(ada.button(re.compile(f"^Table pile, 1 card: {second}"))).to_be_visible()
    await ada.holds(4)

    for left, key, says in (
        (3, "x", "Ada discarded 1 card."),
        (2, "g", "Ada gave you"),
        (1, "r", "1 card of Ada’s hand went back"),
    ):
        await to_first_card(ada)
        await keys.press("Space")
        await keys.press(key)
        if key == "g":  # give: asks for confirmation
            await expect(page.get_by_role("dialog", name="Give")).to_contain_text("to Bob?")
            await keys.press("Enter")
        await bob.expect_log(re.compile(f"^{says}"))
        await ada.holds(left)
    await bob.holds(6)

    await to_first_card(ada)
    await keys.press("Space")
    await keys.press("h")  # show
    await bob.expect_log(re.compile("^Ada showed"))
    await keys.press("d")  # draw
    await ada.holds(2)
    await keys.press("c")  # cut
    await bob.expect_log(re.compile("cut", re.IGNORECASE))
    await keys.press("b")  # burn
    await bob.expect_log(re.compile("burned", re.IGNORECASE))
    await keys.press("k")  # collect
    await ada.holds(0)
    await keys.press("s")  # shuffle again
    await expect(bob.log.get_by_text(re.compile("Shuffled"))).to_have_count(2)

    await keys.press("?")
    sheet = page.get_by_role("dialog", name="Keys and gestures")
    await expect(sheet).to_be_visible()
    await keys.press("Escape")
    await expect(sheet).to_be_hidden()

    await keys.press("Shift+L")  # close the round: asks for confirmation
    confirm = page.get_by_role("dialog", name="End the hand")
    await expect(confirm).to_be_visible()
    await keys.press("Escape")
    await expect(confirm).to_be_hidden()
    await expect(bob.log.get_by_text("Round 1 was closed")).to_have_count(0)
    await keys.press("Shift+L")
    await tab_to(page, confirm.get_by_role("button", name="End the hand"))
    await keys.press("Enter")
    await bob.expect_log(re.compile("Round 1 was closed"))
    await tab_to(page, page.get_by_role("link", name="Check the shuffle"))
    await keys.press("Enter")
    await expect(page.get_by_text("All 7 checks passed")).to_be_visible()

    # The replay: one event forward and back, with arrow keys.
    timeline = page.get_by_role("slider", name="Event")
    await tab_to(page, timeline)
    at = int(await timeline.input_value())
    await keys.press("ArrowRight")
    await expect(timeline).to_have_value(str(at + 1))
    await keys.press("ArrowLeft")
    await expect(timeline).to_have_value(str(at))


async def test_seats_are_left_and_tables_closed_with_the_keyboard(server, open_page) -> None:
    page = await open_page("/")
    ada = PlayerPage(page, "Ada")
    await ada.open_table()
    await page.keyboard.press("Shift+Q")
    await tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Leave your seat"))
    await page.keyboard.press("Enter")
    await expect(ada.button("Sit down")).to_be_visible()
    await page.keyboard.press("Shift+W")
    await tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Close the table"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This table is closed")).to_be_visible()
