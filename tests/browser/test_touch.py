"""Playing with fingers: drags, long presses and taps by touch events, on phones of all sizes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.conftest import AxeCheck, page_opener
from tests.browser.player_page import PlayerPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import close_round, codes, holds, own_hand, place, tool
from tests.browser.touch import Fingers, Point, middle
from tests.harness.server_process import ServerProcess

SIZES = [(320, 568), (360, 640), (390, 844), (430, 932), (568, 320), (844, 390)]
SMALL = (360, 640)

pytestmark = pytest.mark.reuse_pages


@dataclass(frozen=True, slots=True)
class Phone:
    """A player on a phone, and their fingers."""

    player: PlayerPage
    fingers: Fingers

    @property
    def page(self) -> Page:
        return self.player.page

    def card(self, index: int) -> Locator:
        return self.player.cards.nth(index)

    @property
    def sheet(self) -> Locator:
        return self.page.get_by_role("dialog")

    async def choose(self, label: str | re.Pattern[str]) -> None:
        """Tap a button of the open sheet."""
        button = self.sheet.get_by_role("button", name=label, exact=isinstance(label, str))
        await self.fingers.tap(button)

    async def open_sheet(self, source: Locator) -> None:
        """Open the sheet of a card, a stack or a player with a long press."""
        await self.fingers.hold(source)
        await self.fingers.lift()
        await expect(self.sheet).to_be_visible()


@dataclass(frozen=True, slots=True)
class Game:
    """Ada, who plays with a mouse, is the host; Bob has a phone. Each has five cards."""

    ada: PlayerPage
    bob: Phone


def viewport(size: tuple[int, int]) -> ViewportSize:
    width, height = size
    return {"width": width, "height": height}


@pytest_asyncio.fixture(loop_scope="session")
async def game(open_page: Any, server: ServerProcess) -> Game:
    return await prepared_game(open_page, server)


@pytest_asyncio.fixture(loop_scope="session")
async def joined_game(open_page: Any, server: ServerProcess, size: tuple[int, int]) -> Game:
    return await dealt_game(open_page, server, size)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_game(browser: Browser, shared_server: ServerProcess) -> AsyncIterator[Game]:
    async with page_opener(browser, shared_server) as open_page:
        yield await prepared_game(open_page, shared_server)


@pytest_asyncio.fixture(loop_scope="session")
async def bob_at(shared_game: Game, size: tuple[int, int]) -> Phone:
    """Bob's page, opened again at a size; for tests that do not change the game."""
    bob = shared_game.bob
    await bob.page.set_viewport_size(viewport(size))
    await bob.page.reload()
    await bob.player.holds(5)
    return bob


async def prepared_game(open_page: Any, server: ServerProcess) -> Game:
    """A game on a small phone, at a table where clients have shuffled and dealt."""
    paths = await prepared_table(server, ("Ada", "Bob"), deal=5)
    ada = PlayerPage(await open_page(paths[0]), "Ada")
    page = await open_page(paths[1], size=viewport(SMALL), has_touch=True, is_mobile=True)
    bob = Phone(PlayerPage(page, "Bob"), await Fingers.on(page))
    for one, other in ((ada, bob.player), (bob.player, ada)):
        await one.holds(5)
        await expect(one.other(other.name)).to_have_accessible_name(re.compile("here$"))
    return Game(ada, bob)


async def dealt_game(open_page: Any, server: ServerProcess, size: tuple[int, int]) -> Game:
    """A game at which Bob sits down with a finger, and Ada deals."""
    (path,) = await prepared_table(server, ("Ada",), deal=None)
    ada = PlayerPage(await open_page(path), "Ada")
    page = await open_page(
        path.partition("#")[0], size=viewport(size), has_touch=True, is_mobile=True
    )
    bob = Phone(PlayerPage(page, "Bob"), await Fingers.on(page))
    await bob.page.get_by_label("Your name").fill("Bob")
    await bob.fingers.tap(bob.player.button("Sit down"))
    await expect(own_hand(bob.page)).to_be_visible()
    await ada.do("Shuffle and start")
    await ada.set_count(5)
    await ada.do("Deal")
    await bob.player.holds(5)
    return Game(ada, bob)


