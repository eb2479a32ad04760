"""States in which little is possible, or much: what counts is seen first, and the rest is quiet."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.geometry import DRAWN, expect_seen
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import close_round, own_cards, place, player, tool
from tests.browser.test_large_states import shown
from tests.browser.test_large_text import wide
from tests.browser.test_left_hands import dealt_table
from tests.browser.test_looks import box, by_touch
from tests.browser.test_small_screens import any_game
from tests.harness.server_process import PATIENT, ServerProcess

SMALL, TALL = (360, 640), (390, 844)
LOW = (844, 390)
NAMES = ("Ada", "Bob", "Cleo", "Dan", "Eve")

SEEN_TOOLS = """() => [...document.querySelectorAll("#tools button")]
  .filter((one) => one.checkVisibility({ opacityProperty: true }))
  .map((one) => [one.textContent, one.ariaDisabled])"""
"""The buttons of the bar that are seen, and which of them are disabled."""


async def expect_seen_tools(page: Page, *names: str) -> None:
    """Wait until exactly these buttons of the bar are seen, none of which is disabled."""
    await page.wait_for_function(
        f"(names) => JSON.stringify(({SEEN_TOOLS})()) === JSON.stringify(names)",
        arg=[[name, None] for name in names],
    )


async def background(one: Locator) -> str:
    return str(await one.evaluate("(one) => getComputedStyle(one).backgroundColor"))


async def test_the_bar_says_that_it_waits_for_a_shuffle_and_keeps_its_height(
    open_page: OpenPage, server: ServerProcess
) -> None:
    """The shuffle waits for the bytes of a player who is not there."""
    async with dealt_table(server) as (houses, (ada, bob, _)):
        page = await by_touch(open_page, bob)
        bar = page.locator("#tools")
        await expect(own_cards(page)).to_have_count(len(bob.hand))
        await expect(tool(page, "Draw")).to_be_visible()
        before = await box(bar)
        await houses[2].close()
        await ada.shuffle(wait=False)
        await expect(page.locator("[data-shuffling]")).to_be_visible()
        await expect_seen_tools(page)
        await expect(bar).to_have_attribute("data-waits", "A shuffle is running; please wait.")
        said = await bar.evaluate("(one) => getComputedStyle(one, '::before').content")
        assert "A shuffle is running" in said
        assert await box(bar) == before
        # The deck is not a card that lies open.
        await expect(page.locator("[data-shuffling] .card[data-face='down']")).to_have_count(3)
        await expect(page.locator("[data-shuffling] .card[data-face='up']")).to_have_count(0)
        disabled = page.get_by_role("toolbar").get_by_role("button", disabled=True)
        assert await disabled.count() >= 1  # of screen readers
        await page.keyboard.press("d")
        await expect(page.get_by_role("alert")).not_to_be_empty()
        # Who comes to one with the keyboard sees it.
        await page.get_by_role("button", name="Log", exact=True).focus()
        in_bar = page.locator("#tools :focus")
        while await in_bar.count() == 0:
            await page.keyboard.press("Tab")
        await page.wait_for_function(f"() => ({SEEN_TOOLS})().length > 0")


@pytest.mark.parametrize("size", [SMALL, LOW, (1280, 800)])
async def test_the_lost_connection_is_said_in_the_place_of_the_bar(
    open_page: OpenPage, server: ServerProcess, link: Any, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, NAMES, deal=5))[0]
    page = await shown(open_page, path, size, 100, at=link.port)
    page.errors.expect("WebSocket connection|ERR_|Failed to load")  # type: ignore[attr-defined]
    await expect(own_cards(page)).to_have_count(5)
    await expect(tool(page, "Draw")).to_be_visible()
    before = await box(page.locator("#tools"))
    await link.cut()
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    await expect_seen_tools(page)
    assert await box(page.locator("#tools")) == before
    assert await box(page.locator("#connection")) == before
    await expect_seen(page, "#header .title", "#connection")
    await link.mend()
    await expect(page.locator("#connection")).to_contain_text("Connected again", timeout=30_000)
    await page.wait_for_function(f"() => ({SEEN_TOOLS})().some(([name]) => name === 'Draw')")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [SMALL, TALL, LOW])
async def test_the_next_step_is_the_first_button_of_the_bar(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    path = (await prepared_table(server, NAMES, deal=5))[0]
    page = await shown(open_page, path, size, letters)
    await expect(own_cards(page)).to_have_count(5)
    for name in ("Draw", "Play"):
        step = page.locator("#tools .primary")
        await expect(step).to_have_text(name)
        await page.evaluate(DRAWN)
        await expect_seen(page, "#tools .primary", "#tools button:not([hidden])")
        places = [await box(one) for one in await page.locator("#tools button:visible").all()]
        first = await box(step)
        assert all(
            first["y"] <= one["y"] and (first["x"] <= one["x"] or first["y"] < one["y"])
            for one in places
        )
        disabled = page.locator("#tools [aria-disabled]:visible")
        await expect(disabled).to_have_count(0)
        await own_cards(page).first.tap()


@pytest.mark.parametrize("size", [SMALL, LOW, (768, 1024), (1280, 800)])
async def test_a_brief_sentence_covers_neither_the_header_nor_the_next_step(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, NAMES, deal=5))[0]
    page = await shown(open_page, path, size, 150)
    await expect(own_cards(page)).to_have_count(5)
    await expect(page.locator("#tools .primary")).to_be_visible()
    await expect(page.locator("#connection")).to_be_hidden()
    before = await box(page.locator("#felt"))
    await page.keyboard.press("h")
    await expect(page.locator("#toast p")).to_be_visible()
    await expect_seen(page, "#toast p", "#header button", "#header .title", "#tools .primary")
    assert await box(page.locator("#felt")) == before


async def test_with_large_letters_the_sign_is_beside_the_verdict_and_the_words_are_below(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await any_game(stack, server)
        await ada.round_close()
        page = await shown(open_page, f"/tables/{ada.id}/audit", SMALL, 150)
        await expect(page.locator("#verdict-title")).to_be_visible()
        panel = await box(page.locator("#badge"))
        words = await box(page.locator("#verdict-words"))
        sign = await box(page.locator("#badge svg"))
        title = await box(page.locator("#verdict-title"))
        assert words["width"] == pytest.approx(panel["width"], abs=1)
        assert sign["x"] + sign["width"] <= title["x"]
        assert max(box["y"] + box["height"] for box in (sign, title)) <= words["y"]
        await expect_seen(page, "#badge svg", "#badge h2")


@pytest.mark.parametrize(
    ("size", "letters"), [(SMALL, 100), (SMALL, 150), (TALL, 100), (TALL, 150)]
)
async def test_the_open_hands_are_seen_after_a_round(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    path = (await prepared_table(server, NAMES, deal=5))[0]
    page = await shown(open_page, path, size, letters)
    await expect(own_cards(page)).to_have_count(5)
    await close_round(page)
    await expect(page.locator(".seat .faces .card")).to_have_count(20)
    await expect(page.locator("#connection")).to_be_hidden()
    await expect_seen(page, ".between a", "#middle .stack", ".badge", ".seat .name", ".seat .faces")


@pytest.mark.parametrize("hand", [5, 10])
async def test_large_letters_leave_the_piles_of_a_phone_large(
    open_page: OpenPage, server: ServerProcess, hand: int
) -> None:
    path = (await prepared_table(server, NAMES, deal=hand))[0]
    page = await shown(open_page, path, SMALL, 150)
    await expect(own_cards(page)).to_have_count(hand)
    assert (await box(place(page, "deck").locator(".card").last))["width"] >= 48
    await expect_seen(page, "#middle .stack", "#middle .stack .name", ".badge")
    assert await wide(page) == []


async def test_the_first_choice_of_a_sheet_is_filled_and_the_last_is_apart(
    open_page: OpenPage, server: ServerProcess, axe: Any
) -> None:
    path = (await prepared_table(server, NAMES[:2], deal=5))[0]
    page = await shown(open_page, path, SMALL, 100)
    sheet = page.get_by_role("dialog")
    rows = sheet.locator(".rows > button")
    for opened, likeliest in (
        (own_cards(page).first, "Play face up"),
        (place(page, "deck").locator(".stack"), "Draw 1"),
        (player(page, "Bob"), "Deal to this player"),
    ):
        await opened.click(button="right")
        await expect(rows.first).to_contain_text(likeliest)
        colours = [await background(one) for one in await rows.all()]
        assert colours.count(colours[0]) == 1
        await axe(page)
        await page.keyboard.press("Escape")
    await player(page, "Bob").click()
    last, before = [await box(rows.nth(index)) for index in (-1, -2)]
    await expect(rows.last).to_contain_text("Remove")
    assert last["y"] >= before["y"] + before["height"]
    assert (
        await rows.last.evaluate("(one) => parseFloat(getComputedStyle(one).borderTopWidth)") >= 6
    )


async def test_the_rows_of_the_menu_that_end_something_are_apart(
    open_page: OpenPage, server: ServerProcess
) -> None:
    (path,) = await prepared_table(server, ["Ada"], deal=1)
    page = await shown(open_page, path, SMALL, 100)
    await page.get_by_role("button", name="Menu").tap()
    rows = page.get_by_role("dialog", name="Menu").locator(".rows")
    for group, name in ((0, "End the hand"), (2, "Leave your seat")):
        row = rows.nth(group).get_by_role("button", name=name)
        edge = await row.evaluate("(one) => parseFloat(getComputedStyle(one).borderTopWidth)")
        assert edge >= 6


async def test_the_advice_of_an_invitation_is_behind_its_first_sentence(
    open_page: OpenPage, server: ServerProcess
) -> None:
    (path,) = await prepared_table(server, ["Ada"], deal=None)
    page = await shown(open_page, path, SMALL, 100)
    await page.get_by_role("button", name="Invite", exact=True).tap()
    dialog = page.get_by_role("dialog", name="Invite players")
    first = dialog.get_by_text("This link works only on this computer.")
    advice = dialog.get_by_text("--host 0.0.0.0")
    await expect(advice).to_be_hidden()
    assert (await box(first))["height"] >= 44
    await first.tap()
    await expect(advice).to_be_visible()
