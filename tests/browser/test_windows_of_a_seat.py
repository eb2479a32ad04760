"""Several windows of one seat: exactly one plays, the others say so and have a button to play."""

from __future__ import annotations

import asyncio
import json
import re

from playwright.async_api import Locator, Page, WebSocketRoute, expect

from tests.browser.conftest import OpenPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import own_cards
from tests.browser.touch import Fingers
from tests.harness.server_process import ServerProcess

RELOADS = 12
SUPERSEDED = "You are playing at this table in another window. Play here instead"


def button(page: Page) -> Locator:
    return page.get_by_role("button", name="Play here instead")


async def plays(page: Page) -> None:
    """Wait until the page has its seat, and is connected."""
    await expect(page.locator("#connection")).to_be_hidden()
    await expect(page.locator("#tools [data-action=draw]")).to_be_enabled()


async def take_over(page: Page) -> None:
    await button(page).click()
    await plays(page)


async def windows_of_a_seat(
    open_page: OpenPage, server: ServerProcess, count: int, *, deal: int = 0
) -> list[Page]:
    """Windows of one browser, all of which have opened the table, the last one last."""
    (path,) = await prepared_table(server, ("Ada",), deal=deal or None)
    first = await open_page(path)
    await expect(own_cards(first)).to_have_count(deal)
    pages = [first]
    for _ in range(count - 1):
        pages.append(await first.context.new_page())
        await pages[-1].goto(first.url)
        await expect(own_cards(pages[-1])).to_have_count(deal)
    return pages


async def the_one_that_plays(pages: list[Page]) -> Page:
    """Wait until all windows but one say that another one plays; that one."""
    waiting = {asyncio.create_task(expect(button(page)).to_be_visible()): page for page in pages}
    while len(waiting) > 1:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
            page = waiting.pop(task)
            await expect(page.locator("#connection")).to_have_text(SUPERSEDED)
    ((task, page),) = waiting.items()
    task.cancel()
    return page


async def test_exactly_one_of_several_windows_plays(open_page, server) -> None:
    pages = await windows_of_a_seat(open_page, server, 3, deal=1)
    for cards in range(2, 2 + RELOADS):
        await asyncio.gather(*(page.reload() for page in pages))
        playing = await the_one_that_plays(pages)
        await plays(playing)
        await playing.keyboard.press("d")
        await expect(own_cards(playing)).to_have_count(cards)
    other = pages[pages.index(playing) - 1]
    await take_over(other)
    assert await the_one_that_plays(pages) == other
    await other.keyboard.press("d")
    await expect(own_cards(other)).to_have_count(cards + 1)


async def test_a_window_that_loses_the_seat_while_it_enters_says_so(open_page, server) -> None:
    """It has no answer yet, and so no table to show."""
    first, second = await windows_of_a_seat(open_page, server, 2, deal=1)
    resumed = asyncio.Event()

    def withhold(route: WebSocketRoute) -> None:
        """Let only the answer to `session.hello` through."""
        to_server = route.connect_to_server()

        def answered(text: str | bytes) -> None:
            if "server" in json.loads(text).get("result", {}):
                route.send(text)
            else:
                resumed.set()

        to_server.on_message(answered)

    await second.route_web_socket("**/ws/**", withhold)
    await second.reload()
    await resumed.wait()
    await take_over(first)
    assert await the_one_that_plays([first, second]) == first
    await second.unroute_all()
    await expect(second.locator("#join")).to_be_hidden()
    await expect(second.get_by_role("toolbar").get_by_role("button")).to_have_count(0)


async def test_a_seat_of_another_device_shows_no_failed_check(open_page, server) -> None:
    """That device drew the bytes of the shuffle, and has committed to those of the next one."""
    (path,) = await prepared_table(server, ("Ada",), deal=2)
    page = await open_page(path, size={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    fingers = await Fingers.on(page)
    for _ in range(2):
        await expect(own_cards(page)).to_have_count(2)
        badge = page.locator("button.badge")
        await expect(badge).to_have_text(re.compile("Partly checked"))
        await fingers.tap(badge)
        check = page.get_by_role("dialog").get_by_role("listitem").first
        await expect(check).to_have_attribute("data-state", "unavailable")
        await expect(check).to_contain_text("Another browser or device of yours played this seat")
        await page.reload()
