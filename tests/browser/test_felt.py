"""The felt: places that never move, sizes of cards, and what the hand strip and the log say."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from playwright.async_api import Page, expect

from dealer.client import RemoteTable, connect
from tests.browser.album import ENLARGE
from tests.browser.conftest import OpenPage
from tests.browser.geometry import DRAWN, SETTLE_MS, expect_seen, resize
from tests.browser.table_page import dismiss_help, expect_log, holds, own_cards, place
from tests.harness.server_process import PATIENT, ServerProcess

PHONE, TABLET, DESKTOP = (360, 740), (768, 1024), (1280, 800)
SIDES = (844, 390)
BOARD: list[list[dict[str, Any]]] = [
    [{"name": "burn", "count": 1}, {"name": "board", "count": count, "face": "up"}]
    for count in (3, 1, 1)
]


@asynccontextmanager
async def seated(
    server: ServerProcess,
    game: str | None,
    names: Sequence[str] = ("Ada", "Bob", "Cleo", "Dan"),
) -> AsyncIterator[list[RemoteTable]]:
    """Clients at a table with a game; the first one is the host."""
    rules = {} if game is None else {"game": game}
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [await stack.enter_async_context(connect(server.url, name=name)) for name in names]
        opened = await houses[0].open(seats=6, rules=rules, name="Friday")
        tables = [await house.join(opened.id) for house in houses]
        await tables[0].until(lambda table: len(table.seats) == len(names))
        await tables[0].transfer_host(1)
        await tables[0].round_open(entropy="house")
        await tables[0].shuffle()
        yield tables


async def seat_page(open_page: OpenPage, table: RemoteTable, size: tuple[int, int]) -> Page:
    return await open_page(
        f"/tables/{table.id}#seat={table.token}",
        size={"width": size[0], "height": size[1]},
        has_touch=True,
        is_mobile=size != DESKTOP,
    )


async def at_seat(open_page: OpenPage, table: RemoteTable, size: tuple[int, int]) -> Page:
    """The page of a seat, without the offer of its game's help."""
    page = await seat_page(open_page, table, size)
    await dismiss_help(page)
    await page.wait_for_load_state("networkidle")  # styles and pictures that are loaded later
    return page


async def boxes(page: Page, *selectors: str) -> dict[str, list[float]]:
    """Where the first elements of these are, in whole pixels; without those that are not drawn."""
    await page.evaluate(DRAWN)
    found: dict[str, list[float]] = await page.evaluate(
        """(all) => Object.fromEntries(all.flatMap((one) => {
          const found = document.querySelector(one);
          if (!found?.checkVisibility({ visibilityProperty: true })) return [];
          const { left, top, width, height } = found.getBoundingClientRect();
          return [[one, [left, top, width, height].map(Math.round)]];
        }))""",
        list(selectors),
    )
    return found


async def still(
    page: Page, before: dict[str, list[float]], *selectors: str
) -> dict[str, list[float]]:
    """Where these are, once the page is drawn; what was drawn before is where it was."""
    after, moved = before, before
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_MS / 1000):
            while moved:
                after = await boxes(page, *selectors)
                moved = {at: box for at, box in before.items() if after.get(at, box) != box}
    assert not moved, {at: (box, after.get(at)) for at, box in moved.items()}
    return after


