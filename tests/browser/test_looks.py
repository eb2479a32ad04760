"""How the table looks: chips, the clock, the cards of a trick, pips, and the room for them."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import FloatRect, Locator, Page, expect

from dealer.client import RemoteTable, connect
from tests.browser.album import ENLARGE
from tests.browser.conftest import OpenPage
from tests.browser.geometry import NOT_SEEN
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import has_won, own_cards, place
from tests.browser.test_large_text import hearts, phone, trick
from tests.harness.server_process import PATIENT, ServerProcess

RANKS = "23456789TJQKA"

ONE_ROW = """() => new Set([...document.querySelectorAll("#middle button.stack")].filter(
  (one) => one.checkVisibility()).map(
  (one) => Math.round(one.getBoundingClientRect().bottom))).size === 1"""
"""Whether all stacks in the middle are in one row."""


def chip(page: Page, seat: int) -> Locator:
    return page.locator(f'.chip[data-seat="{seat}"]')


async def box(one: Locator) -> FloatRect:
    found = await one.bounding_box()
    assert found is not None
    return found


async def leader(page: Page) -> tuple[str, int]:
    """The card that leads the trick, and the seat of its player, by the rules of hearts."""
    cards: list[list[Any]] = await trick(page).evaluate_all(
        "(all) => all.map((one) => [one.dataset.card, Number(one.dataset.colour)])"
    )
    suit = cards[0][0][1]
    code, seat = max(
        (one for one in cards if one[0][1] == suit), key=lambda one: RANKS.index(one[0][0])
    )
    return code, seat


async def seated(stack: AsyncExitStack, server: ServerProcess, **opened: Any) -> list[RemoteTable]:
    """Two players at a table, the first of whom is its host; their clients stay connected."""
    ada, bob = [
        await stack.enter_async_context(connect(server.url, name=name)) for name in ("Ada", "Bob K")
    ]
    tables = [await ada.join(await ada.open(seats=2, **opened))]
    tables.append(await bob.join(tables[0].id))
    await tables[0].until(lambda table: len(table.seats) == 2)
    await tables[0].transfer_host(1)
    return tables


async def deal(players: list[RemoteTable], cards: int) -> None:
    """The host, who is the first of them, deals so many cards to each, which all of them see."""
    host = players[0]
    await host.round_open(entropy="house")
    await host.shuffle()
    await host.deal(cards)
    for player in players:
        await player.until(lambda table: len(table.hand) == cards and None not in table.hand)


async def by_touch(open_page: OpenPage, player: RemoteTable) -> Page:
    """A page on a phone that takes over the seat of a client."""
    path = f"/tables/{player.id}#seat={player.token}"
    return await open_page(path, size={"width": 360, "height": 640}, has_touch=True, is_mobile=True)


async def test_players_are_chips_with_initials(open_page: OpenPage, server: ServerProcess) -> None:
    page = await phone(open_page, await hearts(server), (390, 844))
    chips = page.locator(".seats .chip > span")
    await expect(chips).to_have_count(3)
    signs = await chips.evaluate_all("(all) => all.map((one) => one.dataset.sign)")
    assert signs == ["A", "B", "C"]
    for seat in (1, 2, 3):
        at = await box(chip(page, seat))
        assert at["width"] == pytest.approx(at["height"], abs=0.5)
        assert at["width"] >= 40
    size = await page.locator(".seat .name").first.evaluate(
        "(one) => parseFloat(getComputedStyle(one).fontSize)"
    )
    assert size >= 15
    backs = place(page, "hand:3").locator(".backs .card:visible")
    assert 1 < await backs.count() < 11
    await expect(place(page, "hand:3").locator(".count")).to_have_attribute("data-sign", "11")


async def test_cards_fill_the_room_of_a_tablet(open_page: OpenPage, server: ServerProcess) -> None:
    page = await phone(open_page, await hearts(server), (820, 1180))
    await expect(trick(page)).to_have_count(3)
    assert (await box(trick(page).first))["width"] >= 120
    assert (await box(own_cards(page).first.locator(".card")))["width"] >= 90


async def test_bars_leave_the_screen_to_the_table(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await phone(open_page, await hearts(server), (360, 640))
    await expect(own_cards(page)).to_have_count(12)
    heights = [(await box(page.locator(one)))["height"] for one in ("#header", "#log", "#tools")]
    assert sum(heights) <= 0.28 * 640


@pytest.mark.parametrize(("size", "shown"), [((320, 568), False), ((820, 1180), True)])
async def test_number_cards_have_pips_from_60_pixels_on(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], shown: bool
) -> None:
    page = await phone(open_page, await hearts(server), size)
    numbers = own_cards(page).locator('.card:not([data-court], [data-card^="A"])')
    picture = """(one) => {
      const { backgroundImage, width } = getComputedStyle(one, "::before");
      return backgroundImage.startsWith("url(") && parseFloat(width) > 0;
    }"""
    await expect(numbers.first).to_be_visible()
    await page.wait_for_function(
        """() => [...document.adoptedStyleSheets[0].cssRules].filter(
          (one) => one.selectorText.endsWith("::before")).length === 6"""  # two in other colours
    )
    await page.wait_for_function(
        '() => document.querySelector("link[href$=\\"courts.css\\"]")?.sheet'
    )
    assert await numbers.first.evaluate(picture) is shown
    places = """(all) => all.map((one) => [
      one.dataset.card[0], getComputedStyle(one, "::before").backgroundPositionX,
    ])"""
    for rank, shift in await numbers.evaluate_all(places):
        assert shift == f"{'23456789T'.index(rank) * 12.5:g}%"
    ace = """(one) => {
      const ace = one.parentElement.appendChild(one.cloneNode(true));
      ace.dataset.card = `A${one.dataset.suit}`;
      return getComputedStyle(ace, "::before").backgroundImage;
    }"""
    assert await numbers.first.evaluate(ace) == "none"  # it has one large suit
    suit = await numbers.first.locator(".middle").evaluate(
        "(one) => parseFloat(getComputedStyle(one).fontSize)"
    )
    assert (suit > 0) is not shown


async def test_the_card_that_leads_is_named_and_its_player_gets_the_trick(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await phone(open_page, await hearts(server), (360, 640))
    await own_cards(page).first.tap()
    await page.get_by_role("button", name="Play", exact=True).tap()
    await expect(trick(page)).to_have_count(4)
    code, seat = await leader(page)
    leading = page.locator(".card[data-leads]")
    await expect(leading).to_have_count(1)
    await expect(leading).to_have_attribute("data-card", code)
    says = place(page, "pile:table").locator(".name")
    took = re.compile("You take it: " if seat == 4 else " takes it: ")
    await expect(says).to_have_attribute("data-sign", took)
    line = page.locator(".your-turn" if seat == 4 else ".others-turn")
    await expect(line).to_have_text(re.compile("^Take the trick") if seat == 4 else took)
    # People may say otherwise: all players are offered, too.
    await expect(page.get_by_role("button", name="Trick to a player…")).to_be_visible()
    # It is the winner's step, and any player can do it.
    winner = page.locator('.quick [data-action="trickTo"]')
    name = ("Ada", "Bob", "Cleo", "Maximiliane")[seat - 1]
    await expect(winner).to_have_text("Take the trick" if seat == 4 else f"Trick to {name}")
    await expect(page.locator(".quick .primary")).to_have_count(1 if seat == 4 else 0)
    await winner.tap()
    await expect(trick(page)).to_have_count(0)
    await has_won(page, seat, 2 if seat == 2 else 1)


async def test_the_turn_passes_on_by_playing_and_comes_back(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "spades"})
        await deal([ada, bob], 13)
        await ada.note(kind="turn", text="2")
        page = await phone(open_page, f"/tables/{ada.id}#seat={bob.token}", (390, 844))
        await expect(page.locator("#own[data-turn]")).to_be_visible()
        await own_cards(page).first.tap()
        await page.get_by_role("button", name="Play", exact=True).tap()
        await ada.until(lambda table: table.markers.turn == 1)
        turn = page.locator(".seats > [data-turn] .chip > span")
        await expect(turn).to_have_attribute("data-sign", "A")
        await page.get_by_role("button", name="Take back", exact=True).tap()
        await ada.until(lambda table: table.markers.turn == 2)


async def test_the_clock_runs_around_the_chip_and_does_nothing_at_zero(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        page = await by_touch(open_page, ada)
        await page.get_by_role("button", name="Menu").tap()
        await page.get_by_role("button", name="Clock for turns…").tap()
        await page.get_by_role("spinbutton").fill("2")
        await page.get_by_role("button", name="Set", exact=True).tap()
        await bob.until(lambda table: table.markers.clock == 2)
        await bob.note(kind="turn", text="2")
        turn = page.locator('.seats > [data-turn]:has([data-stack="hand:2"])')
        await expect(turn).to_be_visible()
        left = 'document.querySelector(".seats > [data-turn]").style.getPropertyValue("--left")'
        await page.wait_for_function(f"() => 0 < {left} && {left} < 1")
        await page.wait_for_function(f'() => {left} === "0.000"')
        await expect(turn).to_be_visible()
        assert bob.markers.turn == 2
        await bob.note(kind="clock", text="0")
        await page.wait_for_function(f'() => {left} === ""')


async def test_a_pile_that_waits_for_its_first_card_is_not_drawn(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        await deal([ada, bob], 2)
        page = await by_touch(open_page, bob)
        await expect(place(page, "pile:board")).to_be_visible()
        await expect(place(page, "pile:discard")).to_be_hidden()
        await expect(place(page, "pile:burn")).to_be_hidden()
        await ada.burn(1)
        await ada.discard(ada.hand[:1])
        await expect(place(page, "pile:burn")).to_be_visible()
        await expect(place(page, "pile:discard")).to_be_visible()


async def test_a_drawn_card_is_on_the_screen_in_a_hand_of_200(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, _ = await seated(stack, server, deck={"decks": 4})
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await ada.draw(200)
        page = await by_touch(open_page, ada)
        await expect(own_cards(page)).to_have_count(200)
        await place(page, "deck").locator(".stack").tap()
        await expect(own_cards(page)).to_have_count(201)
        await expect(own_cards(page).last).to_be_in_viewport(ratio=0.95)


async def test_cards_make_sounds_only_if_the_player_wants_them(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await phone(open_page, await hearts(server), (390, 844))
    await page.evaluate(
        """() => {
          window.sounds = 0;
          const start = AudioBufferSourceNode.prototype.start;
          AudioBufferSourceNode.prototype.start = function (...given) {
            window.sounds += 1;
            return start.apply(this, given);
          };
        }"""
    )
    play = page.get_by_role("button", name="Play", exact=True)
    await own_cards(page).first.tap()
    await play.tap()
    await expect(trick(page)).to_have_count(4)
    assert await page.evaluate("window.sounds") == 0
    await page.get_by_role("button", name="Menu").tap()
    await page.get_by_label("Sounds of cards").check()
    await page.wait_for_function("() => window.sounds === 1")
    await page.keyboard.press("Escape")
    await page.locator('.quick [data-action="trickTo"]').tap()
    await expect(trick(page)).to_have_count(0)
    await page.wait_for_function("() => window.sounds === 5")


async def test_a_phone_shows_the_last_move(open_page: OpenPage, server: ServerProcess) -> None:
    page = await phone(open_page, await hearts(server), (360, 640))
    await own_cards(page).first.tap()
    await page.get_by_role("button", name="Play", exact=True).tap()
    await expect(trick(page)).to_have_count(4)
    log = page.locator("#log > :visible")
    await expect(log).to_have_count(1)
    await expect(log).to_have_text(re.compile("You played"))


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [(360, 640), (844, 390), (1280, 800)])
async def test_the_table_says_whose_turn_it_is_and_who_is_away(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    path = await hearts(server)
    visitor = await phone(open_page, path.partition("#")[0], size, letters=letters)
    player = await phone(open_page, path, size, letters=letters)
    await expect(player.locator(".your-turn")).to_have_text(re.compile("^Your turn: "))
    await expect(visitor.locator(".seats > [data-turn] .name")).to_have_text("Maximiliane")
    own = ".says" if size == (844, 390) else ".your-turn"  # above the tools there is more room
    for page, turn in ((visitor, ".seats > [data-turn] .chip"), (player, own)):
        for one in (turn, ".badge"):
            await page.wait_for_function(f"(one) => ({NOT_SEEN})(one).length === 0", arg=one)
    said = player.locator('.seats .chip[data-says="away"]')
    await expect(said).to_have_count(3)
    word = await said.first.evaluate("(one) => getComputedStyle(one, '::after').content")
    assert word == '"away"'
    await own_cards(player).first.tap()
    await player.get_by_role("button", name="Play", exact=True).tap()
    await expect(trick(player)).to_have_count(4)


async def test_a_turn_passes_on_by_playing_in_a_game_of_tricks(
    open_page: OpenPage, server: ServerProcess
) -> None:
    """A button for it would be beside the trick, and take its room."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        for game, shown in (("spades", False), ("crazy-eights", True)):
            ada, bob = await seated(stack, server, rules={"game": game})
            await deal([ada, bob], 3)
            await bob.note(kind="turn", text="2")
            page = await by_touch(open_page, bob)
            await expect(page.locator("#own[data-turn]")).to_be_visible()
            passing = page.get_by_role("button", name="Pass the turn to Ada")
            await expect(passing).to_be_visible(visible=shown)
            await ada.round_close()
            await expect(page.get_by_role("heading", name="Round 1 is over")).to_be_visible()
            await expect(passing).to_be_hidden()
            await expect(page.locator("#felt [data-turn]")).to_have_count(0)


