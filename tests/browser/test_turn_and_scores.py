"""Whose turn it is, what a game needs, running scores, and coming back to a table: by touch."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.phones import Phones
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import later_deal, place, tool
from tests.browser.test_ownership import TOUCH, phones_at
from tests.browser.touch import Fingers

FILLED = "#tools .primary"


async def turn_of(page: Page, seat: int | None) -> None:
    """Wait until the page marks this seat's turn, and no other one's."""
    marked = page.locator("[data-turn] .chip")
    if seat is None:
        await expect(marked).to_have_count(0)
    else:
        await expect(marked).to_have_count(1)
        await expect(marked).to_have_attribute("data-seat", str(seat))


async def test_the_filled_button_is_for_the_player_in_turn(open_page, server) -> None:
    ada, bob = await phones_at(open_page, server, "crazy-eights", names=("Ada", "Bob"))
    await ada.page.keyboard.press("w")  # passes the turn on
    for phone in (ada, bob):
        await turn_of(phone.page, bob.seat)
    await expect(bob.page.locator(FILLED)).to_have_text("Draw")
    await expect(ada.page.locator(FILLED)).to_have_count(0)
    await expect(ada.page.locator(".others-turn")).to_have_text("Bob’s turn")
    # Out of turn the move is done, and the page says whose turn it is.
    await ada.tap("Draw")
    await ada.player.holds(4)
    await expect(ada.page.locator("#toast")).to_have_text("It is Bob’s turn.")
    await bob.tap("Draw")
    await bob.player.holds(4)
    await expect(bob.page.locator("#toast")).to_be_hidden()


async def test_flop_turn_and_river_move_the_turn(open_page, server) -> None:
    ada, bob, cleo = phones = await phones_at(open_page, server, "holdem", cards=2, draw="nobody")
    await bob.page.keyboard.press("w")
    await turn_of(ada.page, cleo.seat)
    await ada.tap(later_deal("Flop"))
    for phone in phones:
        await turn_of(phone.page, bob.seat)
    await bob.tap("Fold")  # who folds has no turn any more
    for phone in phones:
        await turn_of(phone.page, cleo.seat)
    await ada.tap(later_deal("Turn"))
    for phone in phones:
        await turn_of(phone.page, cleo.seat)


async def test_no_player_has_the_turn_with_empty_hands(open_page, server) -> None:
    phones = await phones_at(open_page, server, "spades", cards=1)
    await phones[0].page.keyboard.press("w")
    for phone in phones:
        await phone.do("Play", *(await phone.hand()))
    for phone in phones:
        await turn_of(phone.page, None)


@pytest.mark.parametrize("players", [1, 2])
async def test_hearts_says_how_many_it_needs(open_page, server, players: int) -> None:
    names = ("Ada", "Bob")[:players]
    path, *_ = await prepared_table(server, names, deal=None, rules={"game": "hearts"})
    page = await open_page(path, **TOUCH)
    await expect(page.get_by_text("Hearts needs at least 3 players.")).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("Shuffle and"))).to_be_hidden()
    await page.keyboard.press("o")
    await expect(page.locator("#toast")).to_have_text("Hearts needs at least 3 players.")
    await expect(place(page, "deck")).to_have_count(0)


async def test_hearts_of_three_has_the_two_of_clubs_and_its_scores_run(open_page) -> None:
    table = await Phones.at_table(open_page, "Hearts", 3)
    await table.deal(17)
    await expect(place(table.host.page, "deck")).to_have_count(0)
    hands = [await phone.hand() for phone in table.players]
    assert sorted(len(hand) for hand in hands) == [17, 17, 17]
    dealt = {card for hand in hands for card in hand}
    assert "2c" in dealt
    assert "2d" not in dealt

    # All cards go to Ada: she has the points of all cards, and so the others get 26 each.
    for phone in table.players:
        label = f"Pass 3 cards to {table.after(phone).player.name}"
        await phone.select(*(await phone.hand())[:3])
        await phone.tap(label)
        await expect(tool(phone.page, label)).to_be_hidden()
    for phone in table.players:
        await phone.player.holds(17)
        await phone.select(*await phone.hand())
        await phone.tap("Play")
        await phone.player.holds(0)
    await table.host.open_sheet("pile:table")
    await table.host.fingers.tap(
        table.host.sheet.get_by_role("button", name="Trick to a player…", exact=True)
    )  # another sheet follows
    await table.host.choose_player(table.host)
    await table.host.tap("End the hand")
    for phone in table.players:
        rows = phone.page.get_by_role("list", name="Result").get_by_role("listitem")
        await expect(rows).to_have_count(3)
        heading = phone.page.get_by_role("heading", name="Round 1 is over · game to 100")
        await expect(heading).to_be_visible()
        await expect(rows.nth(0)).to_contain_text("0 points")
        await expect(rows.nth(1)).to_contain_text("26 points")
        await expect(rows.nth(2)).to_contain_text("26 points")
        marks = phone.page.locator(".marks .score:not([hidden])")  # the sheet is over most of them
        await expect(marks).to_have_count(3)
        await expect(phone.page.locator("#seats .seat").first).to_be_hidden()
        totals = await marks.evaluate_all("(all) => all.map((one) => one.dataset.sign)")
        assert sorted(totals) == ["0 pts", "26 pts", "26 pts"]


async def test_a_reload_needs_no_welcome(open_page, server) -> None:
    path, *_ = await prepared_table(server, ("Ada",), deal=3)
    page = await open_page(path, **TOUCH)
    await expect(page.locator("#hand [data-slot]")).to_have_count(3)
    await page.reload()
    await expect(page.locator("#hand [data-slot]")).to_have_count(3)
    await expect(page.locator("#connection")).to_be_hidden()
    # Who comes back sees the welcome beside what can be tapped.
    address = page.url
    await page.goto("about:blank")
    await page.goto(address)
    await expect(page.get_by_text("Welcome back to seat 1")).to_be_visible()
    fingers = await Fingers.on(page)
    await fingers.tap(page.get_by_role("button", name="Log", exact=True))
    await expect(page.get_by_role("button", name="Show less")).to_be_visible()
    await expect(tool(page, "Draw")).to_be_visible()
