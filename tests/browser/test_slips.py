"""What protects players from slips: doubled clicks, counts, gifts, and cards that have changed."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.player_page import TwoPlayers
from tests.browser.table_page import answer, codes, holds, own_hand, place, player, tool

pytestmark = pytest.mark.reuse_pages


async def lift_from(page: Page, stack: str) -> None:
    """Begin to drag the top card of a stack; it follows the mouse."""
    await place(page, stack).hover()
    await page.mouse.down()
    await page.mouse.move(5, 200, steps=4)
    await expect(page.locator(".ghost")).to_be_visible()


async def test_a_double_click_acts_once(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    await tool(ada.page, "Deal").dblclick()
    await ada.holds(4)
    await bob.holds(4)
    for button in (tool(ada.page, "Draw"), place(ada.page, "deck")):
        await button.dblclick()  # drawing is repeated on purpose
    await ada.holds(8)
    for _ in range(3):
        await ada.page.keyboard.press("d")  # keys are not slowed down
    await ada.holds(11)


async def test_each_use_of_the_count_sets_it_back(two_players: TwoPlayers) -> None:
    ada, _ = two_players
    for key in "2dd":  # two cards, then one
        await ada.page.keyboard.press(key)
    await ada.holds(6)
    one = ada.page.get_by_role("group", name="How many cards: 1")
    for stack in ("pile:table", "pile:burn", "hand:2"):
        await ada.set_count(2)
        await place(ada.page, "deck").drag_to(place(ada.page, stack))
        await holds(ada.page, stack, 5 if stack == "hand:2" else 2)
        await expect(one).to_be_visible()


async def test_a_gift_is_given_only_after_a_question(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    name = await ada.choose(0)
    given = (await codes(ada.page))[0]
    sheet = ada.page.get_by_role("dialog", name="Give")
    for dismiss in ("Cancel", "Close"):
        await player(ada.page, "Bob").click()
        await expect(sheet).to_have_text(re.compile(r"Give .+ to Bob\?"))
        await answer(ada.page, dismiss)
        await expect(sheet).to_have_count(0)
    await ada.holds(3)
    await expect(ada.cards.first).to_have_attribute("aria-selected", "true")
    await ada.page.keyboard.press("g")
    await answer(ada.page, "Give")
    await expect(own_hand(bob.page).locator(f'[data-card="{given}"]')).to_be_visible()
    await ada.holds(2)
    assert name not in await ada.names()


async def test_a_card_that_is_no_longer_on_top_does_not_move(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    await bob.choose(0)
    await bob.do("Play")
    await holds(ada.page, "pile:table", 1)
    await lift_from(ada.page, "pile:table")
    await bob.choose(0)
    await bob.do("Play")
    await holds(ada.page, "pile:table", 2)
    await place(ada.page, "pile:discard").hover()
    await ada.page.mouse.up()
    await expect(ada.page.get_by_role("alert")).to_have_text(re.compile("have changed"))
    await holds(ada.page, "pile:discard", 0)


async def test_a_drop_beside_the_stacks_and_escape_move_nothing(two_players: TwoPlayers) -> None:
    ada, _ = two_players
    ghost = ada.page.locator(".ghost")
    await lift_from(ada.page, "deck")
    await ada.page.mouse.up()
    await expect(ghost).to_have_count(0)
    await lift_from(ada.page, "deck")
    await place(ada.page, "pile:table").hover()
    await ada.page.keyboard.press("Escape")
    await expect(ghost).to_have_count(0)
    await ada.page.mouse.up()
    await expect(ada.page.get_by_role("dialog")).to_have_count(0)
    await ada.do("Draw")
    await ada.holds(4)
    await holds(ada.page, "pile:table", 0)


async def test_a_right_click_and_the_menu_key_open_the_menu_of_a_card(
    two_players: TwoPlayers,
) -> None:
    ada, bob = two_players
    sheet = ada.page.get_by_role("dialog")
    await ada.cards.nth(1).click(button="right")
    await expect(sheet.get_by_role("button", name="Show to one player…")).to_be_visible()
    await ada.page.keyboard.press("Escape")
    await ada.cards.nth(0).focus()
    await ada.page.keyboard.press("ContextMenu")
    await answer(ada.page, "Play face down")
    await holds(bob.page, "pile:table", 1)
    await expect(place(bob.page, "pile:table").locator('[data-face="up"]')).to_have_count(0)
    await ada.page.keyboard.press("Escape")
    await ada.choose(0)
    await ada.page.keyboard.press("e")
    await answer(ada.page, "Put back on the deck")
    await ada.holds(1)


async def test_public_and_final_actions_are_marked(two_players: TwoPlayers) -> None:
    ada, _ = two_players
    await expect(tool(ada.page, "Play")).to_have_attribute("data-mark", "public")
    await expect(tool(ada.page, "End the hand")).to_have_count(0)  # never beside others
    await ada.choose(0)
    await tool(ada.page, "More…").click()
    sheet = ada.page.get_by_role("dialog")
    colours = []
    for name, mark in (
        ("Show to all", "public"), ("End the hand", "final"), ("Discard", None),
    ):  # fmt: skip
        button = sheet.get_by_role("button", name=name)
        assert await button.get_attribute("data-mark") == mark
        colours.append(await button.evaluate("(one) => getComputedStyle(one).borderColor"))
    assert len(set(colours)) == 3
