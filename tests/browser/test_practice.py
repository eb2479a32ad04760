"""Practice tables, by touch: a round is played again, or on from any of its moments."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Page, expect

from dealer.client import RemoteTable, connect
from dealer.languages.language import languages
from tests.browser.conftest import OpenPage
from tests.browser.table_page import codes, own_cards, place, tool
from tests.browser.test_finished import TOUCH, fits
from tests.browser.test_states import Reader
from tests.browser.touch import Fingers
from tests.harness.server_process import PATIENT, ServerProcess

PLAYERS = ("Ada", "Bob", "Cleo")
HAND = 5

pytestmark = pytest.mark.reuse_pages


class Played(NamedTuple):
    """A closed round in which Bob and Cleo have played a card each."""

    table: str
    tokens: list[str]
    hands: list[list[str]]
    """As they were dealt."""
    version: int
    """After Bob's card, before Cleo's."""
    led: str
    """Bob's card."""


async def played(server: ServerProcess, **rules: str) -> Played:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [
            await stack.enter_async_context(connect(server.url, name=name)) for name in PLAYERS
        ]
        opened = await houses[0].open(seats=3, rules=rules, name="Friday")
        tables: list[RemoteTable] = [await house.join(opened.id) for house in houses]
        ada, bob, cleo = tables
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await ada.deal(HAND)
        for table in tables:
            await table.until(lambda table: len(table.hand) == HAND)
        hands = [list(table.hand) for table in tables]
        await bob.play(hands[1][0])
        version = bob.version
        await cleo.play(hands[2][0])
        await ada.round_close()
        tokens = [str(table.token) for table in tables]
        return Played(ada.id, tokens, hands, version, hands[1][0])


async def phone(open_page: OpenPage, path: str) -> tuple[Page, Fingers]:
    page = await open_page(path, **TOUCH)
    return page, await Fingers.on(page)


async def open_practice(page: Page, fingers: Fingers, name: str) -> None:
    """From the lobby's form to the table, which says what it is."""
    await expect(page.get_by_role("heading", name="A practice table")).to_be_visible()
    await page.get_by_label("Your name").fill(name)
    await fingers.tap(page.get_by_role("button", name="Open the practice table"))
    await page.wait_for_url(re.compile(r"/tables/[0-9a-f]{32}$"))
    await says_practice(page)


async def says_practice(page: Page) -> None:
    """On the felt, in its name, and nowhere that the shuffle was fair."""
    badge = page.locator(".badge")
    await expect(badge).to_have_accessible_name(re.compile("^Practice deal .*no fair deal$"))
    await expect(badge.get_by_text("Practice deal")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("’s practice")
    await expect(page.get_by_text("The shuffle is fair")).to_have_count(0)
    await expect(page.get_by_role("log")).to_contain_text("Laid out for practice, not shuffled")
    await expect(page.get_by_role("log")).not_to_contain_text("sat down at seat 3")


async def test_play_it_again_deals_the_same_hands(open_page, server, axe) -> None:
    before = await played(server)
    page, fingers = await phone(open_page, f"/tables/{before.table}#seat={before.tokens[1]}")
    await expect(page.get_by_role("link", name="Check the shuffle")).to_be_visible()
    await fits(page)
    await fingers.tap(page.get_by_role("link", name="Practise it"))
    await expect(page.get_by_text("shuffled as it was then")).to_be_visible()
    await axe(page)
    await open_practice(page, fingers, "Bob")
    await expect(own_cards(page)).to_have_count(0)
    await axe(page)
    async with connect(server.url) as one, connect(server.url) as two:
        others = [await house.join(table_of(page), name=name, seat=seat)
                  for house, name, seat in ((one, "Eve", 1), (two, "Fay", 3))]  # fmt: skip
        await expect(page.locator("button.seat")).to_have_count(2)
        await page.keyboard.press(str(HAND))
        await fingers.tap(tool(page, "Deal"))
        await expect(own_cards(page)).to_have_count(HAND)
        assert sorted(await codes(page)) == sorted(before.hands[1])
        await others[1].until(lambda table: len(table.hand) == HAND)
        assert [table.hand for table in others] == [before.hands[0], before.hands[2]]

    await page.goto("/")
    own = page.get_by_role("region", name="Your tables").get_by_role("link").first
    await expect(own).to_have_accessible_name(
        re.compile("^Bob’s practice Practice, deal 1 · Seat 2 · ")
    )
    public = page.get_by_role("region", name="Open tables").get_by_role("link")
    await expect(public.filter(has_text="Bob’s practice").first).to_contain_text("Practice ·")
    await expect(public.filter(has_text="Friday").first).not_to_contain_text("Practice")
    await axe(page)


def table_of(page: Page) -> str:
    return page.url.rpartition("/")[2]


async def test_play_on_from_here_brings_every_card_where_it_lay(open_page, server, axe) -> None:
    before = await played(server, game="hearts")
    audit = f"/tables/{before.table}/audit#round=1&version={before.version}"
    page, fingers = await phone(open_page, audit)
    link = page.get_by_role("link", name="Play on from here")
    await expect(link).to_be_visible()
    for step in ("To the start", "To the end"):  # it is there at every moment
        href = str(await link.get_attribute("href"))
        await fingers.tap(page.get_by_role("button", name=step))
        await expect(link).not_to_have_attribute("href", href)
    await page.goto("about:blank")
    await page.goto(audit)
    await axe(page)
    await link.focus()  # with keys as with fingers
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("each where it lay at the chosen moment")).to_be_visible()
    await open_practice(page, fingers, "Eve")
    assert sorted(await codes(page)) == sorted(before.hands[0])
    await expect(place(page, "pile:table").locator("[data-card]")).to_have_count(1)
    await expect(place(page, "pile:table").locator(f'[data-card="{before.led}"]')).to_be_visible()

    await fingers.tap(page.locator(".badge"))
    sheet = page.get_by_role("dialog")
    await expect(sheet).to_contain_text("laid out as in deal 1 of an earlier game")
    await axe(page)
    source = sheet.get_by_role("link", name="See that deal")
    assert (await source.get_attribute("href") or "").endswith(audit)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Shift+L")
    await page.get_by_role("dialog").get_by_role("button", name="End the hand").tap()
    # Again is the same moment again, not the deck that was laid out.
    again = page.get_by_role("link", name="Practise it")
    await expect(again).to_have_attribute("href", re.compile(f"&version={before.version}$"))

    await page.goto(f"/tables/{table_of(page)}/audit")
    await expect(page.locator("#verdict-title")).to_have_text("Practice: not a fair deal")
    await expect(page.locator("#verdict")).not_to_have_class(re.compile("bad"))
    await expect(page.locator("#envelopes")).to_be_hidden()
    await expect(page.get_by_role("button", name="Laid out", exact=True)).to_be_visible()
    assert (await page.locator("#source").get_attribute("href") or "").endswith(audit)
    await expect(page.locator("#checks [data-state=failed]")).to_have_count(0)
    await page.get_by_text("The checks", exact=True).tap()
    await expect(page.locator("[data-check=tape]")).to_contain_text("which was laid out")
    await axe(page)
    await fits(page)