@pytest.mark.parametrize("size", [(360, 640), (820, 1180), (1280, 800)])
async def test_the_sheet_of_a_round_has_a_row_of_its_own(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        await deal([ada, bob], 2)
        await ada.round_close()
        page = await by_touch(open_page, bob)
        await page.set_viewport_size({"width": size[0], "height": size[1]})
        sheet = page.locator(".between")
        await expect(sheet).to_be_visible()
        await expect(page.get_by_role("link", name="Check the shuffle")).to_be_in_viewport()
        await page.wait_for_function(
            """() => {
              const [sheet, deck] = [".between", '[data-stack="deck"]'].map(
                (one) => document.querySelector(one).getBoundingClientRect());
              return deck.top >= sheet.bottom;
            }"""
        )
        at = await box(sheet)
        around = await box(page.locator("#middle"))
        left = at["x"] - around["x"]
        assert left == pytest.approx(around["width"] - at["width"] - left, abs=3)


async def test_a_game_without_hands_is_over_when_all_cards_are_on_their_piles(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "klondike"})
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await bob.until(lambda table: table.deck_count == 52)
        await bob.move("deck", to="pile:s", count=51)
        page = await by_touch(open_page, ada)
        end = page.get_by_role("toolbar").get_by_role("button", name="End the hand")
        await expect(place(page, "pile:s")).to_be_visible()
        await expect(end).to_have_count(0)
        await bob.move("deck", to="pile:1", count=1)
        await expect(place(page, "deck").locator(".count")).to_have_attribute("data-sign", "0")
        await expect(end).to_have_count(0)
        await bob.move("pile:1", to="pile:h", count=1)
        await expect(end).to_be_visible()


