"""Names, piles and card codes with markup, control characters and special words."""

from __future__ import annotations

from playwright.async_api import expect

from dealer.client import connect
from tests.browser.table_page import expect_log, place

TURNED = "\u202eeve <img src=x onerror=alert(1)>"
SHOWN = "\ufffdeve <img src=x onerror=alert(1)>"
PILES = ["constructor", "__proto__", "toString", '"]*{x}']
CODES = ["<b>&!", "'--<!", "$(x)!", "`${}!", "{{x}}"]


async def test_text_from_players_is_never_markup(server, open_page) -> None:
    async with await connect(f"ws://127.0.0.1:{server.port}/ws") as eve:
        table = await eve.open(deck=CODES, name=TURNED, rules={"preset": "free"})
        table = await eve.join(table, name=TURNED)
        await table.round_open(entropy="house")
        await table.shuffle()
        await table.draw(len(CODES))
        cards = table.hand
        for card, pile in zip(cards, PILES, strict=False):
            await table.play([card], pile=pile)
        page = await open_page(f"/tables/{table.id}")
        await expect(page.get_by_role("heading", level=1)).to_have_text(SHOWN)
        for card, pile in zip(cards, PILES, strict=False):
            stack = page.locator(f"[data-stack='pile:{pile}']")
            await expect(stack).to_contain_text(pile)
            await expect(stack.locator(".card")).to_have_attribute("data-card", card)
        await expect(place(page, "hand:1")).to_contain_text(SHOWN)
        await table.show(table.hand)
        await expect_log(page, f"{SHOWN} showed {table.hand[0]}.")
        await page.goto(page.url.split("/tables/")[0])
        await expect(page.get_by_role("link", name=SHOWN)).to_be_visible()
