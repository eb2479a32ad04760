"""Guests whose names, piles and cards would rather be something else than text."""

from __future__ import annotations

from playwright.async_api import expect

from dealer.client import connect
from tests.browser.seated import place, told

TURNED = "\u202eeve <img src=x onerror=alert(1)>"
SHOWN = "\ufffdeve <img src=x onerror=alert(1)>"
PILES = ["constructor", "__proto__", "toString", '"]*{x}']
CODES = ["<b>&!", "'--<!", "$(x)!", "`${}!", "{{x}}"]


async def test_what_guests_chose_is_text_and_nothing_more(house, arrive) -> None:
    async with await connect(f"ws://127.0.0.1:{house.port}/ws") as eve:
        table = await eve.open(deck=CODES, name=TURNED, rules={"preset": "free"})
        table = await eve.join(table, name=TURNED)
        await table.round_open(entropy="house")
        await table.shuffle()
        await table.draw(len(CODES))
        cards = table.hand
        for card, pile in zip(cards, PILES, strict=False):
            await table.play([card], pile=pile)
        page = await arrive(f"/tables/{table.id}")
        await expect(page.get_by_role("heading", level=1)).to_have_text(SHOWN)
        for card, pile in zip(cards, PILES, strict=False):
            stack = page.locator(f"[data-stack='pile:{pile}']")
            await expect(stack).to_contain_text(pile)
            await expect(stack.locator(".card")).to_have_attribute("data-card", card)
        await expect(place(page, "hand:1")).to_contain_text(SHOWN)
        await table.show(table.hand)
        await told(page, f"{SHOWN} showed {table.hand[0]}.")
        await page.goto(page.url.split("/tables/")[0])
        await expect(page.get_by_role("link", name=SHOWN)).to_be_visible()
