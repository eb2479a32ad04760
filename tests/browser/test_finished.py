"""Games that are over: the list of finished tables, the history page, and the audit's verdict."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from dealer.client import connect
from tests.browser.conftest import PHONE
from tests.browser.table_page import open_table
from tests.browser.test_first_view import OVERFLOW
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.reuse_pages

TOUCH = {"size": PHONE, "has_touch": True, "is_mobile": True, "locale": "en-GB"}
CARD = re.compile("^(10|[2-9JQKA])[♠♥♦♣]")
SMALL = """() => [...document.querySelectorAll("button, select, summary, input, nav a")]
  .filter((one) => one.checkVisibility() && !one.matches(".visually-hidden"))
  .filter((one) => one.getBoundingClientRect().height < 44)
  .map((one) => one.outerHTML.slice(0, 100))"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """A server without tables at the first test of this file."""
    async with ServerProcess(tmp_path_factory.mktemp("finished")) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hearts(server: ServerProcess) -> str:
    """The id of a closed public table at which hearts was played: Bob won a trick."""
    async with connect(server.url, name="Ada") as ada, connect(server.url, name="Bob") as bob:
        opened = await ada.open(seats=2, rules={"game": "hearts"}, name="Friday")
        tables = [await house.join(opened.id) for house in (ada, bob)]
        table = tables[0]
        await table.until(lambda one: len(one.seats) == 2)
        await table.round_open()
        await table.shuffle()
        await table.deal(1)
        for each in tables:
            await each.until(lambda one: len(one.hand) == 1)
            await each.play(each.hand[:1])
        await table.until(lambda one: len(one.piles["table"]) == 2)
        await table.move("pile:table", to="pile:won:2", count=2)
        await table.round_close()
        await table.close()
        return opened.id


async def fits(page: Page) -> None:
    width = await page.evaluate("document.documentElement.clientWidth")
    assert await page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert await page.evaluate(OVERFLOW) == []
    assert await page.evaluate(SMALL) == []


async def test_a_finished_game_is_found_from_the_lobby_and_checked(open_page, axe, hearts) -> None:
    page = await open_page("/", **TOUCH)
    await page.get_by_role("link", name="Check or replay it").tap()
    public = page.get_by_role("region", name="Public games")
    await expect(public.get_by_text("Friday")).to_be_visible()
    await axe(page)
    await page.emulate_media(color_scheme="dark")
    await axe(page)
    assert await page.evaluate(OVERFLOW) == []
    await public.get_by_role("link", name="Is it fair?: Friday").tap()
    await expect(page.locator("#verdict-title")).to_contain_text("Fair")


async def test_ones_own_closed_table_is_listed_there_and_not_in_the_lobby(open_page) -> None:
    page = await open_page("/", **TOUCH)
    await open_table(page, "Nora")
    await page.get_by_role("button", name="Menu").tap()
    await page.get_by_role("dialog").get_by_role("button", name="Close the table").tap()
    await page.get_by_role("dialog").get_by_role("button", name="Close the table").tap()
    await expect(page.get_by_text("This table is closed").first).to_be_visible()
    await page.get_by_role("link", name="All tables").tap()
    await expect(page.get_by_role("heading", name="Open tables")).to_be_visible()
    await expect(page.get_by_role("region", name="Your tables")).to_have_count(0)
    await page.get_by_role("link", name="Check or replay it").tap()
    own = page.get_by_role("region", name="Your games")
    await expect(own.get_by_text("Nora’s table")).to_be_visible()
    # It was not listed while it was open, and so it is not now.
    await expect(page.get_by_role("region", name="Public games")).not_to_contain_text("Nora")
    await own.get_by_role("link", name="What happened: Nora’s table").tap()
    await expect(page.locator("#lines")).to_contain_text("Nora sits down at seat 1")


async def test_the_history_is_a_page_for_a_phone_with_the_games_titles(
    open_page, axe, hearts
) -> None:
    page = await open_page(f"/tables/{hearts}/history", **TOUCH)
    await expect(page.get_by_role("heading", name="Round 1", exact=False)).to_be_visible()
    await expect(page.locator("#lines")).to_contain_text("to “Tricks of seat 2”")
    await expect(page.locator("#lines")).not_to_contain_text("won:2")
    await expect(page.locator("#lines .cards").first.locator("span")).to_have_count(52)
    await expect(page.locator("#lines li [data-suit]").first).to_have_text(CARD)
    committed = page.get_by_text("Ada (seat 1) commits to random bytes").first
    await expect(committed).to_be_hidden()  # with all that proves the shuffle
    await page.get_by_text("How the shuffle is proved").first.tap()
    await expect(committed).to_be_visible()
    assert await page.locator('link[rel="icon"]').count() == 1
    await fits(page)
    await axe(page)
    await page.emulate_media(color_scheme="dark")
    await axe(page)
    await page.get_by_role("link", name="Is it fair?").tap()
    await expect(page.locator("#verdict-title")).to_be_visible()


async def test_only_players_read_the_history_of_a_private_table(open_page, server) -> None:
    async with connect(server.url, name="Ada") as ada:
        opened = await ada.open(rules={"watch": "nobody"})
        page = await open_page(f"/tables/{opened.id}/history")
        await expect(page.get_by_text("Only players of this table may read")).to_be_visible()
        page.errors.expect("status of 401")


async def test_the_verdict_comes_first_with_one_picture_and_plain_words(
    open_page, axe, hearts
) -> None:
    page = await open_page(f"/tables/{hearts}/audit", **TOUCH)
    verdict = page.get_by_role("heading", name="Fair, as far as this file shows")
    await expect(verdict).to_be_in_viewport()
    await expect(page.locator("#verdict-tally")).to_contain_text("6 of 7 checks passed")
    pictures = page.locator("#envelopes li")
    await expect(pictures).to_have_count(3)
    await expect(pictures.first).to_be_hidden()
    await expect(pictures.first).to_contain_text("the house, Ada and Bob")
    await expect(pictures.first.locator("svg .envelope")).to_have_count(3)
    first = " ".join(await page.locator("#verdict > *").all_inner_texts()).lower()
    for word in ("random bytes", "swap", "bundle", "checkpoint", "round", "host"):
        assert word not in first, word
    await expect(page.get_by_text("Each move is legal")).to_be_hidden()
    await page.get_by_text("How deal 1 was shuffled").tap()
    await expect(pictures.first.locator("svg")).to_be_visible()
    await page.get_by_text("The checks", exact=True).tap()
    await expect(page.get_by_text("Each move is legal")).to_be_visible()
    await fits(page)
    await axe(page)


async def test_piles_have_the_games_titles_in_the_replay(open_page, hearts) -> None:
    page = await open_page(f"/tables/{hearts}/audit#round=1")
    history = page.locator("#history-lines")
    await expect(history).to_contain_text("goes from “Trick” to “Tricks of seat 2”.")
    await page.get_by_role("button", name="To the end").click()
    await expect(page.locator('[data-stack="pile:won:2"] h3')).to_contain_text("Tricks of seat 2")


@pytest.mark.reuse_pages(False)
@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/", "/history.txt"),
        ("/finished", "/history.txt"),
        ("/tables/{table}", "/history.txt"),
        ("/tables/{table}/history", "plain text"),
        ("/tables/{table}/audit", "dealer verify bundle.jsonl"),
    ],
)
async def test_without_javascript_a_page_says_what_it_needs(
    open_page, hearts, path: str, says: str
) -> None:
    """In each language, since only scripts choose one."""
    page = await open_page(path.format(table=hearts), **TOUCH, java_script_enabled=False)
    sentences = page.locator("noscript p[lang]")
    await expect(sentences).to_have_count(7)
    await expect(sentences.first).to_contain_text(says)
    for sentence in await sentences.all():
        await sentence.scroll_into_view_if_needed()
        await expect(sentence).to_be_in_viewport()
    if path.endswith("/audit"):
        await expect(page.locator("#file")).to_be_hidden()
    elif path.endswith("/history"):
        await page.get_by_role("link", name="history.txt").tap()
        await expect(page.locator("body")).to_contain_text("sits down at seat 1")


async def test_an_operator_hides_the_finished_tables(open_page, tmp_path) -> None:
    async with ServerProcess(tmp_path, finished="service") as server:
        page = await open_page("/finished", at=server.port)
        await expect(page.get_by_text("This server lists no finished tables")).to_be_visible()
        await page.goto("about:blank")  # before its server ends
