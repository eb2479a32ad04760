"""Hosts and seats on the page: who follows, who is removed, freed and invited; marks and tricks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from dealer.gateway.presence import absence
from tests.browser.conftest import AxeCheck
from tests.browser.player_page import PlayerPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import answer, holds, place, shown_link
from tests.browser.touch import Fingers
from tests.harness.qr_codes import read_path

PHONE = {"width": 390, "height": 844}
SMALL_PHONE = {"width": 360, "height": 640}


@pytest.fixture(autouse=True)
def soon_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Players count as away for long after a moment."""
    monkeypatch.setattr(absence, "LONG_SECONDS", 0.5)


@dataclass(frozen=True, slots=True)
class Trio:
    """Ada is the host; Bob plays with a finger, Cleo with a mouse."""

    ada: PlayerPage
    bob: PlayerPage
    cleo: PlayerPage
    fingers: Fingers


@pytest_asyncio.fixture(loop_scope="session")
async def trio(open_page: Any, malicious: Any) -> Trio:
    paths = await prepared_table(malicious, ("Ada", "Bob", "Cleo"), deal=None)
    ada = PlayerPage(await open_page(paths[0]), "Ada")
    bob = PlayerPage(await open_page(paths[1], size=PHONE, has_touch=True, is_mobile=True), "Bob")
    cleo = PlayerPage(await open_page(paths[2]), "Cleo")
    for one, other in ((ada, "Cleo"), (bob, "Ada"), (bob, "Cleo"), (cleo, "Ada"), (cleo, "Bob")):
        await expect(one.other(other)).to_have_accessible_name(re.compile("here$"))
    return Trio(ada, bob, cleo, await Fingers.on(bob.page))


def sheet(page: Page) -> Locator:
    return page.get_by_role("dialog")


async def open_menu_of(player: PlayerPage, name: str) -> Locator:
    """The menu of another player, by a click."""
    await player.other(name).click()
    await expect(sheet(player.page)).to_be_visible()
    return sheet(player.page)


async def choose(page: Page, label: str | re.Pattern[str]) -> None:
    await sheet(page).get_by_role("button", name=label, exact=isinstance(label, str)).click()


async def done_or_refused(page: Page, line: Locator) -> bool:
    """Wait until the log has this line, or a refusal is shown, which is removed."""
    toast = page.locator("#toast")
    await expect(line.or_(toast.locator("p")).first).to_be_attached()
    await toast.evaluate("(toast) => toast.replaceChildren()")
    return await line.count() > 0


async def link_and_code(page: Page) -> tuple[str, str]:
    """The link of the open dialog, and the text of its QR code."""
    code = sheet(page).get_by_role("img", name=re.compile("QR code"))
    box = (await code.get_attribute("viewBox") or "").split()
    path = await code.locator("path").get_attribute("d") or ""
    link = await shown_link(page)
    return link, read_path(path, int(box[2]))


async def test_the_longest_seated_player_follows_a_host_who_leaves(trio: Trio) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    await ada.page.keyboard.press("Shift+Q")
    await answer(ada.page, "Leave your seat")
    await bob.expect_log("You are the host now.")
    await cleo.expect_log("Bob is the host now.")
    await expect(bob.button("Shuffle and start")).to_be_visible()
    await expect(ada.button("Shuffle and start")).to_have_count(0)
    menu = await open_menu_of(cleo, "Bob")
    await expect(menu.get_by_text("The host.")).to_be_visible()