@pytest.mark.parametrize("size", SIZES)
async def test_a_game_is_played_with_a_finger(joined_game: Game) -> None:
    ada, bob = joined_game.ada, joined_game.bob
    page, fingers = bob.page, bob.fingers

    await fingers.drag(place(page, "deck"), place(page, "pile:table"))
    await holds(ada.page, "pile:table", 1)
    await expect(place(ada.page, "pile:table").locator('[data-face="up"]')).to_have_count(1)
    await fingers.drag(place(page, "deck"), own_hand(page))
    await bob.player.holds(6)
    await fingers.drag(place(page, "pile:table"), place(page, "pile:discard"))
    await holds(ada.page, "pile:discard", 1)
    await fingers.drag(place(page, "pile:discard"), own_hand(page))
    await bob.player.holds(7)

    before = await codes(page)
    await fingers.press(await middle(bob.card(0)))
    start, end = await middle(bob.card(0)), await middle(bob.card(3))
    await fingers.move(Point(start.x, start.y - 40))
    await fingers.move(Point(end.x + 4, end.y))
    await fingers.lift()
    await expect(bob.card(0).locator(".card")).to_have_attribute("data-card", before[1])
    first, *others = before
    after = await codes(page)
    assert first in after[2:4]
    assert [code for code in after if code != first] == others

    await fingers.drag(bob.card(0), place(page, "pile:table"))
    await holds(ada.page, "pile:table", 1)
    await bob.player.holds(6)
    given = (await codes(page))[0]
    await fingers.drag(bob.card(0), place(page, "hand:1"))
    await expect(bob.sheet).to_contain_text("to Ada?")
    await bob.choose("Give")
    await expect(own_hand(ada.page).locator(f'[data-card="{given}"]')).to_be_visible()

    await bob.open_sheet(bob.card(1))
    await bob.choose("Play face down")
    await holds(ada.page, "pile:table", 2)
    await fingers.tap(place(page, "deck"))
    await bob.player.holds(5)


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_finger_presses_is_large_enough(bob_at: Phone) -> None:
    page = bob_at.page
    await bob_at.fingers.tap(bob_at.card(0))
    small = await page.evaluate(
        """() => [...document.querySelectorAll("button")]
          .filter((one) => one.checkVisibility())
          .map((one) => [one.textContent, one.getBoundingClientRect()])
          .filter(([, box]) => box.width < 44 || box.height < 44)
          .map(([text, box]) => `${text}: ${box.width} by ${box.height}`)"""
    )
    assert small == []


@pytest.mark.parametrize("size", SIZES)
async def test_the_deck_the_piles_and_the_hand_are_visible_together(bob_at: Phone) -> None:
    page = bob_at.page
    for one in (place(page, "deck"), place(page, "pile:table"), bob_at.card(0), bob_at.card(4)):
        await expect(one).to_be_in_viewport(ratio=0.9)
    await expect(tool(page, "Draw")).to_be_in_viewport()


async def test_selected_cards_are_dragged_together(game: Game) -> None:
    bob = game.bob
    taken = [(await codes(bob.page))[index] for index in (0, 2)]
    for index in (0, 2):
        await bob.fingers.tap(bob.card(index))
    await bob.fingers.press(await middle(bob.card(2)))
    await bob.fingers.move(await middle(place(bob.page, "pile:table")))
    ghost = bob.page.locator(".ghost")
    await expect(ghost).to_have_attribute("data-count", "2")
    drawn = await ghost.locator(".card").evaluate_all("all => all.map(one => one.dataset.card)")
    assert drawn == taken
    await bob.fingers.lift()
    await holds(game.ada.page, "pile:table", 2)
    await bob.player.holds(3)


async def test_an_unselected_card_moves_alone_and_the_selection_stays(game: Game) -> None:
    bob = game.bob
    await bob.fingers.tap(bob.card(0))
    await bob.fingers.drag(bob.card(4), place(bob.page, "pile:discard"))
    await holds(game.ada.page, "pile:discard", 1)
    await expect(bob.card(0)).to_have_attribute("aria-selected", "true")


