"""One game from the lobby to the audit page in Chromium, Firefox and WebKit, with their own input.

What a browser of this list cannot do, the pages must not need.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.bidi import Firefox, firefox
from tests.browser.person import Person
from tests.browser.webdriver import WebKit, webkit
from tests.browser.windows import Chromium, Driver
from tests.harness import installed
from tests.harness.cuttable_link import CuttableLink
from tests.harness.server_process import ServerProcess

NO_CONNECTION = re.compile("(?i)websocket|ERR_CONNECTION|NetworkError|can.t establish|interrupted")
"""What browsers log when a connection is cut."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def chromium_driver(browser: Browser) -> Chromium:
    return Chromium(browser)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def firefox_driver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Firefox]:
    async with firefox(installed.firefox(), tmp_path_factory.mktemp("firefox")) as driver:
        yield driver


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def webkit_driver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WebKit]:
    async with webkit(installed.webkit(), tmp_path_factory.mktemp("webkit")) as driver:
        yield driver


@pytest.fixture(params=["chromium", "firefox", "webkit"])
def started(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.getfixturevalue(f"{request.param}_driver")
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def driver(started: Driver) -> AsyncIterator[Driver]:
    yield started
    await started.close_windows()


async def test_a_game_from_the_lobby_to_the_audit_page(
    server: ServerProcess, link: CuttableLink, driver: Driver
) -> None:
    ada, bob = await at_a_table(driver, server, link)
    await deal(ada, bob)
    await play(ada, bob)
    await lose_the_connection(ada, bob, link)
    await close_and_check(ada, bob)
    unexpected = [one for one in ada.window.problems() if not NO_CONNECTION.search(one)]
    assert [*unexpected, *bob.window.problems()] == []


async def at_a_table(
    driver: Driver, server: ServerProcess, link: CuttableLink
) -> tuple[Person, Person]:
    """Ada opens a table in the lobby, and Bob opens her invite link."""
    ada = Person(await driver.open(), "Ada")
    await ada.window.go(f"http://127.0.0.1:{link.port}/")
    await ada.tap("radio", "^Any game")
    await ada.write("Your name", "Ada")
    await ada.tap("button", "^Open a table$")
    await ada.sees("heading", "^Invite players$")
    invitation = await ada.window.call(
        """() => document.querySelector("dialog .address")?.textContent"""
    )
    await ada.tap("button", "^Close$")

    bob = Person(await driver.open(), "Bob")
    await bob.window.go(invitation.replace(f":{link.port}/", f":{server.port}/"))
    await bob.write("Your name", "Bob")
    await bob.tap("button", "^Sit down$")
    await ada.hears("Bob sat down at seat 2")
    return ada, bob


async def deal(ada: Person, bob: Person) -> None:
    await ada.tap("button", "^Shuffle and start$")
    for one in (ada, bob):
        await one.hears("Shuffled 52 cards, by the house, ")
    for _ in range(4):
        await ada.tap("button", "^More cards$")
    await ada.tap("button", "^Deal$")
    for one in (ada, bob):
        await one.holds(5)
        await one.reads("button.badge", "all 7 checks passed")


async def play(ada: Person, bob: Person) -> None:
    """Select and play, drag onto a pile, draw by a tap on the deck, give, and use a sheet."""
    played, dragged, *_ = await bob.holds(5)
    await bob.choose(played)
    await bob.tap("button", "^Play$")
    await ada.sees("button", f"^Table pile, 1 card: {played}$")
    await bob.holds(4)
    await bob.drag(dragged, "pile:discard")
    await ada.hears("Bob discarded 1 card")
    await bob.holds(3)
    await bob.tap("button", "^Deck, 42 cards: draw$")
    given, *_ = await bob.holds(4)
    await bob.choose(given)
    await bob.tap("button", "^More…$")
    await bob.tap("button", "^Give to a player…$")
    await bob.confirm("Give")
    await bob.holds(3)
    assert given in await ada.holds(6)
    shown = (await ada.holds(6))[0]
    await ada.open_sheet(shown)
    await ada.tap("button", "^Show to all$")
    await ada.sees("card", f"^{shown}, shown to all$")


async def lose_the_connection(ada: Person, bob: Person, link: CuttableLink) -> None:
    """Ada's connection is cut, Bob plays on, and Ada gets to where he is with her cards."""
    before = await ada.holds(6)
    await link.cut()
    await ada.reads("#connection", "The connection was lost")
    await bob.tap("button", "^Draw$")
    await bob.holds(4)
    await link.mend()
    await ada.reads("#connection", "you are up to date")
    await ada.hears("Bob drew 1 card")
    assert await ada.holds(6) == before


async def close_and_check(ada: Person, bob: Person) -> None:
    await ada.tap("button", "^More…$")
    await ada.tap("button", "^End the hand$")
    await ada.confirm("End the hand")
    for one in (ada, bob):
        await one.reads("button.badge", "all 8 checks passed")
        await one.tap("link", "^Check the shuffle$")
        await one.sees("heading", "^The shuffle is fair$")
        states = await one.window.call(
            """() => Object.fromEntries(Array.from(document.querySelectorAll("#checks li"),
              (one) => [one.dataset.check, one.dataset.state]))"""
        )
        names = ("form", "heads", "saved", "secrets", "tape", "seals", "moves")
        assert states == dict.fromkeys(names, "passed")