async def test_the_host_hands_on_removes_and_invites_again(
    trio: Trio, open_page: Any, axe: AxeCheck
) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    await open_menu_of(ada, "Bob")
    await choose(ada.page, "Make Bob the host")
    await bob.expect_log("You are the host now.")

    await trio.fingers.hold(bob.other("Cleo"))
    await trio.fingers.lift()
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name="Remove Cleo…"))
    await bob.page.get_by_label("Reason").fill("it is late")
    await axe(bob.page)
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name="Remove", exact=True))
    await cleo.expect_log("You were removed from your seat: it is late.")
    await ada.expect_log("Cleo was removed: it is late.")

    await trio.fingers.tap(bob.other("Cleo"))
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name="Invite Cleo again…"))
    await expect(sheet(bob.page).get_by_role("heading")).to_have_text("Invite to seat 3")
    link, code = await link_and_code(bob.page)
    assert code == link
    await axe(bob.page)
    again = await open_page(link, size=SMALL_PHONE, has_touch=True, is_mobile=True)
    await expect(
        again.get_by_role("heading", name="Bob invites you to Ada’s table")
    ).to_be_visible()
    assert "#" not in again.url
    await expect(again.get_by_label("Your name")).to_have_value("Cleo")
    await expect(again.locator("select[name=seat]")).to_have_value("3")
    await again.get_by_role("button", name="Sit down").click()
    await ada.expect_log("Cleo sat down at seat 3.")


async def test_the_own_link_is_a_code_for_the_other_device(trio: Trio) -> None:
    page = trio.ada.page
    await page.keyboard.press("z")
    await choose(page, "Play on another device")
    await expect(sheet(page).get_by_role("img")).to_be_visible()
    link, code = await link_and_code(page)
    assert "#seat=seat.1." in link
    assert code == link


async def test_a_link_is_there_where_its_code_cannot_be_drawn(trio: Trio) -> None:
    """The library of the codes is loaded with the first one; here an empty file comes instead."""
    page, kind = trio.bob.page, "text/javascript"
    await page.route(
        "**/lean-qr/*", lambda route: route.fulfill(body="export {};", content_type=kind)
    )
    await page.keyboard.press("z")
    await choose(page, "Play on another device")
    await expect(sheet(page).locator(".qr")).to_have_count(0)
    assert "#seat=seat.2." in await shown_link(page)


async def test_players_free_a_dark_seat_and_follow_a_host_who_is_away(trio: Trio) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    menu = await open_menu_of(cleo, "Bob")
    await expect(menu.get_by_role("button", name=re.compile("^Free this seat"))).to_have_count(0)
    await cleo.page.keyboard.press("Escape")
    await cleo.page.keyboard.press("Shift+B")
    await answer(cleo.page, "Become the host")
    await expect(cleo.page.get_by_role("alert")).to_contain_text("when the host has been away for")

    assert not await done_or_refused(cleo.page, cleo.page.get_by_text("You are the host now."))
    await bob.page.close()
    await expect(cleo.other("Bob")).to_have_accessible_name(re.compile("disconnected"))
    freed = cleo.page.get_by_role("log").get_by_text("Bob was removed: away for")
    done = False
    while not done:  # the server accepts it after a while
        await open_menu_of(cleo, "Bob")
        await choose(cleo.page, re.compile(r"^Free this seat \(away since \d\d:\d\d\)"))
        await answer(cleo.page, "Free this seat")
        done = await done_or_refused(cleo.page, freed)

    await ada.page.close()
    await expect(cleo.other("Ada")).to_have_accessible_name(re.compile("disconnected"))
    follows = cleo.page.get_by_role("log").get_by_text("You are the host now.")
    done = False
    while not done:
        await cleo.page.keyboard.press("Shift+B")
        await answer(cleo.page, "Become the host")
        done = await done_or_refused(cleo.page, follows)
    await expect(cleo.button("Shuffle and start")).to_be_visible()


