"""Moves as people play: taken back, passed at the same time, and whole piles."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.player_page import TwoPlayers
from tests.browser.table_page import answer, codes, holds, own_cards, place, tool

pytestmark = pytest.mark.reuse_pages


async def test_a_card_played_face_down_is_taken_back(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    before = await codes(ada.page)
    await ada.choose(1)
    await ada.page.keyboard.press("Shift+D")
    await holds(bob.page, "pile:table", 1)
    await tool(ada.page, "Take back").click()
    await holds(bob.page, "pile:table", 0)
    await ada.holds(3)
    assert sorted(await codes(ada.page)) == sorted(before)
    await bob.expect_log("Ada took back 1 card.")


async def test_cards_are_passed_when_both_have_passed(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    given, taken = await codes(ada.page), await codes(bob.page)
    for player, other, waiting in ((ada, bob, 2), (bob, ada, 3)):
        await player.choose(0)
        await player.page.keyboard.press("e")
        await answer(player.page, "Pass, when all others pass, too…")
        await player.holds(waiting)
        if player is ada:
            waits = other.page.locator("#own").get_by_role("button", name=re.compile("^For seat 2"))
            await expect(waits).to_be_visible()
            await other.holds(3)
    await ada.holds(3)
    await expect(own_cards(bob.page).locator(f'[data-card="{given[0]}"]')).to_have_count(1)
    assert set(await codes(bob.page)) == {*taken[1:], given[0]}


async def test_a_pile_is_turned_and_taken_whole(two_players: TwoPlayers) -> None:
    ada, bob = two_players
    for number in range(1, 3):
        await ada.choose(0)
        await ada.page.keyboard.press("Shift+D")
        await holds(ada.page, "pile:table", number)
    await place(ada.page, "pile:table").click()
    await answer(ada.page, "Turn all its cards up")
    await expect(place(bob.page, "pile:table").locator('[data-face="up"]').first).to_be_visible()
    await place(bob.page, "pile:table").click()
    await answer(bob.page, "Take all its cards")
    await bob.holds(5)
    await holds(ada.page, "pile:table", 0)
