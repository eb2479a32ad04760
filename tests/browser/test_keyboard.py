"""A whole round without a mouse: everything has a key, and one sees where one is."""

from __future__ import annotations

import re

from playwright.async_api import Locator, Page, expect

from tests.browser.people import Person

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
    """Press Tab until the target has the focus; each stop on the way can be seen."""
    for _ in range(most):
        if await target.evaluate("(one) => one === document.activeElement"):
            return
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement === document.body"):
            continue  # once round
        here = await page.evaluate(FOCUS)
        assert here["shown"], f"nobody sees that the focus is on {here['name']!r}"
        assert here["inside"], f"the focus is out of sight, on {here['name']!r}"
    raise AssertionError(f"Tab never came to {target}")


async def to_first_card(person: Person) -> None:
    """Tab leads to the card of the hand that had the focus last, Home to the first."""
    await tab_to(person.page, person.hand.locator('[tabindex="0"]'))
    await person.page.keyboard.press("Home")


async def test_a_round_by_keyboard_alone(house, arrive) -> None:
    page = await arrive("/")
    ada, keys = Person(page, "Ada"), page.keyboard
    await tab_to(page, page.get_by_text("Choose deck, seats and rules"))
    await keys.press("Enter")
    await tab_to(page, page.get_by_label("The host may collect the cards of players’ hands"))
    await keys.press("Space")
    await tab_to(page, page.get_by_label("Your name"))
    await keys.type("Ada")
    await keys.press("Enter")
    await expect(ada.hand).to_be_visible()

    bob_page = await arrive(page.url)
    bob = Person(bob_page, "Bob")
    await expect(bob_page.get_by_text("the host may collect the cards")).to_be_visible()
    await tab_to(bob_page, bob_page.get_by_label("Your name"))
    await bob_page.keyboard.type("Bob")
    await tab_to(bob_page, bob.button("Sit down"))
    await bob_page.keyboard.press("Enter")
    await expect(bob.hand).to_be_visible()

    await keys.press("o")  # open a round and shuffle
    await bob.sees(re.compile("Shuffled 52 cards"))
    await keys.press("5")
    await keys.press("a")  # deal
    await ada.holds(5)
    await bob.holds(5)

    # Into the hand with Tab, from card to card with arrows; a card is moved and stays where it is.
    await to_first_card(ada)
    first, second, *rest = await ada.names()
    await keys.press("Alt+ArrowRight")
    assert await ada.names() == [second, first, *rest]
    await keys.press("ArrowLeft")
    await keys.press("Space")
    await expect(ada.cards.first).to_have_attribute("aria-selected", "true")
    await keys.press("p")  # play
    await bob.sees(re.compile("^Ada played"))
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
        await bob.sees(re.compile(f"^{says}"))
        await ada.holds(left)
    await bob.holds(6)

    await to_first_card(ada)
    await keys.press("Space")
    await keys.press("h")  # show
    await bob.sees(re.compile("^Ada showed"))
    await keys.press("d")  # draw
    await ada.holds(2)
    await keys.press("c")  # cut
    await bob.sees(re.compile("cut", re.IGNORECASE))
    await keys.press("b")  # burn
    await bob.sees(re.compile("burned", re.IGNORECASE))
    await keys.press("k")  # collect
    await ada.holds(0)
    await keys.press("s")  # shuffle again
    await expect(bob.log.get_by_text(re.compile("Shuffled"))).to_have_count(2)

    await keys.press("?")
    sheet = page.get_by_role("dialog", name="Keys and gestures")
    await expect(sheet).to_be_visible()
    await keys.press("Escape")
    await expect(sheet).to_be_hidden()

    await keys.press("Shift+L")  # close the round: that is asked about once
    sure = page.get_by_role("dialog", name="Close the round")
    await expect(sure).to_be_visible()
    await keys.press("Escape")
    await expect(sure).to_be_hidden()
    await expect(bob.log.get_by_text("Round 1 was closed")).to_have_count(0)
    await keys.press("Shift+L")
    await tab_to(page, sure.get_by_role("button", name="Close the round"))
    await keys.press("Enter")
    await bob.sees(re.compile("Round 1 was closed"))
    await tab_to(page, page.get_by_role("link", name="Watch it being checked, swap by swap"))
    await keys.press("Enter")
    await expect(page.get_by_text("Everything holds")).to_be_visible()

    # The film: to a moment and back, with arrows and Space.
    timeline = page.get_by_role("slider", name="Moment")
    await tab_to(page, timeline)
    at = int(await timeline.input_value())
    await keys.press("ArrowRight")
    await expect(timeline).to_have_value(str(at + 1))
    await keys.press("ArrowLeft")
    await expect(timeline).to_have_value(str(at))


async def test_leaving_and_closing_by_keyboard(house, arrive) -> None:
    page = await arrive("/")
    ada = Person(page, "Ada")
    await ada.open_table()
    await page.keyboard.press("Shift+Q")
    await tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Leave your seat"))
    await page.keyboard.press("Enter")
    await expect(ada.button("Sit down")).to_be_visible()
    await page.keyboard.press("Shift+W")
    await tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Close the table"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This table is closed")).to_be_visible()