async def test_cards_are_drawn_as_they_will_be_seen(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    faces = page.locator(".ghost .card[data-face='up']")
    backs = page.locator(".ghost .card[data-face='down']")
    table = place(page, "pile:table")
    await bob.fingers.press(await middle(bob.card(0)))
    await bob.fingers.move(await middle(table))
    await expect(faces).to_have_count(1)
    await expect(table).to_have_attribute("data-over", "yes")
    await expect(page.locator("[data-target]")).not_to_have_count(0)
    await bob.fingers.move(await middle(place(page, "pile:discard")))
    await expect(backs).to_have_count(1)
    await bob.fingers.move(Point(2, 5))  # the header
    await bob.fingers.lift()
    await expect(page.locator(".ghost, [data-over], [data-target], .lifted")).to_have_count(0)
    await bob.player.holds(5)

    for _ in range(2):
        await bob.fingers.tap(bob.player.button("More cards"))
    await bob.fingers.press(await middle(place(page, "deck")))
    await bob.fingers.move(await middle(own_hand(page)))
    await expect(backs).to_have_count(3)
    await bob.fingers.lift()
    await bob.player.holds(8)


async def test_a_cancelled_touch_and_a_second_finger_move_nothing(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    ghost = page.locator(".ghost")
    await bob.fingers.press(await middle(bob.card(0)))
    await bob.fingers.move(await middle(place(page, "pile:table")))
    await expect(ghost).to_be_visible()
    await bob.fingers.cancel()
    await expect(ghost).to_have_count(0)
    await expect(bob.card(0).locator(".lifted")).to_have_count(0)

    await bob.fingers.press(await middle(bob.card(0)))
    await bob.fingers.move(await middle(place(page, "deck")))
    await bob.fingers.press(await middle(bob.card(3)), finger=1)
    await bob.fingers.move(await middle(place(page, "pile:table")), finger=1)
    await bob.fingers.lift(finger=1)
    await expect(ghost).to_be_visible()
    await bob.fingers.move(await middle(place(page, "pile:discard")))
    await bob.fingers.lift()
    await holds(game.ada.page, "pile:discard", 1)
    await holds(game.ada.page, "pile:table", 0)
    await bob.player.holds(4)


async def test_a_swipe_scrolls_a_full_hand_and_a_lift_drags_from_it(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    await game.ada.set_count(9)
    await game.ada.do("Deal")
    await bob.player.holds(14)
    hand = own_hand(page)
    before = await codes(page)
    start = await middle(bob.card(6))
    await bob.fingers.drag(start, Point(start.x - 150, start.y))
    await page.wait_for_function("() => document.querySelector('#hand').scrollLeft > 0")
    assert await codes(page) == before
    await expect(page.locator(".ghost")).to_have_count(0)

    await bob.fingers.drag(bob.card(10), place(page, "pile:table"))
    await holds(game.ada.page, "pile:table", 1)
    await bob.player.holds(13)
    # After a hold a card also moves along the hand, which scrolls at its edge.
    moved = (await codes(page))[9]
    await bob.fingers.hold(bob.card(9))
    edge = await hand.bounding_box()
    assert edge is not None
    await bob.fingers.move(Point(edge["x"] + 4, start.y))
    await page.wait_for_function("() => document.querySelector('#hand').scrollLeft === 0")
    await bob.fingers.lift()
    await expect(bob.card(0).locator(".card")).to_have_attribute("data-card", moved)
    await expect(bob.sheet).to_have_count(0)


async def test_the_page_scrolls_where_nothing_is_dragged(game: Game) -> None:
    page = game.bob.page
    await page.set_viewport_size({"width": 320, "height": 400})
    felt = page.locator("#around")
    await felt.evaluate("(one) => { one.scrollTop = 0; }")
    start = await middle(place(page, "hand:1"))
    await game.bob.fingers.drag(start, Point(start.x, start.y - 60))
    await page.wait_for_function("() => document.querySelector('#around').scrollTop > 0")


async def test_a_swipe_over_the_table_does_not_leave_the_page(game: Game) -> None:
    bob = game.bob
    url, start = bob.page.url, await middle(place(bob.page, "hand:1"))
    await bob.fingers.drag(Point(10, start.y), Point(340, start.y))
    await bob.fingers.drag(bob.card(0), bob.card(4))
    await expect(bob.card(4).locator(".card")).to_be_visible()
    assert bob.page.url == url


async def test_a_long_press_opens_the_sheet_of_a_card(game: Game, axe: AxeCheck) -> None:
    bob, page = game.bob, game.bob.page
    kept = (await codes(page))[1]
    await bob.open_sheet(bob.card(1))
    await axe(page)
    await expect(bob.card(1)).to_have_attribute("aria-selected", "false")
    assert await page.evaluate("getSelection().isCollapsed")
    marks = bob.sheet.locator('[data-mark="public"]')
    assert await marks.all_inner_texts() == ["Play face up", "Show to all"]
    await bob.choose("Show to one player…")
    await expect(place(game.ada.page, "hand:2").locator(f'[data-card="{kept}"]')).to_be_visible()

    await bob.open_sheet(bob.card(0))
    await bob.choose("Play onto a pile…")
    await bob.fingers.tap(bob.sheet.get_by_label("Face down"))
    await bob.choose("Play there")
    await holds(game.ada.page, "pile:pile-1", 1)
    await expect(place(game.ada.page, "pile:pile-1").locator('[data-face="up"]')).to_have_count(0)


async def test_sheets_of_deck_piles_and_players_open_with_a_long_press(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    await bob.open_sheet(place(page, "deck"))
    await bob.choose("Turn 1 card up onto the table")
    await holds(game.ada.page, "pile:table", 1)
    await bob.fingers.tap(bob.card(0))  # with a selection, a tap would put it there
    await bob.open_sheet(place(page, "pile:table"))
    await bob.choose(re.compile("^Put the top card"))
    await bob.choose("Discard")
    await holds(game.ada.page, "pile:discard", 1)
    await bob.open_sheet(place(page, "hand:1"))
    await expect(bob.sheet).to_contain_text("Holds 5 face-down cards.")


async def test_a_sheet_is_dismissed_outside_of_it_and_by_back(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    url = page.url
    await bob.open_sheet(bob.card(0))
    await bob.fingers.tap_at(Point(5, 5))
    await expect(bob.sheet).to_have_count(0)
    for _ in range(2):
        await bob.open_sheet(bob.card(0))
        await page.go_back()
        await expect(bob.sheet).to_have_count(0)
    assert page.url == url
    await bob.open_sheet(bob.card(0))
    await bob.choose("Play onto a pile…")
    await expect(bob.sheet).to_contain_text("Face down")  # another sheet has taken its place
    await page.go_back()
    await expect(bob.sheet).to_have_count(0)
    await bob.player.holds(5)
    await bob.open_sheet(bob.card(0))
    await bob.choose("Close")
    await page.go_back()  # leaves the page, as no sheet is open
    await page.wait_for_url("about:blank")


async def test_a_card_that_was_laid_by_mistake_comes_back(game: Game) -> None:
    ada, bob, page = game.ada, game.bob, game.bob.page
    back, table = tool(page, "Take back"), place(page, "pile:table")
    await expect(back).to_have_count(0)  # a phone has no room for what is not possible now
    await bob.fingers.tap(tool(page, "More…"))
    impossible = bob.sheet.get_by_role("button", name="Take back")
    await expect(impossible).to_have_attribute("aria-disabled", "true")
    await expect(impossible).to_have_accessible_description(
        re.compile("^There is nothing to take back")
    )
    await bob.choose("Close")
    wrong, right = (await codes(page))[:2]
    await bob.fingers.tap(bob.card(0))
    await bob.fingers.tap(tool(page, "Play"))
    await holds(ada.page, "pile:table", 1)
    # Where the other button was, the next tap would be the second one of a double tap.
    await bob.fingers.tap(tool(page, "More…"))
    await bob.choose("Close")
    await bob.fingers.tap(back)
    await bob.player.holds(5)
    await holds(ada.page, "pile:table", 0)
    await ada.expect_log(re.compile("^Bob took back "))
    await expect(back).to_have_count(0)
    await expect(own_hand(page).locator("[data-shown]")).to_have_count(1)  # as it was seen
    assert wrong in await codes(page)

    await bob.fingers.drag(own_hand(page).locator(f'[data-card="{right}"]'), table)
    await holds(ada.page, "pile:table", 1)
    await expect(back).to_be_enabled()
    await ada.choose(0)
    await ada.do("Play")
    await holds(page, "pile:table", 2)
    await expect(back).to_have_count(0)  # another one has played since


async def test_a_card_that_was_taken_from_a_pile_by_mistake_goes_back(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    await bob.fingers.drag(place(page, "deck"), place(page, "pile:table"))
    await holds(page, "pile:table", 1)
    await expect(tool(page, "Take back")).to_have_count(0)  # the card was drawn
    await bob.fingers.drag(place(page, "pile:table"), own_hand(page))
    await bob.player.holds(6)
    await bob.fingers.tap(tool(page, "Take back"))
    await bob.player.holds(5)
    await holds(game.ada.page, "pile:table", 1)


async def test_each_quick_tap_draws_a_card(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    cards = 5
    for button in (place(page, "deck"), tool(page, "Draw")):
        for _ in range(5):
            await bob.fingers.tap(button)
        cards += 5
        await bob.player.holds(cards)
    await bob.fingers.tap(bob.player.button("More cards"))
    await bob.fingers.tap(tool(page, "Draw"))
    await bob.player.holds(17)
    await game.ada.expect_log("Bob drew 2 cards.")


async def test_a_drag_takes_the_card_under_the_finger_and_all_on_it(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    table = place(page, "pile:table")
    laid = await codes(page)
    for number, code in enumerate(laid, 1):
        await bob.fingers.drag(bob.card(0), table)
        await holds(game.ada.page, "pile:table", number)
        await expect(table.locator(f'[data-card="{code}"]')).to_be_visible()

    async def drag(code: str, to: Locator) -> None:
        box = await table.locator(f'[data-card="{code}"]').bounding_box()
        assert box is not None
        await bob.fingers.drag(Point(box["x"] + 5, box["y"] + 20), await middle(to))

    await drag(laid[3], place(page, "pile:discard"))
    await holds(game.ada.page, "pile:discard", 2)
    await expect(table.locator(".card")).to_have_count(3)
    assert await shown(table) == laid[:3]
    await drag(laid[1], own_hand(page))
    await bob.player.holds(2)
    assert await codes(page) == laid[1:3]
    await drag(laid[0], place(page, "deck"))
    await holds(game.ada.page, "pile:table", 0)
    await game.ada.expect_log(re.compile("went from the table to the deck"))


async def test_a_card_is_played_by_a_second_tap_a_flick_and_onto_the_felt(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    hand = await codes(page)
    await bob.fingers.tap(bob.card(0))
    await bob.fingers.tap(bob.card(0))
    await holds(game.ada.page, "pile:table", 1)
    start = await middle(bob.card(0))
    await bob.fingers.drag(start, Point(start.x, start.y - 45))  # it ends above the hand's cards
    await holds(game.ada.page, "pile:table", 2)
    felt = await page.locator("#around").bounding_box()
    assert felt is not None
    await bob.fingers.drag(bob.card(0), Point(felt["x"] + 8, felt["y"] + felt["height"] - 8))
    await holds(game.ada.page, "pile:table", 3)
    await holds(page, "pile:table", 3)
    assert await shown(place(page, "pile:table")) == hand[:3]

    # Of two selected cards, a tap takes one out; a card of the deck has no place on the felt.
    for index in (0, 1, 1):
        await bob.fingers.tap(bob.card(index))
    await expect(bob.card(1)).to_have_attribute("aria-selected", "false")
    await bob.fingers.drag(
        place(page, "deck"), Point(felt["x"] + 8, felt["y"] + felt["height"] - 8)
    )
    await expect(page.locator(".ghost")).to_have_count(0)
    await bob.player.holds(2)
    await holds(game.ada.page, "pile:table", 3)


async def test_a_new_pile_has_the_name_that_was_typed(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    for typed, title in (("Kitty", "Kitty"), ("", "pile-1")):
        await bob.open_sheet(bob.card(0))
        await bob.choose("Play onto a pile…")
        await bob.sheet.get_by_label("Name of a new pile").press_sequentially(typed)
        await bob.choose("Play there")
        await expect(page.locator(f'[data-stack="pile:{title}"] .name')).to_have_text(title)


async def test_a_drawn_card_is_seen_in_a_large_hand(game: Game) -> None:
    bob, page = game.bob, game.bob.page
    for cards in (14, 23):
        await game.ada.set_count(9)
        await game.ada.do("Deal")
        await bob.player.holds(cards)
    await expect(bob.card(22)).to_be_in_viewport(ratio=0.9)
    await own_hand(page).evaluate("(hand) => { hand.scrollLeft = 0; }")
    await expect(bob.card(22)).not_to_be_in_viewport()
    await bob.fingers.tap(tool(page, "Draw"))
    await bob.player.holds(24)
    await expect(bob.card(23)).to_be_in_viewport(ratio=0.9)


async def test_links_after_a_round_are_large_enough_for_a_finger(game: Game) -> None:
    await close_round(game.ada.page)
    links = game.bob.page.locator(".between .next > :not([hidden])")
    await expect(links.first).to_be_visible()
    heights = await links.evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert min(heights) >= 44


async def shown(stack: Locator) -> list[str]:
    """The codes of the cards of a stack, bottom first."""
    found: list[str] = await stack.locator(".card").evaluate_all(
        "all => all.map((one) => one.dataset.card)"
    )
    return found