async def test_a_private_round_is_played_again_by_its_players_alone(open_page, server) -> None:
    before = await played(server, watch="nobody")
    page, fingers = await phone(open_page, f"/tables/{before.table}#seat={before.tokens[0]}")
    link = page.get_by_role("link", name="Practise it")
    href = str(await link.get_attribute("href"))
    await fingers.tap(link)
    await open_practice(page, fingers, "Ada")
    stranger, hers = await phone(open_page, href)
    await stranger.get_by_label("Your name").fill("Eve")
    await hers.tap(stranger.get_by_role("button", name="Open the practice table"))
    await expect(stranger.get_by_role("status")).to_contain_text("There is no table with that id")
    await hers.tap(stranger.get_by_role("link", name="Open an ordinary table instead"))
    await expect(stranger.get_by_role("radio", name="Any game")).to_be_visible()


async def test_the_finished_list_says_practice(open_page, server) -> None:
    before = await played(server)
    async with connect(server.url, name="Ada") as house:
        source = {"table": before.table, "round": 1}
        table = await house.open(from_=source, name="Saturday")
        await table.close()
        async with asyncio.timeout(PATIENT):  # the list is from the read models
            while table.id not in {one["table"] for one in await house.tables(closed=True)}:
                pass
    page = await open_page("/finished", **TOUCH)
    entry = page.get_by_role("listitem").filter(has_text="Saturday")
    await expect(entry).to_contain_text(re.compile(r"Practice · .*\d\d:\d\d"))


async def test_a_saved_page_has_no_server_to_play_on_at(open_page, server, tmp_path: Path) -> None:
    before = await played(server)
    page = await open_page(f"/tables/{before.table}/audit")
    await expect(page.get_by_role("link", name="Play on from here")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Game and audit page").click()
    await (await download.value).save_as(tmp_path / "audit.html")
    saved = await open_page((tmp_path / "audit.html").as_uri())
    await expect(saved.locator("#moment")).not_to_be_empty()
    await expect(saved.locator("#play-on")).to_be_hidden()


@pytest.mark.parametrize("tag", ["de", "fr", "ar"])
async def test_no_state_of_practice_cuts_words(open_page, server, axe, tag) -> None:
    """In languages with long words and one to the left, on a phone of 360 pixels."""
    language = languages()[tag]
    before = await played(server, game="hearts")
    page = await open_page(
        f"/#from={before.table}&round=1&version={before.version}", **TOUCH | {"locale": tag}
    )
    reader = Reader(page, language, axe)
    await expect(page.locator("#lobby form")).to_contain_text(
        language.text("lobby.practiceAt", round=1)
    )
    await reader.check()
    await page.locator("input[name=player]").fill("Maximiliane")
    await page.locator("#lobby button.primary").tap()
    await expect(page.locator(".badge")).to_contain_text(reader.says("badge.practice"))
    await reader.check()
    await reader.check_dialog(page.locator(".badge"))
    await page.keyboard.press("Shift+L")
    await page.locator("dialog").get_by_role("button").last.click()
    await expect(page.locator(".between").get_by_text(reader.says("playAgain"))).to_be_visible()
    await reader.check()
    await page.goto(f"/tables/{table_of(page)}/audit")
    title = language.message("audit.verdicts.practice")
    await expect(page.locator("#verdict-title")).to_have_text(title)
    await reader.check()