async def test_turn_button_scores_and_phrases_are_marks_for_all(trio: Trio, axe: AxeCheck) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    await open_menu_of(ada, "Bob")
    await choose(ada.page, "Give the turn to Bob")
    await expect(bob.page.locator(".your-turn")).to_have_text("Your turn")
    turn = cleo.page.locator(".seats > [data-turn] .chip > span")
    await expect(turn).to_have_attribute("data-sign", "B")
    await trio.fingers.tap(bob.button("Pass the turn to Cleo"))
    await expect(cleo.page.locator(".your-turn")).to_be_visible()
    await expect(bob.page.locator(".your-turn")).to_be_hidden()
    await expect(bob.button("Pass the turn to Cleo")).to_have_count(0)
    await cleo.page.keyboard.press("w")
    await expect(ada.page.locator(".your-turn")).to_be_visible()

    await open_menu_of(ada, "Cleo")
    await choose(ada.page, "Dealer button to Cleo")
    await bob.expect_log("Cleo deals.")
    await open_menu_of(ada, "Cleo")
    await choose(ada.page, "Score of Cleo")
    await ada.page.get_by_role("spinbutton", name="Score of Cleo").fill("-12")
    await choose(ada.page, "Set")
    await cleo.expect_log("Your score: -12.")
    await ada.button("Menu").click()
    await choose(ada.page, "Players, turn and scores")
    await choose(ada.page, "Cleo · dealer button · -12")
    await expect(sheet(ada.page).get_by_role("heading")).to_have_text("Cleo")
    await ada.page.keyboard.press("Escape")
    await ada.button("Menu").click()
    await choose(ada.page, "Set a counter…")
    await ada.page.get_by_label("Counter, such as pot").fill("pot")
    await ada.page.get_by_label("Value").fill("120")
    await choose(ada.page, "Set")
    await bob.expect_log("pot: 120.")

    await trio.fingers.tap(bob.button("Say something"))
    await axe(bob.page)
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name="Well played!"))
    await cleo.expect_log("Bob: Well played!")
    await cleo.page.keyboard.press("y")
    await choose(cleo.page, "👏")
    await bob.expect_log("Cleo: 👏")


async def test_a_pile_says_who_played_its_cards_and_goes_to_the_winner_of_the_trick(
    trio: Trio, axe: AxeCheck
) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    await ada.do("Shuffle and start")
    await ada.set_count(3)
    await ada.do("Deal")
    for player in (ada, bob, cleo):
        await player.holds(3)
        await player.choose(0)
        await player.do("Play")
        await player.holds(2)
    await trio.fingers.hold(place(bob.page, "pile:table"))
    await trio.fingers.lift()
    await expect(sheet(bob.page).get_by_role("listitem")).to_have_count(3)
    shown = await sheet(bob.page).get_by_role("listitem").all_inner_texts()
    assert [re.sub(r", [\d:]+$", "", text.split("\n")[-1]) for text in shown] == [
        "Cleo",
        "Bob",
        "Ada",
    ]
    await axe(bob.page)
    await bob.page.keyboard.press("Escape")

    await expect(bob.button("Trick to a player…")).to_be_visible()
    await trio.fingers.drag(place(bob.page, "pile:table"), place(bob.page, "hand:3"))
    await cleo.expect_log(re.compile("^You take "))
    await ada.expect_log(re.compile("^Cleo takes "))
    await holds(ada.page, "pile:table", 0)
    await holds(ada.page, "pile:won:3", 3)
    await expect(bob.button("Trick to a player…")).to_have_count(0)

    await cleo.page.locator('[data-stack="pile:won:3"] button').click()
    await choose(cleo.page, "Take some of its cards…")
    await cleo.page.get_by_role("spinbutton").fill("2")
    await choose(cleo.page, "Set")
    await cleo.holds(4)
    await holds(ada.page, "pile:won:3", 1)

    # By a button, when each player has played a card.
    for player in (ada, bob, cleo):
        await player.choose(0)
        await player.do("Play")
    await trio.fingers.tap(bob.button("Trick to a player…"))
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name=re.compile("^Bob")))
    await bob.expect_log(re.compile("^You take "))
    await holds(ada.page, "pile:won:2", 3)