@pytest.mark.parametrize("size", [(360, 640), (390, 844)])
async def test_players_with_points_and_won_cards_have_room_beside_each_other(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with seated(server, "hearts") as tables:
        ada = tables[0]
        await ada.deal(13)
        for seat, table in enumerate(tables, 1):
            await table.until(lambda one: len(one.hand) == 13)
            await table.play(table.hand)
            await ada.note(kind="score", text=f"{seat}:{10 * seat}")
        for seat, count in enumerate((4, 20, 20, 8), 1):
            await ada.move("pile:table", to=f"pile:won:{seat}", count=count)
        page = await at_seat(open_page, ada, size)
        await expect(page.locator(".seats .before .card")).to_have_count(3)
        await expect(page.locator(".others-turn")).to_have_text("All cards are played")
        await page.evaluate(DRAWN)
        edges = await page.locator(".seats > li").evaluate_all(
            """(all) => all.map((one) => {
              const parts = Array.from(one.querySelectorAll(".chip, .mark, .name, .count, .card"))
                .filter((part) => part.checkVisibility({ visibilityProperty: true }))
                .map((part) => part.getBoundingClientRect());
              return [
                Math.min(...parts.map(({ left }) => left)),
                Math.max(...parts.map(({ right }) => right)),
              ];
            })"""
        )
        for (_, right), (left, _) in itertools.pairwise(edges):
            assert right <= left + 1, edges
        assert edges[0][0] >= 5, edges
        assert edges[-1][1] <= size[0] - 5, edges


@pytest.mark.parametrize("size", [PHONE, SIDES, TABLET, DESKTOP])
async def test_the_trick_stays_in_the_middle(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    places = ["#middle", '[data-stack="pile:table"] .cards', ".badge", ".hand-head .chip"]
    async with seated(server, "hearts") as tables:
        await tables[0].deal(13)
        page = await at_seat(open_page, tables[3], size)
        await expect(own_cards(page)).to_have_count(13)
        before = await boxes(page, *places)
        assert len(before) == len(places)
        for index, table in enumerate(tables, 1):
            if index < 4:
                await table.until(lambda one: len(one.hand) == 13)
                await table.play(table.hand[:1])
            else:
                await own_cards(page).first.tap()
                await page.get_by_role("button", name="Play", exact=True).tap()
            await tables[0].note(kind="turn", text=str(index % 4 + 1))
            cards = place(page, "pile:table").locator(".card")
            await expect(cards).to_have_count(index)
            places.append(f'[data-stack="pile:table"] [data-colour="{index}"]')
            before |= await still(page, before, *places)
        await tables[0].move("pile:table", to="pile:won:4", count=4)
        await expect(cards).to_have_count(0)
        await still(page, before, *places[:4])
        await expect_log(page, "You take ")


@pytest.mark.parametrize("size", [PHONE, SIDES, TABLET, DESKTOP])
async def test_a_card_of_the_board_keeps_its_place(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    places = ['[data-stack="deck"] .cards', '[data-stack="pile:board"] .cards', ".badge"]
    async with seated(server, "holdem") as (ada, _bob, cleo, dan):
        await ada.deal(2)
        page = await at_seat(open_page, dan, size)
        await expect(own_cards(page)).to_have_count(2)
        before = await boxes(page, *places)
        for number, (piles, name, lying) in enumerate(
            zip(BOARD, ("Flop", "Turn", "River"), (3, 4, 5), strict=True)
        ):
            await ada.deal(0, piles=piles)
            cards = page.locator('[data-stack="pile:board"] .card')
            await expect(cards).to_have_count(lying)
            await expect(page.locator("#log > :last-child")).to_contain_text(f"{name}: ")
            places += [
                f'[data-stack="pile:board"] .card:nth-child({index + 1})'
                for index in range(lying if number == 0 else lying - 1, lying)
            ]
            before |= await still(page, before, *places)
        all_cards = await cards.evaluate_all(
            """(all) => all.map((one) => one.getBoundingClientRect())
              .map((one) => [one.left, one.right])"""
        )
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(all_cards))
        burned = await boxes(
            page, '[data-stack="pile:burn"] .card', '[data-stack="pile:board"] .card'
        )
        small, large = burned.values()
        assert small[2] < large[2]

        await ada.show(ada.hand)
        await cleo.discard(cleo.hand)
        shown = page.locator('[data-stack="hand:1"] .faces .card')
        await expect(shown).to_have_count(2)
        widths = await shown.evaluate_all("(all) => all.map((one) => one.offsetWidth)")
        assert min(widths) >= 54
        await ada.round_close()
        rows = page.locator(".scores li")
        await expect(rows).to_have_count(4)
        await expect(rows.filter(has_text="Cleo")).to_contain_text("Fold")
        await expect(rows.filter(has_text="Ada").locator(".hand-shown .card")).to_have_count(2)
        await expect(page.locator(".winner")).to_contain_text("best hand: ")
        best = rows.and_(page.locator("[data-best]")).first
        kind = await best.locator(".total").text_content()
        await expect(page.locator(".winner")).to_contain_text(kind or "none")
        if await best.count() == await page.locator(".scores [data-best]").count():
            five = await page.locator(".winner small").inner_text()
            assert len(five.split()) == 5
        await expect(page.get_by_text("The table keeps no chips")).to_be_visible()


@pytest.mark.parametrize(
    ("size", "least"), [((360, 640), 56), ((390, 844), 56), (SIDES, 40), (TABLET, 70)]
)
async def test_the_board_is_whole_in_a_showdown_and_above_its_result(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], least: int
) -> None:
    async with seated(server, "holdem") as tables:
        await tables[0].deal(2)
        for piles in BOARD:
            await tables[0].deal(0, piles=piles)
        for table in tables[:2]:
            await table.until(lambda one: len(one.hand) == 2)
            await table.show(table.hand)
        page = await at_seat(open_page, tables[3], size)
        await expect(page.locator('[data-stack="hand:1"] .faces .card')).to_have_count(2)
        board = page.locator('[data-stack="pile:board"] .card')
        await expect(board).to_have_count(5)
        for state, width in (("showdown", least), ("result", 36)):
            if state == "result":
                await tables[0].round_close()
                await expect(page.locator(".scores li")).to_have_count(4)
            await expect_seen(page, '[data-stack="pile:board"] .card', ".badge")
            assert await page.locator(".badge").evaluate(COVERED) == []
            for one in await board.all():
                found = await one.bounding_box()
                assert found is not None
                assert found["width"] >= width
                assert found["height"] >= 1.35 * found["width"], state


async def test_who_alone_has_not_folded_wins(open_page: OpenPage, server: ServerProcess) -> None:
    async with seated(server, "holdem", ("Ada", "Bob", "Cleo")) as (ada, bob, cleo):
        await ada.deal(2)
        for table in (bob, cleo):
            await table.until(lambda one: len(one.hand) == 2)
            await table.discard(table.hand)
        for piles in BOARD:  # with it a hand could be named, but none is compared
            await ada.deal(0, piles=piles)
        page = await at_seat(open_page, cleo, PHONE)
        await ada.round_close()
        await expect(page.locator(".winner")).to_have_text("Ada wins: everybody else folded")


@pytest.mark.parametrize("size", [(360, 640), SIDES])
async def test_passed_cards_leave_the_trick_its_room(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with seated(server, "hearts") as tables:
        await tables[0].deal(13)
        for seat, table in enumerate(tables, 1):
            await table.until(lambda one: len(one.hand) == 13)
            await table.pass_(table.hand[:3], to=seat % 4 + 1)
        page = await at_seat(open_page, tables[0], size)
        known = page.locator('[data-stack="hand:2"] .faces .card')
        await expect(known).to_have_count(3)
        widths = await known.evaluate_all("(all) => all.map((one) => one.offsetWidth)")
        assert max(widths) < 40
        around, middle = (await boxes(page, "#around", "#middle")).values()
        assert middle[3] > 0.55 * around[3]


@pytest.mark.parametrize("size", [PHONE, SIDES, TABLET, DESKTOP])
async def test_deck_and_discards_stay_while_turns_pass(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    places = ['[data-stack="deck"] .cards', '[data-stack="pile:table"] .cards', ".badge", "#hand"]
    async with seated(server, "crazy-eights", ("Ada", "Bob")) as (ada, bob):
        await ada.deal(5)
        await ada.move("deck", to="pile:table", count=1, face="up")
        page = await at_seat(open_page, bob, size)
        await holds(page, "pile:table", 1)
        before = await boxes(page, *places)
        assert len(before) == len(places)
        await expect(page.locator(".others-turn")).to_have_text("Anyone may play")
        await expect(page.locator("#tools .primary")).to_have_count(0)
        for seat in ("2", "1"):
            await ada.note(kind="turn", text=seat)
            await expect(
                page.locator("#felt [data-turn] .chip, #own[data-turn] .chip")
            ).to_be_visible()
            await expect(page.locator(".your-turn")).to_be_visible(visible=seat == "2")
            await expect(page.locator(".others-turn")).to_be_visible(visible=seat == "1")
            says = page.locator(".says")
            await expect(says).to_be_visible(visible=size == SIDES)
            turn = page.locator(".your-turn" if seat == "2" else ".others-turn")
            await expect(says).to_have_text(await turn.inner_text())
            await expect(page.locator(".sorts")).to_be_visible()
            passes = page.locator('.quick [data-action="passTurn"]')
            fits = await page.locator("#hand [data-slot]:not([data-off])").count()
            await expect(passes).to_be_visible(visible=seat == "2" and not fits)
            if seat == "2" and not fits:  # one line, within the felt
                around, button = (
                    await boxes(page, "#around", '.quick [data-action="passTurn"]')
                ).values()
                assert button[3] <= 46
                assert button[1] + button[3] < around[1] + around[3] - 3
            await still(page, before, *places)
        await ada.play(ada.hand[:1])
        await holds(page, "pile:table", 2)
        await still(page, before, *places)
        await expect(page.locator("#log")).not_to_contain_text("turn")


async def test_a_tablet_has_players_at_three_sides_and_large_cards(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with seated(server, "hearts") as tables:
        await tables[0].deal(13)
        page = await at_seat(open_page, tables[3], TABLET)
        await tables[0].play(tables[0].hand[:1])
        await expect(place(page, "pile:table").locator(".card")).to_have_count(1)
        found = await boxes(
            page, "#hand .card", "#middle .trick .card", '[data-side="left"]',
            '[data-side="top"]', '[data-side="right"]', "#middle",
        )  # fmt: skip
        hand, trick, left, top, right, middle = found.values()
        assert hand[2] == 120
        assert trick[2] == 140
        assert left[0] + left[2] <= middle[0]
        assert right[0] >= middle[0] + middle[2]
        assert top[1] + top[3] <= middle[1] + 1


@pytest.mark.parametrize("size", [PHONE, SIDES, TABLET, DESKTOP])
async def test_the_log_is_a_line_until_it_is_opened(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with seated(server, "hearts") as tables:
        page = await at_seat(open_page, tables[3], size)
        await tables[0].deal(13)
        await tables[0].note(kind="dealer_button", text="1")
        lines = page.locator("#log > *")
        await expect(lines.last).to_contain_text("Ada deals.")
        await expect(lines.last).to_be_visible()
        await expect(lines.first).to_be_hidden()
        await page.get_by_role("button", name="Log", exact=True).tap()
        await expect(lines.last).to_be_in_viewport(ratio=1)
        await expect(lines.nth(-2)).to_be_in_viewport(ratio=1)


COVERED = """(badge) => {
  const at = badge.getBoundingClientRect();
  const others = ":is(#around, #header) :is(button, .card), #header .home";
  return [...document.querySelectorAll(others)].filter((one) => {
    const box = one.getBoundingClientRect();
    return one !== badge && one.checkVisibility({ visibilityProperty: true }) && box.width > 0
      && box.left < at.right - 1 && at.left < box.right - 1
      && box.top < at.bottom - 1 && at.top < box.bottom - 1;
  }).map((one) => one.getAttribute("aria-label") ?? one.textContent);
}"""
"""What the badge of the shuffle is over, or under."""


@pytest.mark.parametrize("letters", [100, 200])
@pytest.mark.parametrize("game", ["hearts", "holdem", "crazy-eights", "go-fish", None])
async def test_the_badge_says_in_words_what_was_checked_and_covers_nothing(
    open_page: OpenPage, server: ServerProcess, game: str | None, letters: int
) -> None:
    async with seated(server, game) as tables:
        await tables[0].deal(5)
        page = await (at_seat if game else seat_page)(open_page, tables[3], PHONE)
        badge = page.locator(".badge")
        await expect(own_cards(page)).to_have_count(5)
        await expect(badge).to_have_accessible_name(re.compile("^Shuffled by the house alone"))
        await page.evaluate(ENLARGE, letters)
        sizes = [PHONE, (360, 640), (390, 844), SIDES]
        for size in (*sizes, TABLET, DESKTOP) if letters == 100 else sizes:
            await resize(page, size)
            await badge.scroll_into_view_if_needed()  # with large letters the felt scrolls
            if letters == 100:
                await expect_seen(page, ".badge")
            words = badge.locator("> :first-child")
            await expect(words).to_have_text("Shuffled by the house alone")
            assert await words.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)") >= 12
            if letters == 100:  # larger ones may scroll behind it
                assert await badge.evaluate(COVERED) == [], size
