"""The lobby: opening tables with options, and the list of open tables."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser.album import ENLARGE
from tests.browser.conftest import PHONE
from tests.browser.geometry import DRAWN, expect_seen
from tests.browser.table_page import (
    choose_game,
    close_invitation,
    expect_log,
    open_table,
    place,
)
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.reuse_pages


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """A server without tables at the first test of this file."""
    async with ServerProcess(tmp_path_factory.mktemp("lobby")) as server:
        yield server


async def test_a_name_and_one_button_open_a_table(open_page, axe) -> None:
    page = await open_page("/")
    await expect(page.get_by_text("No tables are open.")).to_be_visible()
    await axe(page)
    link = await open_table(page, "Ada")
    assert "#invite=" in link
    assert "#" not in page.url
    await expect(page).to_have_title("Ada’s table · dealer")
    await expect_log(page, "You sat down at seat 1.")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [(360, 640), (844, 390), (768, 1024), (1280, 800)])
async def test_a_tapped_game_opens_its_form_in_place(open_page, size, letters) -> None:
    page = await open_page("/", size={"width": size[0], "height": size[1]})
    tiles = page.locator(".tile")
    await expect(tiles).to_have_count(13)
    await page.evaluate(ENLARGE, letters)
    await page.evaluate(DRAWN)
    await expect(page.get_by_text("Open a table, send the link, play.")).to_be_visible()
    await expect(page.locator(".tile :checked")).to_have_count(0)
    await expect(page.get_by_label("Your name")).to_be_hidden()
    for name in ("Hearts", "Crazy eights"):
        await choose_game(page, name)
        await expect(page.get_by_role("button", name=f"Play {name}")).to_be_visible()
        await expect(page.get_by_label("Your name")).to_be_focused()
        await expect_seen(page, ".start input", ".start button")
        chosen = await page.locator(".tile:has(:checked)").bounding_box()
        opened = await page.locator(".opened").bounding_box()
        assert 0 <= opened["y"] - chosen["y"] - chosen["height"] < 40
    # What one writes into is still seen on a phone that is turned.
    if letters == 100:
        await page.set_viewport_size({"width": size[1], "height": size[0]})
        await expect_seen(page, ".start input")
    # By keys the games are passed one after the other, and the form does not take the focus.
    await page.get_by_role("radio", name="Crazy eights").focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("button", name="Play Klondike")).to_be_visible()
    await expect(page.get_by_role("radio", name="Klondike")).to_be_focused()


async def test_games_are_tiles_with_a_picture_and_their_players(open_page, axe) -> None:
    page = await open_page("/", size=PHONE, has_touch=True, is_mobile=True)
    tiles = page.locator(".tile")
    await expect(tiles.last).to_contain_text("Any game")
    front = ["Hearts", "Texas hold’em", "Go fish", "Klondike", "Crazy eights", "Gin rummy"]
    assert (await page.locator(".tile .title").all_inner_texts())[:6] == front
    hearts = tiles.filter(has_text="Hearts")
    await expect(hearts).to_contain_text("3–6 players")
    await expect(hearts.locator(".card")).to_have_count(2)
    await expect(tiles.filter(has_text="Colours").locator(".card[data-pack]")).to_have_count(3)
    await hearts.tap()
    await expect(page.get_by_text("3 to 6 players, best with 4; 52 cards.")).to_be_visible()
    await axe(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_role("button", name="Play Hearts").tap()
    await close_invitation(page)
    await page.get_by_role("button", name="Menu").tap()
    menu = page.get_by_role("dialog", name="Menu")
    await expect(menu.get_by_role("button", name="How to play: Hearts")).to_be_visible()


@pytest.mark.parametrize("size", [(360, 640), (844, 390), (768, 1024), (1280, 800)])
async def test_no_game_is_left_over_and_the_finished_ones_are_above_them(open_page, size) -> None:
    page = await open_page("/", size={"width": size[0], "height": size[1]})
    tiles = page.locator(".tile")
    await expect(tiles).to_have_count(13)
    await page.evaluate(DRAWN)
    all_, any_ = [await one.bounding_box() for one in (page.locator(".tiles"), tiles.last)]
    assert any_["width"] == pytest.approx(all_["width"], abs=1)
    above = await page.get_by_role("link", name="Check or replay it").bounding_box()
    first = await tiles.first.bounding_box()
    assert above["y"] + above["height"] <= first["y"]
    assert first["y"] + first["height"] <= size[1]
    small = await page.locator(".muted:visible").evaluate_all(
        "(all) => all.filter((one) => parseFloat(getComputedStyle(one).fontSize) < 14).length"
    )
    assert small == 0


async def test_no_tile_moves_when_the_games_are_there(open_page) -> None:
    """A tap meets the game that it meant, also where the list of games comes late."""
    page = await open_page("/")
    listed = asyncio.Event()

    async def late(route) -> None:
        await listed.wait()
        await route.continue_()

    await page.route("**/games.json", late)
    await page.reload()
    await expect(page.get_by_text("No tables are open.")).to_be_visible()
    await expect(page.locator(".tile")).to_have_count(0)
    listed.set()
    await expect(page.locator(".tile").first).to_contain_text("Hearts")
    await expect(page.locator(".tile").last).to_contain_text("Any game")


async def test_a_table_has_the_chosen_options(open_page, axe) -> None:
    page = await open_page("/")
    await choose_game(page)
    await page.get_by_text("Choose deck, seats and rules").click()
    await page.get_by_label("Name of the table").fill("Thursday")
    await page.get_by_label("Seats").fill("3")
    await page.get_by_label("Number of decks").fill("2")
    await page.get_by_role("combobox", name="Deck").select_option("32")
    await page.get_by_label("Rules").select_option("dealer")
    await page.get_by_label("Random bytes").select_option("house")
    await axe(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_role("button", name="Open a table").click()
    await close_invitation(page)
    await page.get_by_role("button", name="Shuffle and start").click()
    await expect_log(page, "Shuffled 64 cards, by the house only.")
    await expect(page).to_have_title("Thursday · dealer")

    other = await open_page(page.url[page.url.index("/tables") :])
    await expect(other.locator("select[name=seat] option")).to_have_text(
        ["The next free seat", "Seat 2", "Seat 3"]
    )


async def test_open_tables_are_listed_with_links(open_page) -> None:
    host = await open_page("/")
    await choose_game(host)
    await host.get_by_text("Choose deck, seats and rules").click()
    await host.get_by_label("Show this table in the list").check()
    await open_table(host, "Lena")
    player = await open_page("/", size=PHONE)
    await player.get_by_role("link", name="Lena’s table").click()
    await expect(player.get_by_role("heading", name="You are watching")).to_be_visible()


async def test_an_invite_only_table_needs_the_invitation(open_page) -> None:
    host = await open_page("/")
    await choose_game(host)
    await host.get_by_text("Choose deck, seats and rules").click()
    await host.get_by_label("Only players with the invite link can sit down").check()
    await host.get_by_label("Others may watch").uncheck()
    link = await open_table(host, "Ada")

    visitor = await open_page(link[link.index("/tables") : link.index("#")])
    await visitor.get_by_label("Your name").fill("Eve")
    await visitor.get_by_role("button", name="Sit down").click()
    await expect(visitor.locator("#join [role=status]")).not_to_be_empty()
    await expect(place(visitor, "deck")).to_have_count(0)

    await visitor.get_by_label("Your invite link").fill(link)
    await visitor.get_by_role("button", name="Sit down").click()
    await expect_log(host, "Eve sat down at seat 2.")


async def test_the_lobby_says_that_only_services_open_and_list_tables(
    open_page, axe, tmp_path
) -> None:
    options = {"open-tables": "service", "lobby": "service"}
    folder = tmp_path / "services"
    folder.mkdir()
    async with ServerProcess(folder, **options) as server:
        page = await open_page("/", at=server.port)
        await expect(page.get_by_text("This server lists no tables")).to_be_visible()
        await choose_game(page)
        await page.get_by_label("Your name").fill("Ada")
        await page.get_by_role("button", name="Open a table").click()
        await expect(page.get_by_text("On this server only services open tables")).to_be_visible()
        await axe(page)
        await page.goto("about:blank")  # before its server ends, to which it would connect again


async def test_ones_own_tables_are_listed_first_and_left_only_on_purpose(open_page, axe) -> None:
    page = await open_page("/", size=PHONE, has_touch=True, is_mobile=True)
    own = page.get_by_role("region", name="Your tables")
    await expect(own).to_have_count(0)
    await open_table(page, "Nora")
    table = page.url
    spade = page.get_by_role("link", name="All tables")
    await spade.tap()
    dialog = page.get_by_role("dialog", name="All tables")
    await expect(dialog).to_contain_text("You keep your seat")
    await dialog.get_by_role("button", name="Cancel").tap()
    assert page.url == table
    await spade.tap()
    await dialog.get_by_role("button", name="All tables").tap()
    await expect(own.get_by_role("link")).to_have_text(
        re.compile(r"^Nora’s table Seat 1 · .*\d\d:\d\d$")
    )
    await axe(page)
    other = await open_page("/")
    await expect(other.get_by_role("region", name="Your tables")).to_have_count(0)

    await own.get_by_role("link").tap()
    await expect(page.get_by_text("Welcome back to seat 1")).to_be_visible()
    await page.get_by_role("button", name="Menu").tap()
    await page.get_by_role("button", name="Leave your seat").tap()
    await page.get_by_role("dialog").get_by_role("button", name="Leave your seat").tap()
    await expect(page.get_by_role("button", name="Sit down")).to_be_visible()
    await spade.tap()  # a visitor is not asked
    await expect(page.get_by_role("heading", name="Open tables")).to_be_visible()
    await expect(own).to_have_count(0)
