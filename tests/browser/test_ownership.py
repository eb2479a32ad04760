"""Who owns a card in a trick, and who made a move: by touch, from the log, on every page."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Page, expect

from dealer.client import RemoteTable, connect
from tests.browser.conftest import OpenPage
from tests.browser.phones import Phone, Phones
from tests.browser.player_page import PlayerPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import own_hand, place, tool
from tests.browser.touch import Fingers, Point
from tests.harness.server_process import PATIENT, ServerProcess

pytestmark = pytest.mark.reuse_pages

NAMES = ("Ada", "Bob", "Cleo")
TOUCH: dict[str, Any] = {
    "size": {"width": 360, "height": 640},
    "has_touch": True,
    "is_mobile": True,
}
TRICK = "pile:table"


async def phones_at(
    open_page: OpenPage,
    server: ServerProcess,
    game: str,
    *,
    names: tuple[str, ...] = NAMES,
    cards: int = 3,
    **rules: str,
) -> list[Phone]:
    """Players with some cards each at a table with a game."""
    paths = await prepared_table(server, names, deal=cards, rules={"game": game, **rules})
    phones = []
    for seat, (path, name) in enumerate(zip(paths, names, strict=True), 1):
        page = await open_page(path, **TOUCH)
        phones.append(Phone(PlayerPage(page, name), await Fingers.on(page), seat))
        await phones[-1].player.holds(cards)
    return phones


async def owners(page: Page) -> dict[str, int]:
    """The seat in whose colour each card of the trick lies."""
    found: dict[str, str] = await place(page, TRICK).evaluate(
        "(it) => Object.fromEntries([...it.querySelectorAll('.card')].map("
        "(one) => [one.dataset.card, one.dataset.colour ?? '0']))"
    )
    return {card: int(seat) for card, seat in found.items()}


async def spots(page: Page) -> set[str]:
    """Where the cards of the trick lie."""
    found: list[str] = await place(page, TRICK).evaluate(
        "(it) => [...it.querySelectorAll('.card')].map((one) => {"
        " const { x, y } = one.getBoundingClientRect(); return `${x.toFixed()} ${y.toFixed()}`; })"
    )
    assert len(found) == len(set(found)), f"two cards on one spot: {found}"
    return set(found)


async def visible(page: Page, card: str) -> Point:
    """A point of a card of the trick that no other card covers."""
    found: dict[str, float] = await place(page, TRICK).evaluate(
        """(it, card) => {
          const wanted = it.querySelector(`[data-card="${card}"]`);
          const { left, top, width, height } = wanted.getBoundingClientRect();
          const parts = [0.1, 0.3, 0.5, 0.7, 0.9];
          return parts.flatMap((across) => parts.map(
            (down) => ({ x: left + width * across, y: top + height * down }),
          )).find(({ x, y }) => document.elementFromPoint(x, y)?.closest(".card") === wanted);
        }""",
        card,
    )
    return Point(found["x"], found["y"])


async def agree(phones: list[Phone], expected: dict[str, int]) -> None:
    """Wait until every page shows the cards of the trick before these seats."""
    for phone in phones:
        cards = place(phone.page, TRICK).locator(".card")
        await expect(cards).to_have_count(len(expected))
        assert await owners(phone.page) == expected
        await spots(phone.page)


async def test_a_card_of_a_trick_stays_that_of_its_player(open_page, server) -> None:
    ada, bob, cleo = phones = await phones_at(open_page, server, "spades")
    played: dict[str, int] = {}
    for phone in (ada, bob):
        card = (await phone.hand())[0]
        await phone.do("Play", card)
        played[card] = phone.seat
        await agree(phones, played)
    of_ada, of_bob = played

    # A drag from another one's card moves nothing, and one from the own card only that.
    for phone, dragged in ((cleo, of_bob), (cleo, of_ada), (bob, of_bob)):
        await phone.fingers.drag(await visible(phone.page, dragged), own_hand(phone.page))
    await bob.player.holds(3)
    await agree(phones, {of_ada: ada.seat})
    await cleo.player.holds(3)
    await bob.do("Play", of_bob)
    await agree(phones, played)

    # Cleo takes all cards by the pile's sheet, and lays them back: they are whose they were.
    await cleo.open_sheet(TRICK)
    await cleo.choose("Take all its cards")
    await cleo.player.holds(5)
    await cleo.select(of_ada, of_bob)
    await cleo.tap("Play")
    await cleo.player.holds(3)
    await agree(phones, played)
    last = (await cleo.hand())[0]
    await cleo.do("Play", last)
    await agree(phones, played | {last: cleo.seat})
    await ada.page.reload()
    await agree(phones, played | {last: cleo.seat})
    for phone in phones:
        await expect(phone.page.get_by_role("button", name="Trick to a player…")).to_be_visible()


async def test_a_practice_table_lays_a_trick_before_its_players(open_page, server) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [await stack.enter_async_context(connect(server.url, name=one)) for one in NAMES]
        opened = await houses[0].open(seats=3, rules={"game": "hearts"})
        tables: list[RemoteTable] = [await house.join(opened.id) for house in houses]
        await tables[0].round_open(entropy="house")
        await tables[0].shuffle()
        await tables[0].deal(4)
        expected: dict[str, int] = {}
        for seat in (3, 1):  # Cleo leads, and Bob is still to play
            table = tables[seat - 1]
            await table.until(lambda table: len(table.hand) == 4)
            expected[table.hand[0]] = seat
            await table.play(table.hand[0])
        version = tables[0].version
        await tables[0].round_close()
        source = {"table": opened.id, "round": 1, "version": version}
        practice = await houses[1].join(await houses[1].open(from_=source), seat=2)
        path = f"/tables/{practice.id}#seat={practice.token}"
    page = await open_page(path, **TOUCH)
    await expect(place(page, TRICK).locator(".card")).to_have_count(2)
    await expect(page.locator(".trick")).to_be_visible()
    await expect(own_hand(page).get_by_role("option")).to_have_count(4)
    assert await owners(page) == expected
    assert len(await spots(page)) == 2


async def test_the_log_names_who_sat_there_then(open_page, server) -> None:
    bob, tom = await phones_at(open_page, server, "crazy-eights", names=("Bob", "Tom"))
    table = Phones([bob, tom])
    card = (await tom.hand())[0]
    await tom.do("Play", card)
    zoe = await table.replace(tom, open_page, "Zoe")
    for phone in (bob, zoe):
        await phone.player.expect_log(re.compile(r"^Tom played \S+\.$"))
        await phone.player.expect_log("Tom sat down at seat 2.")
        await phone.player.expect_log("Tom left.")
    await zoe.player.expect_log("You sat down at seat 2.")
    await bob.player.expect_log("Zoe sat down at seat 2.")
    await bob.page.reload()
    await bob.player.expect_log("Tom left.")
    for text in [await one.player.log.inner_text() for one in (bob, zoe)]:
        assert not re.search(r"Zoe (left|played)|You (played|left)|you got", text)
    second = (await zoe.hand())[0]
    await zoe.do("Play", second)
    await zoe.player.expect_log(re.compile(r"^You played \S+\.$"))
    await bob.player.expect_log(re.compile(r"^Zoe played \S+\.$"))

    # The sheet of the pile, and the audit's list of views, too.
    await bob.open_sheet("pile:table")
    names = await bob.sheet.locator(".spread .muted").all_inner_texts()
    assert [name.split()[0].strip(",") for name in names] == ["Zoe", "Tom"]
    await bob.page.keyboard.press("Escape")
    await bob.page.keyboard.press("Shift+L")
    await bob.choose("End the hand")
    await bob.page.goto(bob.page.url + "/audit")
    view = bob.page.locator("#viewer")
    await expect(view.locator("option").nth(3)).to_contain_text("Tom")
    await bob.page.get_by_role("button", name="To the end").tap()
    await expect(view.locator("option").nth(3)).to_contain_text("Zoe")


async def test_a_second_click_plays_as_a_second_tap_does(open_page, server) -> None:
    paths = await prepared_table(server, NAMES, deal=3, rules={"game": "spades"})
    page = await open_page(paths[0])
    player = PlayerPage(page, NAMES[0])
    await player.holds(3)
    await player.cards.first.dblclick()
    await player.holds(2)
    await player.choose(0)
    await player.cards.first.click()
    await player.holds(1)
    await page.keyboard.press("Escape")
    await player.cards.first.focus()
    for selected in ("true", "false"):  # the keyboard still selects and deselects
        await page.keyboard.press("Space")
        await expect(player.cards.first).to_have_attribute("aria-selected", selected)
    await expect(tool(page, "Play")).to_be_disabled()
