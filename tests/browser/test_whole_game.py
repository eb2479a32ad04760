"""Four players play a round in four browsers, with reloads, lost connections and restarts."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import WebSocket, expect

from dealer.proof.verify import verify
from tests.browser.conftest import PHONE
from tests.browser.player_page import PlayerPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import close_round
from tests.harness.server_process import PATIENT

pytestmark = pytest.mark.reuse_pages

NO_CONNECTION = "WebSocket connection to .* failed|Failed to load resource: net::ERR"


async def four(open_page, *, second_at: int | None = None) -> list[PlayerPage]:
    """Ada opens a table; Bob (on a phone), Cleo and Dan join it."""
    ada = PlayerPage(await open_page("/"), "Ada")
    path = await ada.open_table()
    bob = PlayerPage(await open_page(path, size=PHONE, at=second_at), "Bob")
    cleo, dan = [PlayerPage(await open_page(path), name) for name in ("Cleo", "Dan")]
    players = [ada, bob, cleo, dan]
    for one in players[1:]:
        await one.sit_down()
    return players


async def deal(players: list[PlayerPage], each: int) -> None:
    host = players[0]
    await host.do("Shuffle and start")
    for one in players:
        await one.expect_log(re.compile("Shuffled 52 cards"))
    await host.set_count(each)
    await host.do("Deal")
    for one in players:
        await one.holds(each)
        await one.expect_checks()


async def test_a_round_is_played_with_a_reload_and_a_lost_connection(
    server, link, open_page
) -> None:
    players = await four(open_page, second_at=link.port)
    ada, bob, cleo, dan = players
    await deal(players, 5)

    # Dan reloads his page: same seat, same cards in the same order.
    before = await dan.names()
    await dan.page.reload()
    await dan.holds(5)
    assert await dan.names() == before

    # Bob loses his connection: his page and the others' show it, and he receives what he missed.
    bob.errors.expect(NO_CONNECTION)
    await link.cut()
    await expect(bob.banner).to_contain_text("The connection was lost")
    await expect(bob.button("Draw")).to_be_disabled()
    await expect(ada.other("Bob")).to_have_accessible_name(re.compile("disconnected"))
    await cleo.choose(0)
    await cleo.do("Discard")
    await cleo.holds(4)
    await ada.expect_log("Cleo discarded 1 card.")
    await link.mend()
    await bob.expect_log("Cleo discarded 1 card.")
    await expect(bob.banner).to_contain_text("you are up to date")
    await expect(ada.other("Bob")).to_have_accessible_name(re.compile(r", here$"))

    played = await bob.choose(2)
    await bob.do("Play")
    await expect(ada.button(re.compile(f"^Table pile, 1 card: {played}"))).to_be_visible()
    await ada.set_count(2)
    await ada.do("Draw")
    await ada.holds(7)
    await dan.expect_log("Ada drew 2 cards.")

    await close_round(ada.page)
    for one in players:
        await one.expect_log(re.compile("Round 1 was closed"))
        await one.expect_checks(8)
    lines = (await server.bundle(ada.page.url[-32:])).splitlines()
    report = verify(lines)
    assert report.fault is None
    assert report.remarks.house_only == 0

    # Each browser has cosigned; Dan's used the same key after the reload.
    closed = sum(line.startswith(b'{"at"') for line in lines)
    async with asyncio.timeout(PATIENT):
        while list(report.cosigned_upto.values()) != 4 * [closed]:
            lines = (await server.bundle(ada.page.url[-32:])).splitlines()
            report = verify(lines)
    assert sorted(report.names.values()) == ["Ada", "Bob", "Cleo", "Dan"]

    # The audit page, by the link on the table.
    await bob.page.get_by_role("link", name="Check the shuffle").click()
    await expect(bob.page.get_by_text("All 7 checks passed")).to_be_visible()


async def test_the_server_is_killed_and_restarted(server, open_page) -> None:
    players = await four(open_page)
    ada, bob, *_ = players
    await deal(players, 3)
    hands = [await one.names() for one in players]
    for one in players:
        one.errors.expect(NO_CONNECTION)
    await server.kill()
    await expect(bob.banner).to_contain_text("The connection was lost")
    await server.open()
    for one, hand in zip(players, hands, strict=True):
        await expect(one.banner).to_contain_text("you are up to date")
        assert await one.names() == hand
    await bob.do("Draw")
    await bob.holds(4)
    await ada.expect_log("Bob drew 1 card.")
    await bob.expect_checks()


@pytest.mark.reuse_pages(False)
async def test_a_silent_connection_is_replaced(server, link, open_page) -> None:
    """A connection without traffic is detected and replaced."""
    ada = PlayerPage(await open_page("/"), "Ada")
    path = await ada.open_table()
    bob = PlayerPage(await open_page(path, at=link.port), "Bob")
    bob.errors.expect(NO_CONNECTION)
    await bob.sit_down()
    await deal([ada, bob], 2)
    link.hold()
    await bob.page.context.set_offline(True)
    await ada.do("Draw")
    await ada.holds(3)
    await bob.page.context.set_offline(False)
    await link.cut()
    await link.mend()
    await bob.expect_log("Ada drew 1 card.")
    await bob.holds(2)


@pytest.mark.reuse_pages(False)
async def test_a_spectator_receives_no_hidden_card(server, open_page) -> None:
    ada = PlayerPage(await open_page("/"), "Ada")
    path = await ada.open_table()
    eve = PlayerPage(await open_page(path), "Eve")
    heard: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: heard.append(str(frame)))

    eve.page.on("websocket", listen)
    await eve.page.reload()
    await deal([ada], 5)
    await eve.expect_log("Ada drew 5 cards.")
    shown = await ada.choose(0)
    await ada.do("Play")
    await expect(eve.button(re.compile(f"^Table pile, 1 card: {shown}"))).to_be_visible()
    assert heard
    assert not [frame for frame in heard if '"private"' in frame]


async def test_leaving_and_disconnecting_are_shown(server, open_page) -> None:
    names = ("Ada", "Bob", "Cleo", "Dan")
    paths = await prepared_table(server, names, deal=None)
    ada, bob, cleo, dan = [
        PlayerPage(await open_page(path), name) for path, name in zip(paths, names, strict=True)
    ]
    await expect(ada.other("Cleo")).to_have_accessible_name(re.compile("here$"))
    await cleo.page.close()
    await expect(ada.other("Cleo")).to_have_accessible_name(re.compile("disconnected"))
    await bob.page.get_by_role("button", name="Menu").click()
    await bob.do("Leave your seat")
    await bob.page.get_by_role("dialog").get_by_role("button", name="Leave your seat").click()
    await ada.expect_log("Bob left.")
    await expect(dan.other("Bob")).to_have_accessible_name(re.compile("left the table$"))
