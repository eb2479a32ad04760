"""What small screens and large letters leave out, so that what matters has its room."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Locator, Page, expect

from dealer.client import RemoteTable
from tests.browser.conftest import OpenPage
from tests.browser.geometry import DRAWN
from tests.browser.table_page import own_cards, place
from tests.browser.test_large_text import hearts, on_screen, phone, places_of, trick
from tests.browser.test_looks import box, by_touch, seated
from tests.harness.server_process import PATIENT, ServerProcess

LANGUAGES = ["en", "de", "fr", "es", "pl", "zh", "ar"]
IS_WHOLE = """(one) =>
  one.scrollWidth <= one.clientWidth + 1 && one.scrollHeight <= one.clientHeight + 1"""


async def enlarge(page: Page, letters: int) -> None:
    await page.evaluate(
        "(percent) => { document.documentElement.style.fontSize = `${percent}%`; }", letters
    )
    await page.evaluate(DRAWN)


async def rows(buttons: Locator) -> int:
    tops = await buttons.evaluate_all("(all) => all.map((one) => one.offsetTop)")
    return len(set(tops))


async def any_game(stack: AsyncExitStack, server: ServerProcess) -> list[RemoteTable]:
    """Two players, the first of whom is the host, in a round without a game file that was dealt."""
    ada, bob = await seated(stack, server, name="Ada’s table")
    await ada.round_open(entropy="house")
    await ada.shuffle()
    await ada.deal(5)
    return [ada, bob]


@pytest.mark.parametrize(
    ("size", "letters"),
    [((360, 640), 100), ((390, 844), 150), ((844, 390), 100), ((1280, 800), 100)],
)
async def test_the_cards_of_four_players_are_a_cross(open_page, server, size, letters) -> None:
    page = await phone(open_page, await hearts(server), size, letters=letters)
    await expect(trick(page)).to_have_count(3)
    await own_cards(page).first.tap()
    await page.get_by_role("button", name="Play", exact=True).tap()
    await expect(trick(page)).to_have_count(4)
    left, across, right, own = await places_of(trick(page))
    # On a low felt the cross is turned a little, so that no card covers the index of another.
    assert (across[0] + own[0]) / 2 == pytest.approx((left[0] + right[0]) / 2, abs=2)
    assert (across[1] + own[1]) / 2 == pytest.approx((left[1] + right[1]) / 2, abs=2)
    assert left[1] == pytest.approx(right[1], abs=2)
    assert left[0] < across[0] <= own[0] + 2 < right[0]
    assert across[1] < left[1] < own[1]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_the_header_says_is_not_cut_off(open_page, server, language) -> None:
    """On a narrow screen the mark of the shuffle has the place of the status."""
    path = await hearts(server)
    for size, seen in (((360, 640), ".badge"), ((844, 390), ".title p")):
        page = await phone(open_page, path, size, locale=language)
        words = page.locator(f"#header {seen}")
        await expect(words).to_be_visible()
        assert await words.evaluate(IS_WHOLE), seen


@pytest.mark.parametrize("letters", [100, 150])
async def test_the_name_of_a_table_is_not_cut_off(
    open_page: OpenPage, server: ServerProcess, letters: int
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        page = await by_touch(open_page, (await any_game(stack, server))[0])
        await enlarge(page, letters)
        name = page.get_by_role("heading", name="Ada’s table")
        await expect(name).to_be_visible()
        assert await name.evaluate(IS_WHOLE)


async def test_on_a_phone_a_pile_of_burned_cards_is_drawn_when_it_has_one(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await any_game(stack, server)
        page = await by_touch(open_page, ada)
        await expect(place(page, "pile:discard")).to_be_visible()
        await expect(place(page, "pile:burn")).to_be_hidden()
        assert (await box(place(page, "deck").locator(".card").last))["width"] >= 54
        await bob.burn(1)
        await on_screen(place(page, "pile:burn"))


async def test_the_stacks_of_any_game_fill_a_desktop(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await any_game(stack, server)
        path = f"/tables/{ada.id}#seat={ada.token}"
        page = await open_page(path, size={"width": 1280, "height": 800})
        await expect(place(page, "deck")).to_be_visible()
        assert (await box(place(page, "deck").locator(".card").last))["width"] >= 90
        for letters in (100, 150):
            await enlarge(page, letters)
            stacks = page.locator(".stacks > li")
            await expect(stacks).to_have_count(4)
            assert await rows(stacks) == 1


async def test_large_letters_leave_the_trick_of_a_desktop_large(open_page, server) -> None:
    """The tricks of the player across are beside the chip, not between it and the trick."""
    page = await phone(open_page, await hearts(server), (1280, 800), letters=150)
    await expect(trick(page)).to_have_count(3)
    assert (await box(trick(page).first))["width"] >= 76


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_comes_after_a_round_has_two_rows(
    open_page: OpenPage, server: ServerProcess, language: str, letters: int
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await any_game(stack, server)
        await ada.round_close()
        page = await open_page(
            f"/tables/{ada.id}#seat={ada.token}", locale=language,
            size={"width": 360, "height": 640}, has_touch=True, is_mobile=True,
        )  # fmt: skip
        await enlarge(page, letters)
        buttons = page.locator(".between .next > :visible")
        await expect(buttons).to_have_count(3)
        assert await rows(buttons) == 2


@pytest.mark.parametrize("language", LANGUAGES)
async def test_large_letters_leave_the_lobby_of_a_phone_a_game(open_page, language) -> None:
    page = await open_page("/", size={"width": 360, "height": 640}, locale=language)
    await enlarge(page, 150)
    await page.wait_for_function(
        """() => {
          const name = document.querySelector(".tiles label .title");
          return name?.getBoundingClientRect().bottom <= innerHeight;
        }"""  # once the styles and pictures of the tiles are there
    )


async def test_sentences_of_the_audit_are_not_as_narrow_as_a_word(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await any_game(stack, server)
        await ada.round_close()
        page = await open_page(
            f"/tables/{ada.id}/audit", size={"width": 360, "height": 640}, has_touch=True,
            is_mobile=True,
        )  # fmt: skip
        sentences = page.locator("#envelopes li > span")
        await expect(sentences).to_have_count(3)
        await page.locator("#explained-title").tap()
        for letters in (100, 150):
            await enlarge(page, letters)
            for one in await sentences.all():
                assert (await box(one))["width"] >= 9 * 16 * letters / 100


async def test_a_touch_screen_shows_no_keys(open_page: OpenPage, server: ServerProcess) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await any_game(stack, server)
        await ada.round_close()
        keys = '[data-text="keys"]'
        path = f"/tables/{ada.id}/audit"
        touched = await open_page(path, has_touch=True, is_mobile=True)
        await expect(touched.locator("#copy")).to_be_visible()
        await expect(touched.locator(keys)).to_be_hidden()
        typed = await open_page(path)
        await expect(typed.locator(keys)).to_be_visible()
