"""The page of a broadcast: all hands face up, for a stream, a big screen and a phone."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from dealer.client import RemoteTable, connect
from tests.browser.conftest import PHONE, OpenPage
from tests.browser.geometry import expect_seen, resize
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import choose_game, close_invitation, shown_link
from tests.browser.test_first_view import OVERFLOW
from tests.harness.server_process import ServerProcess

HD, FULL_HD = {"width": 1280, "height": 720}, {"width": 1920, "height": 1080}
TWO = ("Ada", "Bob")
MANY = ("Ada", "Bob", "Cleo", "Maximiliane", "Eve", "Fred", "Gina", "Hal", "Ines", "A long name")
CLEAR = "rgba(0, 0, 0, 0)"
INVALID = "There is no broadcast with this link"
PICTURES = os.environ.get("DEALER_PICTURES")
"""A folder for pictures of what the tests have seen; unset, none are taken."""

CONTROLS = "button, a, input, select, textarea, summary, [tabindex], [onclick], dialog"


@asynccontextmanager
async def shown_table(
    server: ServerProcess, names: Sequence[str], deal: int, **rules: Any
) -> AsyncIterator[tuple[list[RemoteTable], str]]:
    """A table in a round at which all play by clients, and the path of its broadcast.

    A card of the first player lies on the table, and it is the second one's turn.
    """
    async with AsyncExitStack() as stack:
        houses = [await stack.enter_async_context(connect(server.url, name=name)) for name in names]
        opened = await houses[0].open(
            name="The final", seats=len(names), rules={"broadcast": 0, **rules}
        )
        tables = [await house.join(opened.id) for house in houses]
        host = tables[0]
        await host.until(lambda table: len(table.seats) == len(names))
        await host.round_open()
        await host.shuffle()
        await host.deal(deal)
        await host.note("score", "2:26")
        await host.play(host.hand[:1])
        await host.note("turn", "2")
        for table in tables:
            await table.until(lambda one: one.version >= host.version)
        yield tables, await host.broadcast_link()


async def expect_hands(page: Page, tables: Sequence[RemoteTable]) -> None:
    for table in tables:
        cards = page.locator(f'[data-stack="hand:{table.seat}"] .card[data-face="up"]')
        await expect(cards).to_have_count(len(table.hand))
        codes = await cards.evaluate_all("(all) => all.map((one) => one.dataset.card)")
        assert sorted(codes) == sorted(table.hand)


async def take_picture(page: Page, name: str, **more: Any) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", **more)


async def test_all_hands_are_shown_and_followed_without_controls(server, open_page, axe) -> None:
    async with shown_table(server, TWO, 5) as (tables, link):
        page = await open_page(link, size=HD)
        await expect_hands(page, tables)
        await expect(page.locator('[data-stack="hand:2"]')).to_have_attribute("data-turn", "")
        await expect(page.locator('[data-stack="hand:2"] h3')).to_contain_text("Bob · 26")
        await expect(page.locator('[data-stack="pile:table"] [data-face="up"]')).to_have_count(1)
        await expect(page.locator("#said")).to_contain_text("Ada")
        await expect(page.locator("#delay")).to_have_text("Live")
        await expect(page).to_have_title("The final")
        await expect(page.locator(CONTROLS)).to_have_count(0)
        await axe(page)
        await page.emulate_media(color_scheme="dark")
        await axe(page)

        await tables[1].play(tables[1].hand[:1])
        await tables[1].note("turn", "1")
        await expect(page.locator('[data-stack="pile:table"] [data-face="up"]')).to_have_count(2)
        await expect(page.locator('[data-stack="hand:1"]')).to_have_attribute("data-turn", "")
        await expect(page.locator('[data-stack="hand:2"]')).not_to_have_attribute("data-turn", "")
        await expect(page.locator("#said")).to_contain_text("Bob")
        await expect_hands(page, tables)

        await tables[0].round_close()
        await tables[0].close()
        await expect(page.locator("#status")).to_have_text("closed")
        await expect(page.locator("#delay")).to_have_text("")


@pytest.mark.parametrize("size", [HD, FULL_HD], ids=["720", "1080"])
@pytest.mark.parametrize(("names", "deal"), [(TWO, 5), (MANY[:4], 13), (MANY, 5)])
async def test_all_of_it_is_on_the_screen(server, open_page, size, names, deal) -> None:
    async with shown_table(server, names, deal) as (tables, link):
        page = await open_page(link, size=size)
        await expect_hands(page, tables)
        await take_picture(page, f"{size['height']}-{len(names)}x{deal}")
        await expect_seen(page, "#table-view .card[data-face=up]", ".hand h3 b", "#said", "#delay")
        scrolls = """() => [document.scrollingElement, document.querySelector("#table-view")].map(
          (one) => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight])"""
        assert await page.evaluate(scrolls) == [[0, 0], [0, 0]]
        name = page.locator(".hand h3 b").first
        letters = "(one) => parseFloat(getComputedStyle(one).fontSize)"
        assert await name.evaluate(letters) >= size["height"] / 40
        width = "(least) => document.querySelector('.hand .card').offsetWidth > least"
        await page.wait_for_function(width, arg=size["height"] / 18)  # once all cards are laid out


async def test_over_a_stream_there_is_no_ground(server, open_page) -> None:
    async with shown_table(server, TWO, 5) as (tables, link):
        page = await open_page(link.replace("#", "?transparent#"), size=HD, color_scheme="dark")
        await expect_hands(page, tables)
        for part in ("html", "body", "#table-view"):
            await expect(page.locator(part)).to_have_css("background-color", CLEAR)
            await expect(page.locator(part)).to_have_css("background-image", "none")
        await expect(page.locator(".hand h3 b").first).not_to_have_css("background-color", CLEAR)
        await expect(page.locator("#said")).not_to_have_css("background-color", CLEAR)
        await take_picture(page, "transparent", omit_background=True)


@pytest.mark.parametrize(("names", "deal"), [(TWO, 5), (MANY[:4], 13)])
async def test_on_a_phone_it_is_as_wide_as_the_screen(server, open_page, axe, names, deal) -> None:
    async with shown_table(server, names, deal) as (tables, link):
        page = await open_page(link, size=PHONE, has_touch=True, is_mobile=True)
        await expect_hands(page, tables)
        await take_picture(page, f"phone-{len(names)}x{deal}", full_page=True)
        assert await page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
        assert await page.evaluate(OVERFLOW) == []
        widths = "(all) => all.map((one) => one.getBoundingClientRect().width)"
        assert min(await page.locator(".hand .card").evaluate_all(widths)) >= 36
        await axe(page)


@pytest.mark.parametrize(("locale", "said"), [("en", "1 second late"), ("de", "1 Sekunde später")])
async def test_the_delay_is_said(server, open_page, locale, said) -> None:
    async with shown_table(server, TWO, 2, broadcast=1) as (tables, link):
        page = await open_page(link, size=HD, locale=locale)
        await expect_hands(page, tables)
        await expect(page.locator("#delay")).to_have_text(f"Live · {said}")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_cards_move_where_motion_is_welcome(server, open_page, motion) -> None:
    async with shown_table(server, TWO, 2) as (tables, link):
        page = await open_page(link, size=HD, reduced_motion=motion)
        await expect_hands(page, tables)
        await page.evaluate(
            """() => {
              window.moved = 0;
              const animate = Element.prototype.animate;
              Element.prototype.animate = function (...given) {
                window.moved += 1;
                return animate.apply(this, given);
              };
            }"""
        )
        await tables[1].play(tables[1].hand[:1])
        await expect_hands(page, tables)
        assert (await page.evaluate("window.moved") > 0) == (motion == "no-preference")


async def test_a_link_that_is_not_valid_has_one_sentence(server, open_page: OpenPage) -> None:
    async with shown_table(server, TWO, 2) as (tables, link):
        path, _, secret = link.partition("#")
        other = "0" if secret[-1] != "0" else "1"
        for wrong in (path, f"{path}#", f"{path}#nonsense", f"{link[:-1]}{other}"):
            page = await open_page(wrong, size=HD)
            await expect(page.locator("#said")).to_contain_text(INVALID)
            await expect(page.locator("#table-view")).to_be_hidden()
            assert len((await page.locator("body").inner_text()).strip().splitlines()) == 1
        page = await open_page(link, size=HD)
        await expect_hands(page, tables)
        assert await tables[0].revoke_broadcast()
        await expect(page.locator("#said")).to_contain_text(INVALID)
        await resize(page, (800, 600))
        await expect(page.locator("#table-view")).to_be_hidden()


async def test_the_host_finds_the_address_without_seeing_hands(server, open_page) -> None:
    path, _ = await prepared_table(server, TWO, deal=3, rules={"broadcast": 0})
    table = path.partition("#")[0]
    page = await open_page(path)
    await expect(page.locator("#hand li")).to_have_count(3)
    await page.goto(f"{table}/broadcast")
    address = page.locator("#said code")
    await expect(address).to_have_text(re.compile(rf"^http.*{table}/broadcast#[0-9a-f.]+$"))
    await expect(page.locator("#table-view")).to_be_hidden()
    await take_picture(page, "host")
    link = await address.inner_text()
    stranger = await open_page(link, size=HD)
    await expect(stranger.locator('.hand .card[data-face="up"]')).to_have_count(6)
    # The link is taken back there, too, and another one made.
    await page.get_by_role("button", name="Take back this link").click()
    await expect(page.locator("#said")).to_contain_text("sees the table by that link any more")
    await expect(stranger.locator("#said")).to_contain_text(INVALID)
    await page.get_by_role("button", name="Make a new link").click()
    await expect(address).to_be_visible()
    assert await address.inner_text() != link


async def test_a_table_for_commentators_is_opened_in_the_lobby(server, open_page, axe) -> None:
    page = await open_page("/")
    await choose_game(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_text("Choose deck, seats and rules").click()
    await page.get_by_label("Minutes until hands are shown to commentators").fill("5")
    await axe(page)
    await page.get_by_role("button", name="Open a table").click()
    said = "Hands of this table are shown to commentators after 5 minutes."
    invitation = page.get_by_role("dialog", name="Invite players")
    await expect(invitation).to_contain_text(said)
    invited = await shown_link(page)
    await close_invitation(page)
    invitee = await open_page(invited)
    await expect(invitee.get_by_text(said)).to_be_visible()  # before they sit down
    await page.get_by_role("button", name="Menu").click()
    menu = page.get_by_role("dialog", name="Menu")
    await expect(menu).to_contain_text(said)
    await take_picture(page, "menu")
    await menu.get_by_role("link", name="Link for commentators").click()
    await expect(page.locator("#said code")).to_have_text(re.compile(r"/broadcast#[0-9a-f]+$"))
    await take_picture(page, "link")
    await axe(page)
