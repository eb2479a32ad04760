"""A hand whose player has left, and who sees it: the player who has its seat now, in every way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from dealer.client import House, RemoteTable, connect
from tests.browser.conftest import OpenPage
from tests.browser.table_page import codes, own_cards, own_hand, shown_link
from tests.browser.test_links import service_of
from tests.browser.touch import Fingers
from tests.gateway.rpc_client import RpcClient
from tests.harness.server_process import PATIENT, ServerProcess

PHONE = {"width": 390, "height": 844}
HAND = 7
MINUTES = 600_000

pytestmark = pytest.mark.reuse_pages


@asynccontextmanager
async def dealt_table(
    server: ServerProcess, shop: RpcClient | None = None, table: str | None = None
) -> AsyncIterator[tuple[list[House], list[RemoteTable]]]:
    """Ada, who is the host, Bob and Cleo, with seven cards each.

    They are at the `table` of a service, or at one that Ada opens.
    """
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        houses = [
            await stack.enter_async_context(connect(server.url, name=name))
            for name in ("Ada", "Bob", "Cleo")
        ]
        if table is None:
            table = (await houses[0].open(seats=4)).id
        tables = [await house.join(table) for house in houses]
        await tables[0].until(lambda table: len(table.seats) == len(tables))
        if shop is None:
            await tables[0].transfer_host(1)
        else:
            await shop.call("table.transfer_host", table=table, seat=1)
            await tables[0].until(lambda table: table.state.host_seat == 1)
        await tables[0].round_open(commit_ms=MINUTES, reveal_ms=MINUTES)
        await tables[0].shuffle()
        await tables[0].deal(HAND)
        await tables[1].until(lambda table: len(table.hand) == HAND)
        yield houses, tables


async def phone(open_page: OpenPage, path: str) -> tuple[Page, Fingers]:
    page = await open_page(path, size=PHONE, has_touch=True, is_mobile=True)
    return page, await Fingers.on(page)


async def sit_at(page: Page, fingers: Fingers, seat: int) -> None:
    await page.get_by_label("Your name").fill("Nell")
    await page.locator("select[name=seat]").select_option(str(seat))
    await fingers.tap(page.get_by_role("button", name="Sit down"))
    await expect(own_hand(page)).to_be_visible()


async def sees(page: Page, hand: list[str]) -> None:
    """Wait until the player sees these cards, in the order in which they came."""
    for code in hand:
        await expect(own_cards(page).locator(f'[data-card="{code}"]')).to_have_count(1)
    assert await codes(page) == hand


async def test_who_takes_over_a_left_seat_sees_its_hand(open_page, server) -> None:
    async with dealt_table(server) as (_, (ada, bob, _)):
        hand = bob.hand
        await bob.leave()
        page, fingers = await phone(open_page, f"/tables/{ada.id}")
        await sit_at(page, fingers, 2)
        await sees(page, hand)
        await page.reload()
        await sees(page, hand)
        await fingers.tap(own_cards(page).first)
        await fingers.tap(page.get_by_role("button", name="Play", exact=True))
        await ada.until(lambda table: table.piles.get("table") == hand[:1])

        link = f"/tables/{ada.id}#seat={await own_token(page, ada.id)}"
        other, _ = await phone(open_page, link)  # a second device
        await sees(other, hand[1:])


async def own_token(page: Page, table: str) -> str:
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Play on another device").click()
    link = await shown_link(page)
    await page.keyboard.press("Escape")
    return link.partition("#seat=")[2]


async def test_who_moves_to_a_left_seat_sees_its_hand(open_page, server) -> None:
    async with dealt_table(server) as (_, (ada, bob, _)):
        hand = bob.hand
        await bob.leave()
        page, fingers = await phone(open_page, f"/tables/{ada.id}")
        await sit_at(page, fingers, 4)
        await expect(own_cards(page)).to_have_count(0)
        await ada.move_seat(2, seat=4)
        await sees(page, hand)
        await page.reload()
        await sees(page, hand)


async def test_who_comes_to_a_vacated_seat_with_a_ticket_sees_its_hand(open_page, server) -> None:
    shop = await service_of(server, "hands")
    table = (await shop.call("table.open"))["table"]
    async with dealt_table(server, shop, table) as (_, (_, bob, _)):
        hand = bob.hand
        await shop.call("seat.vacate", table=table, seat=2, reason="")
        made = await shop.call("seat.ticket", table=table, name="Dora", seat=2)
        page, _ = await phone(open_page, f"/tables/{table}#ticket={made['ticket']}")
        await sees(page, hand)
        await page.reload()
        await sees(page, hand)
    await shop.close()


async def test_a_reload_during_a_shuffle_shows_the_hand(open_page, server) -> None:
    """The shuffle waits for the bytes of a player who is not there."""
    async with dealt_table(server) as (houses, (ada, bob, _)):
        hand = bob.hand
        await bob.leave()
        page, fingers = await phone(open_page, f"/tables/{ada.id}")
        await sit_at(page, fingers, 2)
        await sees(page, hand)
        await houses[2].close()
        await ada.shuffle(wait=False)
        await expect(page.locator("[data-shuffling]")).to_be_visible()
        await page.reload()
        await expect(page.locator("[data-shuffling]")).to_be_visible()
        await sees(page, hand)