async def test_the_menu_has_three_groups_of_rows_for_a_finger(
    open_page: OpenPage, server: ServerProcess, axe: Any
) -> None:
    (path,) = await prepared_table(server, ["Ada"], deal=1)
    page = await open_page(path, size={"width": 360, "height": 640}, has_touch=True)
    await page.get_by_role("button", name="Menu").tap()
    menu = page.get_by_role("dialog", name="Menu")
    await expect(menu.get_by_role("heading", level=3)).to_have_text(["This table", "View", "Leave"])
    rows = menu.locator(".rows > *")
    assert [(await row.inner_text()).split("\n")[0] for row in await rows.all()] == [
        "Players, turn and scores", "Set a counter…", "Clock for turns…", "Game log",
        "Was it fair? Check this table", "Download the game", "End the hand",
        "Colours", "Language", "Four colours: blue diamonds, green clubs", "Sounds of cards",
        "Keys and gestures",
        "All tables", "Play on another device", "Leave your seat", "Close the table",
    ]  # fmt: skip
    for row in await rows.all():
        assert (await box(row))["height"] >= 44
    await axe(page)


@pytest.mark.parametrize(
    ("size", "count"),
    [((390, 844), 3), ((844, 390), 4), ((820, 1180), 3), ((1280, 800), 4)],
)
async def test_the_stacks_of_a_table_without_a_game_are_in_one_row(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], count: int
) -> None:
    """On a narrow felt without that of burned cards, until there is one."""
    path, *_ = await prepared_table(server, ["Ada", "Bob", "Cleo", "Dan", "Eve"], deal=1)
    page = await open_page(path, size={"width": size[0], "height": size[1]})
    stacks = page.locator("#middle button.stack:visible")
    await expect(stacks).to_have_count(count)
    await page.wait_for_function(ONE_ROW)


@pytest.mark.parametrize("letters", [100, 150])
async def test_the_piles_of_a_desktop_stay_in_one_row_when_cards_are_played(
    open_page: OpenPage, server: ServerProcess, letters: int
) -> None:
    path, *_ = await prepared_table(server, ["Ada", "Bob", "Cleo", "Dan", "Eve"], deal=7)
    page = await open_page(path, size={"width": 1280, "height": 800})
    await page.evaluate(ENLARGE, letters)
    stacks = page.locator("#middle button.stack:visible")
    for played in (3, 4, 7) if letters == 100 else (3, 4):
        there = await place(page, "pile:table").locator(".card").count()
        for index in range(played - there):
            await own_cards(page).nth(index).press("Space")
        await page.keyboard.press("p")
        await expect(place(page, "pile:table").locator(".card")).to_have_count(played)
        await expect(stacks).to_have_count(4)
        await page.wait_for_function(ONE_ROW)
