"""Pictures of every state of the pages, for people to look at.

    python -m tests.browser.screenshots FOLDER [--states lobby hand-5 …]

Each state is taken at five sizes, light and dark, with letters of 100 and 150 percent, as
`state-WIDTHxHEIGHT-theme-LETTERS.png`; `state.png` has the twenty of them. The pages are those of
a host, if nothing else is said, at a table of five.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser.album import Album, Size
from tests.browser.conftest import FLAGS
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import close_round, dismiss_help, place
from tests.browser.test_large_text import hearts, trick
from tests.harness.cuttable_link import CuttableLink
from tests.harness.malicious_server import MaliciousServer, Pace
from tests.harness.table_of_clients import client

STATES = (
    "lobby", "alone", "joining", "before-round", "shuffling", "hand-5", "visitor", "selected",
    "sheet", "giving", "menu", "invite", "toast", "pile", "hand-13", "hand-25", "connection-lost",
    "round-over", "audit", "audit-replay", "audit-chart", "practice", "lobby-practice", "trick",
    "history", "finished", "error", "cheated",
)  # fmt: skip
OTHERS = ("Bob", "Cleo", "Dan")
STEPS = 100
"""More steps than any client needs for its random bytes."""


@dataclass(frozen=True, slots=True)
class Device:
    """What the pages are shown on; contexts of Chromium are made with `settings`."""

    sizes: tuple[Size, ...]
    settings: dict[str, Any]


PHONE = Device(
    ((360, 640), (390, 844), (844, 390), (768, 1024)),
    {"has_touch": True, "is_mobile": True, "device_scale_factor": 2},
)
DESKTOP = Device(((1280, 800),), {})


class Tour:
    """Visits all states on one device, and takes the pictures of an album."""

    def __init__(self, album: Album, device: Device, server: MaliciousServer) -> None:
        self._album = album
        self._device = device
        self._server = server
        self._stack = AsyncExitStack()
        self.link: CuttableLink
        self.ada: PlayerPage
        self.path = ""
        self._browser: Browser

    async def visit(self, browser: Browser) -> None:
        async with self._stack:
            self._browser = browser
            self.link = await self._stack.enter_async_context(CuttableLink(self._server.port))
            self.ada = PlayerPage(await self._open("/", at=self.link.port), "Ada")
            await self.begin()
            await self.play()
            await self.lose_the_connection()
            await self.end()
            await self.play_a_game()
            await self.cheat()

    async def _open(self, path: str, *, at: int) -> Page:
        width, height = self._device.sizes[0]
        context = await self._stack.enter_async_context(
            await self._browser.new_context(
                viewport={"width": width, "height": height},
                base_url=f"http://127.0.0.1:{at}",
                reduced_motion="reduce",
                **self._device.settings,
            )
        )
        page = await context.new_page()
        await page.goto(path)
        return page

    async def _take(self, state: str, *, page: Page | None = None, at: str | None = None) -> None:
        """Take the pictures of a state; `at` is the element that is scrolled to the top."""
        shown = page or self.ada.page

        async def scroll() -> None:
            if at is not None:
                await shown.locator(at).evaluate("(one) => one.scrollIntoView({ block: 'start' })")

        await self._album.take(shown, state, self._device.sizes, scroll)

    async def begin(self) -> None:
        """From the lobby to the first hand, with a visitor on the same device and three clients."""
        await expect(self.ada.page.locator(".tile").nth(12)).to_be_visible()
        await self._take("lobby")
        self.path = await self.ada.open_table()
        await self._take("alone")
        await self.ada.do("Invite")
        await self._take("invite")
        await self.ada.page.keyboard.press("Escape")
        table = self.path.rpartition("/")[2]
        players = []
        for name in OTHERS:
            player = await self._stack.enter_async_context(client(self._server.url, name))
            player.table = await player.house.join(table)
            players.append(player)
        self._tables = [player.table for player in players]
        visitor = PlayerPage(await self._open(self.path, at=self._server.port), "Eve")
        await expect(visitor.button("Sit down")).to_be_visible()
        await self._take("joining", page=visitor.page)
        await visitor.sit_down()
        await self.ada.expect_log("Eve sat down at seat 5.")
        await self._take("before-round")
        pace = Pace(players[0])
        await self.ada.do("Shuffle and start")
        await expect(self.ada.page.locator("[data-shuffling]")).to_be_visible()
        await self._take("shuffling")
        pace.allow(STEPS)
        await self.ada.expect_log(re.compile("Shuffled 52 cards"))
        await self.ada.set_count(5)
        await self.ada.do("Deal")
        await self.ada.holds(5)
        await visitor.holds(5)
        bob, cleo, dan = self._tables
        await bob.play(bob.hand[0])
        await cleo.play(cleo.hand[0])
        await dan.discard(dan.hand[0])
        for one in (self.ada, visitor):
            await one.expect_log("Dan discarded 1 card.")
            await one.expect_checks()
        await self._take("hand-5")
        await self._take("visitor", page=visitor.page)

    async def play(self) -> None:
        ada, page = self.ada, self.ada.page
        await page.get_by_role("button", name="Menu").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await self._take("menu")
        await page.keyboard.press("Escape")
        await page.keyboard.press("h")
        await expect(page.get_by_role("alert")).to_have_text("Select cards of your hand first.")
        await self._take("toast")
        await expect(page.get_by_role("alert")).to_be_hidden()
        await ada.cards.nth(1).click(button="right")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await self._take("sheet")
        await page.keyboard.press("Escape")
        await place(page, "pile:table").get_by_role("button").click()
        await expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(2)
        await self._take("pile")
        await page.keyboard.press("Escape")
        for index in (1, 3):
            await ada.choose(index)
        await self._take("selected")
        await page.keyboard.press("g")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await self._take("giving")
        await page.keyboard.press("Escape")
        for drawn, held in ((8, 13), (12, 25)):
            await ada.set_count(drawn)
            await ada.do("Draw")
            await ada.holds(held)
            await self._take(f"hand-{held}")

    async def lose_the_connection(self) -> None:
        await self.link.cut()
        await expect(self.ada.banner).to_contain_text("The connection was lost")
        await self._take("connection-lost")
        await self.link.mend()
        await expect(self.ada.banner).to_contain_text("you are up to date")

    async def end(self) -> None:
        """The end of the round, its audit page, the round again, and a page that does not exist."""
        page = self.ada.page
        await close_round(page)
        await self.ada.expect_log(re.compile("Round 1 was closed"))
        await self.ada.expect_checks(8)
        await self._take("round-over")
        await page.goto(f"{self.path}/audit#round=1&step=17")
        await expect(page.get_by_text("All 7 checks passed")).to_be_visible()
        await expect(page.get_by_text(re.compile("^Swap 18 "))).to_be_visible()
        await self._take("audit", at="body")
        await self._take("audit-replay", at="#replay")
        await self._take("audit-chart", at="#plot")
        await page.goto(self.path)
        await page.get_by_role("link", name="Practise it").click()
        await self.ada.do("Open the practice table")
        await expect(page.locator(".badge")).to_contain_text("Practice")
        await self._take("practice")
        await page.goto("/")
        await expect(page.get_by_role("link", name="Practice")).to_be_visible()
        await self._take("lobby-practice", at=".own")
        await self.look_back()
        await page.goto("/nowhere")
        await self._take("error")

    async def look_back(self) -> None:
        """What happened at a table, and the list of the finished ones, with two public ones."""
        page = self.ada.page
        await page.goto(f"{self.path}/history")
        await expect(page.get_by_role("heading", name="Round 1", exact=False)).to_be_visible()
        await self._take("history")
        await page.goto("/")
        for path in await page.locator(".own a").evaluate_all("(all) => all.map((a) => a.href)"):
            await page.goto(path)
            await expect(page.get_by_role("button", name="Menu")).to_be_visible()
            await page.keyboard.press("z")  # the menu: a welcome is above its button
            for _ in ("in the menu", "the question"):
                dialog = page.get_by_role("dialog")
                await dialog.get_by_role("button", name="Close the table").click()
            await expect(page.get_by_text("This table is closed").first).to_be_visible()
        async with client(self._server.url, "Bob") as bob:
            for name in ("Friday", "Saturday evening"):
                await (await bob.house.open(name=name)).close()
            while len(await bob.house.tables(closed=True)) < 2:
                pass  # the list follows the logs
        await page.goto("/finished")
        await expect(page.get_by_text("Saturday evening")).to_be_visible()
        await self._take("finished")

    async def play_a_game(self) -> None:
        """A trick of hearts, to which the fourth player has not played yet."""
        player = await self._open(await hearts(self._server), at=self._server.port)
        await dismiss_help(player)
        await expect(trick(player)).to_have_count(3)
        await self._take("trick", page=player)

    async def cheat(self) -> None:
        """The server shows a card that is not the one that it sealed."""
        ada, page = self.ada, self.ada.page
        await page.goto("/")
        path = await ada.open_table()
        await ada.do("Shuffle and start")
        await ada.expect_log(re.compile("Shuffled 52 cards"))
        round_ = self._server.live_table(path.rpartition("/")[2]).table.round
        assert round_ is not None
        faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
        faces[top], faces[bottom] = faces[bottom], faces[top]
        await ada.do("Draw")
        await expect(page.get_by_role("alertdialog")).to_be_visible()
        await self._take("cheated")


async def photograph(browser: Browser, album: Album, devices: tuple[Device, ...]) -> None:
    """Take the pictures of an album on devices, and make its sheets."""
    for device in devices:
        with tempfile.TemporaryDirectory() as folder:
            server = MaliciousServer(Path(folder))
            await server.open()
            try:
                await Tour(album, device, server).visit(browser)
            finally:
                await server.close()
    await album.make_sheets(browser)


async def main(folder: Path, states: list[str]) -> None:
    album = Album(folder, states)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        await photograph(browser, album, (PHONE, DESKTOP))
        await browser.close()
    print(f"{sum(map(len, album.taken.values()))} pictures of {len(album.taken)} states: {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", nargs="+", choices=STATES, default=[], metavar="STATE")
    args = parser.parse_args()
    asyncio.run(main(args.folder, args.states))
