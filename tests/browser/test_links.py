"""Links that seat a player: a personal link to the player's own seat, and one with a ticket."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from websockets.exceptions import InvalidStatus

from dealer.eventlog import Log
from dealer.service.identity.admin import AdminService
from tests.browser.conftest import PHONE
from tests.browser.table_page import (
    open_table,
    own_cards,
    own_hand,
    shown_link,
    sit_down,
    start_round,
    tool,
)
from tests.gateway.rpc_client import RpcClient
from tests.harness.server_process import ServerProcess
from tests.harness.service_keys import with_key

pytestmark = pytest.mark.reuse_pages


async def other_device(page: Page) -> str:
    """The link of "Play on another device"."""
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Play on another device").click()
    link = await shown_link(page)
    await page.keyboard.press("Escape")
    return link


async def service_of(server: ServerProcess, name: str) -> RpcClient:
    """A connection of a service with a new key of this name."""
    async with await Log.open(f"sqlite:///{server.database}") as log:
        key = await AdminService(log, who="a test").add_service_key(name, ("open", "seat"))
    while True:  # until the server has polled the keys
        try:
            return await RpcClient.connect(server.port, **with_key(key))
        except InvalidStatus:
            continue


async def test_a_player_continues_on_another_device(open_page, server, axe) -> None:
    laptop = await open_page("/")
    await open_table(laptop, "Ada")
    await start_round(laptop)
    await tool(laptop, "Draw").click()
    await expect(own_cards(laptop)).to_have_count(1)
    link = await other_device(laptop)
    assert "#seat=seat.1." in link
    phone = await open_page(link, size=PHONE)
    await expect(own_cards(phone)).to_have_count(1)
    assert "#" not in phone.url
    await expect(laptop.locator("#connection")).to_be_visible()
    await axe(phone)
    await phone.reload()
    await expect(own_cards(phone)).to_have_count(1)


async def test_a_link_to_a_seat_that_was_left_lets_one_watch(open_page, server) -> None:
    ada = await open_page("/")
    invite = await open_table(ada, "Ada")
    bob = await open_page(invite)
    await sit_down(bob, "Bob")
    link = await other_device(bob)
    await bob.get_by_role("button", name="Menu").click()
    await bob.get_by_role("button", name="Leave").click()
    await bob.get_by_role("dialog").get_by_role("button", name="Leave").click()
    await expect(bob.get_by_role("button", name="Sit down")).to_be_visible()
    late = await open_page(link)
    await expect(late.get_by_text("This link is no longer valid")).to_be_visible()
    await expect(late.get_by_role("button", name="Sit down")).to_be_visible()


async def test_a_ticket_in_a_link_gives_its_seat_once(open_page, server) -> None:
    shop = await service_of(server, "links")
    table = (await shop.call("table.open"))["table"]
    made = await shop.call("seat.ticket", table=table, name="Dora", seat=2, subject="7")
    link = f"/tables/{table}#ticket={made['ticket']}"
    dora = await open_page(link)
    await expect(own_hand(dora)).to_be_visible()
    assert "#" not in dora.url
    await dora.reload()
    await expect(own_hand(dora)).to_be_visible()
    # In the same browser the stored seat is found again, although the ticket is used.
    await dora.goto(link)
    await dora.reload()
    await expect(own_hand(dora)).to_be_visible()
    thief = await open_page(link)
    await expect(thief.get_by_text("This ticket was used before")).to_be_visible()
    await expect(thief.get_by_role("button", name="Sit down")).to_be_visible()
    await shop.close()


async def test_the_share_sheet_comes_first_then_the_code_then_the_link(open_page, axe) -> None:
    page = await open_page("/", size=PHONE, has_touch=True, is_mobile=True)
    await page.add_init_script(
        "navigator.share = async (what) => { window.shared = what; };"  # as on phones
    )
    link = await open_table(page, "Ada")
    await page.get_by_role("button", name="Invite").tap()
    dialog = page.get_by_role("dialog", name="Invite players")
    share = dialog.get_by_role("button", name="Send the invitation…")
    code = dialog.get_by_role("img", name="The same link as a QR code")
    field = dialog.locator(".address")
    tops = [(await one.bounding_box())["y"] for one in (share, code, field)]
    assert tops == sorted(tops)
    await axe(page)
    await share.tap()
    assert await page.evaluate("window.shared") == {"title": "Ada’s table", "url": link}


async def test_a_closed_table_has_no_invitation(open_page) -> None:
    page = await open_page("/")
    await open_table(page, "Ada")
    invite = page.get_by_role("button", name="Invite")
    await expect(invite).to_be_visible()
    await page.get_by_role("button", name="Menu").click()
    for _ in range(2):  # the second confirms it
        await page.get_by_role("dialog").get_by_role("button", name="Close the table").click()
    await expect(page.get_by_text("This table is closed").first).to_be_visible()
    await expect(invite).to_be_hidden()
    await page.keyboard.press("i")
    await page.keyboard.press("Shift+?")
    await expect(page.get_by_role("dialog")).to_have_count(1)  # the help, no invitation
    await expect(page.get_by_role("dialog", name="Keys and gestures")).to_be_visible()
