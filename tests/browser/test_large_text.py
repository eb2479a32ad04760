"""Large letters, long languages and phones on their side: what players need stays on the screen."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from dealer.client import connect
from tests.browser.conftest import OpenPage
from tests.browser.geometry import DRAWN
from tests.browser.table_page import choose_game, dismiss_help, own_cards, place
from tests.harness.malicious_server import MaliciousServer
from tests.harness.server_process import PATIENT, ServerProcess

UPRIGHT = [(320, 568), (360, 640), (390, 844)]
ON_ITS_SIDE = [(568, 320), (640, 360), (844, 390)]

RULES = {"game": "hearts", "draw": "nobody", "burn": "nobody"}


async def hearts(server: ServerProcess | MaliciousServer, *, over: bool = False) -> str:
    """The link of the fourth player of hearts, whose turn it is: a trick was won, 3 cards lie.

    With `over` the round was closed then.
    """
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [
            await stack.enter_async_context(connect(server.url, name=name))
            for name in ("Ada", "Bob", "Cleo", "Maximiliane")
        ]
        opened = await houses[0].open(seats=5, rules=RULES, name="Friday")
        tables = [await house.join(opened.id) for house in houses]
        ada = tables[0]
        await ada.until(lambda table: len(table.seats) == 4)
        await ada.transfer_host(1)
        await ada.round_open()
        await ada.shuffle()
        await ada.deal(13)
        for table in tables:
            await table.until(lambda one: len(one.hand) == 13)
            await table.play(table.hand[:1])
        await ada.until(lambda table: len(table.piles["table"]) == 4)
        await ada.move("pile:table", to="pile:won:2", count=4)
        for table in tables[:3]:
            await table.play(table.hand[:1])
        await ada.note(kind="turn", text="4")
        if over:
            await ada.round_close()
        return f"/tables/{ada.id}#seat={tables[3].token}"


async def phone(
    open_page: OpenPage, path: str, size: tuple[int, int], *, letters: int = 100, **options: Any
) -> Page:
    """A page on a phone, whose letters have this size in percent."""
    width, height = size
    page = await open_page(
        path, size={"width": width, "height": height}, has_touch=True, is_mobile=True, **options
    )
    await dismiss_help(page)
    await page.evaluate(
        "(percent) => { document.documentElement.style.fontSize = `${percent}%`; }", letters
    )
    await page.evaluate(DRAWN)
    return page


async def wide(page: Page) -> list[str]:
    """What is beyond the right or left edge of the page, and not in something that scrolls."""
    found: list[str] = await page.evaluate(
        """() => [...document.querySelectorAll("button, .card, h1, h2, input, select")]
          .filter((one) => one.checkVisibility())
          .filter((one) => one.closest("#hand, #middle .cards, #chapters") === null)
          .filter((one) => {
            const { left, right, width } = one.getBoundingClientRect();
            return width > 0 && (left < -1 || right > innerWidth + 1);
          })
          .map((one) => one.outerHTML.slice(0, 90))
          .concat(document.scrollingElement.scrollWidth > innerWidth ? ["the page"] : [])"""
    )
    return found


async def on_screen(*all_: Locator) -> None:
    for one in all_:
        await expect(one).to_be_in_viewport(ratio=0.95)


def trick(page: Page) -> Locator:
    return place(page, "pile:table").locator(".card")


@pytest.mark.parametrize("size", [*UPRIGHT, *ON_ITS_SIDE])
async def test_the_trick_and_the_hand_stay_with_large_letters(open_page, server, size) -> None:
    page = await phone(open_page, await hearts(server), size, letters=150)
    await expect(own_cards(page)).to_have_count(12)
    await on_screen(trick(page).first, trick(page).last, own_cards(page).first)
    covered = await trick(page).evaluate_all(
        """(all) => all.filter((one) => {
          const { left, top } = one.getBoundingClientRect();
          return document.elementFromPoint(left + 6, top + 10)?.closest(".card") !== one;
        }).length"""
    )
    assert covered == 0
    assert await wide(page) == []


@pytest.mark.parametrize("size", [*UPRIGHT, *ON_ITS_SIDE])
async def test_nothing_is_too_wide_with_letters_of_twice_the_size(open_page, server, size) -> None:
    path = await hearts(server)
    page = await phone(open_page, path, size, letters=200)
    await expect(own_cards(page)).to_have_count(12)
    assert await wide(page) == []
    watching = await phone(open_page, path.partition("#")[0], size, letters=200)
    await expect(watching.get_by_role("button", name="Sit down")).to_be_visible()
    assert await wide(watching) == []


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "pl", "zh", "ar"])
async def test_the_tools_of_a_game_are_on_the_screen(open_page, server, language) -> None:
    page = await phone(open_page, await hearts(server), (360, 640), locale=language)
    await expect(own_cards(page)).to_have_count(12)
    tools = page.locator("#tools button:visible")
    assert await tools.count() >= 3
    await on_screen(*await tools.all())
    tops = await tools.evaluate_all("(all) => all.map((one) => one.offsetTop)")
    assert len(set(tops)) == 1  # one row


@pytest.mark.parametrize("size", ON_ITS_SIDE)
async def test_a_phone_on_its_side_cuts_nothing_off(open_page, server, size) -> None:
    path = await hearts(server)
    page = await phone(open_page, path, size)
    await expect(own_cards(page)).to_have_count(12)
    names = page.locator(".seat .name")
    await expect(names).to_have_count(3)
    await on_screen(*await names.all(), *await page.locator("#tools button:visible").all())
    await on_screen(trick(page).first, own_cards(page).first)

    watching = await phone(open_page, path.partition("#")[0], size)
    sit = watching.get_by_role("button", name="Sit down")
    await on_screen(sit, watching.get_by_label("Your name"))
    edge = await sit.evaluate("(one) => innerHeight - one.getBoundingClientRect().bottom")
    assert edge >= 4


@pytest.mark.parametrize("size", [(360, 640), (844, 390), (1280, 800)])
async def test_each_card_of_a_trick_lies_before_its_player(open_page, server, size) -> None:
    page = await phone(open_page, await hearts(server), size)
    await expect(trick(page)).to_have_count(3)
    ada, bob, cleo = await places_of(trick(page))
    # Seen from seat 4: the next player is at the left, the one across at the top.
    assert ada[0] < bob[0] < cleo[0]
    assert bob[1] < min(ada[1], cleo[1])
    await own_cards(page).first.tap()
    await page.get_by_role("button", name="Play", exact=True).tap()
    await expect(trick(page)).to_have_count(4)
    *others, own = await places_of(trick(page))
    assert own[1] > max(top for _, top in others)
    await on_screen(trick(page).last, page.get_by_role("button", name="Trick to a player…"))


async def places_of(cards: Locator) -> list[list[float]]:
    """Where cards are, from the left and the top, by the seats of their players."""
    found: list[list[float]] = await cards.evaluate_all(
        """(all) => all.sort((a, b) => a.dataset.colour - b.dataset.colour).map((one) => {
          const { left, top } = one.getBoundingClientRect();
          return [left, top];
        })"""
    )
    return found


@pytest.mark.parametrize("letters", [100, 150])
async def test_letters_leave_the_trick_its_room_on_a_desktop(open_page, server, letters) -> None:
    page = await phone(open_page, await hearts(server), (1280, 800), letters=letters)
    await expect(own_cards(page)).to_have_count(12)
    await on_screen(trick(page).first, trick(page).last, own_cards(page).first)
    card = await trick(page).first.bounding_box()
    assert card is not None
    assert card["width"] >= 56


@pytest.mark.parametrize("letters", [150, 200])
async def test_the_menu_and_the_invitation_fit_with_large_letters(
    open_page, server, letters
) -> None:
    page = await phone(open_page, await hearts(server), (360, 640), letters=letters)
    for name in ("Menu", "Invite"):
        await page.get_by_role("button", name=name, exact=True).tap()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_be_visible()
        assert await dialog.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0
        assert await wide(page) == []
        await page.keyboard.press("Escape")


@pytest.mark.parametrize("size", [(320, 568), (360, 640), (844, 390), (1280, 800)])
async def test_the_lobby_fits_with_large_letters(open_page, size) -> None:
    page = await open_page("/", size={"width": size[0], "height": size[1]})
    await choose_game(page)
    await page.get_by_text("Choose deck, seats and rules").click()
    for letters in (150, 200):
        await page.evaluate(
            "(percent) => { document.documentElement.style.fontSize = `${percent}%`; }", letters
        )
        await page.evaluate(DRAWN)
        assert await wide(page) == []


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [(360, 640), (390, 844), (844, 390), (1280, 800)])
async def test_the_button_to_sit_down_is_on_the_screen(open_page, server, size, letters) -> None:
    path = (await hearts(server)).partition("#")[0]
    page = await phone(open_page, path, size, letters=letters)
    await on_screen(page.get_by_role("button", name="Sit down"))
    seat = page.locator("#join select")
    words = "(one) => [one.scrollWidth, one.clientWidth, one.getBoundingClientRect().right]"
    wanted, given, right = await seat.evaluate(words)
    assert wanted <= given
    assert right <= size[0]