async def test_a_finger_moves_to_another_seat_and_the_host_moves_a_player(trio: Trio) -> None:
    ada, bob, cleo = trio.ada, trio.bob, trio.cleo
    fingers, page = trio.fingers, trio.bob.page
    await fingers.tap(bob.button("Menu"))
    await fingers.tap(sheet(page).get_by_role("button", name="Players, turn and scores"))
    await fingers.tap(sheet(page).get_by_role("button", name=re.compile("^Bob")))
    await fingers.tap(sheet(page).get_by_role("button", name="Move to another seat…"))
    await fingers.tap(sheet(page).get_by_role("button", name="Seat 5", exact=True))
    await bob.expect_log("You move to seat 5.")
    await ada.expect_log("Bob moves to seat 5.")
    await expect(ada.other("Bob")).to_have_count(1)  # not also as one who left

    await open_menu_of(ada, "Cleo")
    await choose(ada.page, "Move Cleo to another seat…")
    await choose(ada.page, "Seat 2")
    await cleo.expect_log("The host asks you to move to seat 2.")
    await cleo.expect_log("You move to seat 2.")
    await ada.do("Shuffle and start")
    await ada.do("Deal")
    for player in (ada, bob, cleo):
        await player.holds(1)
        await expect(player.cards.first).not_to_have_attribute("aria-label", "face-down card")

    await page.reload()
    await bob.holds(1)
    await open_menu_of(ada, "Bob")
    await choose(ada.page, "Move Bob to another seat…")
    await choose(ada.page, "Seat 3")
    await bob.expect_log("The host asks you to move to seat 3.")
    await ada.page.keyboard.press("Shift+L")
    await answer(ada.page, "End the hand")
    await bob.expect_log("You move to seat 3.")  # once no card is before the player


async def test_a_player_removed_for_a_reason_waits_for_the_host(open_page: Any, trio: Trio) -> None:
    ada, bob = trio.ada, trio.bob
    await open_menu_of(ada, "Bob")
    await choose(ada.page, "Remove Bob…")
    await ada.page.get_by_label("Reason").fill("he cheats")
    await choose(ada.page, "Remove")
    sit = bob.button("Sit down")
    form = bob.page.locator("#join")
    await expect(form).to_contain_text("The host has removed you: he cheats.")
    await trio.fingers.tap(sit)
    await expect(sit).to_be_disabled()
    await bob.page.get_by_label("Your name").fill("Robert")  # it is the same browser
    await expect(sit).to_be_disabled()
    await bob.page.reload()
    await expect(form).to_contain_text("The host has removed you: he cheats.")

    other = await open_page(bob.page.url)  # another browser, and a name that looks the same
    await other.get_by_label("Your name").fill("BOB")
    await other.get_by_role("button", name="Sit down").click()
    await expect(other.locator("#join")).to_contain_text("A player of this name was removed")

    await open_menu_of(ada, "Bob")
    await choose(ada.page, "Let Bob sit down again")
    await ada.expect_log("Bob may sit down again.")
    await expect(sit).to_be_enabled()
    await bob.page.reload()
    await bob.page.get_by_label("Your name").fill("Bob")
    await trio.fingers.tap(sit)
    await ada.expect_log("Bob sat down at seat 2.")


async def test_the_number_on_a_key_is_that_of_the_seat(trio: Trio) -> None:
    ada, bob = trio.ada, trio.bob
    await ada.do("Shuffle and start")
    await ada.do("Deal")
    for player in (ada, bob):
        await player.holds(1)
    await ada.choose(0)
    await ada.page.keyboard.press("g")
    seats = sheet(ada.page).get_by_role("button").filter(has=ada.page.locator("kbd"))
    await expect(seats).to_have_text(["Bob2", "Cleo3"])
    await ada.page.keyboard.press("3")
    await ada.holds(0)
    await trio.cleo.holds(2)

    await trio.fingers.tap(bob.cards.first)
    await trio.fingers.tap(bob.button("More…"))
    await trio.fingers.tap(sheet(bob.page).get_by_role("button", name="Give to a player…"))
    await expect(sheet(bob.page)).to_be_visible()
    await expect(sheet(bob.page).locator("kbd:visible")).to_have_count(0)
