"""Times a new user's first minute: `python tests/browser/first_minute.py`, with Chromium.

The host clones this repository, runs the README's Start line in the clone, opens the address that
is printed, and plays until cards are in the hand. The visitor follows the invite link on a phone.
The steps have the time that the machine needs: nobody reads or types.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import expect

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.async_api import async_playwright  # noqa: E402

from tests.browser.conftest import FLAGS, chromium  # noqa: E402
from tests.browser.player_page import PlayerPage  # noqa: E402
from tests.browser.table_page import shown_link  # noqa: E402

INSTALLING = 600.0


def start_line() -> str:
    found = re.search(r"^## Start\n+```sh\n(.+)\n```$", (ROOT / "README.md").read_text(), re.M)
    assert found is not None
    return found[1]


def clone_into(folder: str) -> Path:
    clone = Path(folder, "dealer")
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    return clone


async def address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(INSTALLING):
        while line := (await process.stdout.readline()).decode():
            if found := re.search(r"The server is running at (http://\S+)", line):
                return found[1]
    raise SystemExit("the server did not start")


async def first_hand(url: str, clock: Clock) -> None:
    """A new host opens a table, and a new visitor with a phone follows the invite link."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium(windows=True), args=list(FLAGS)
        )
        page = await browser.new_page()
        await page.goto(url)
        await page.get_by_role("radio", name="Any game").wait_for()
        clock("the lobby is visible")
        ada = PlayerPage(page, "Ada")
        await ada.open_table()
        clock("a table is open and a seat taken")
        await ada.do("Invite")
        link = await shown_link(page)
        await page.keyboard.press("Escape")
        clock("the invite link can be sent")

        visitor = await browser.new_page(
            viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
        )
        visitors_clock = Clock("visitor")
        await visitor.goto(link)
        await visitor.get_by_label("Your name").wait_for()
        visitors_clock("the table is visible")
        bob = PlayerPage(visitor, "Bob")
        await bob.sit_down()
        visitors_clock("a seat is taken")
        await ada.do("Shuffle and start")
        await ada.set_count(5)
        await ada.do("Deal")
        await expect(ada.cards).to_have_count(5)
        clock("five cards are in the hand")
        await expect(bob.cards).to_have_count(5)
        await bob.expect_checks()
        visitors_clock("five cards are in the hand, and checked")
        await browser.close()


class Clock:
    """Prints a row for each step of a person: the seconds since their start, and of the step."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._began = self._last = time.monotonic()

    def __call__(self, done: str) -> None:
        now = time.monotonic()
        total, step = now - self._began, now - self._last
        print(f"| {self._who:7} | {done:40} | {total:7.1f} | {step:5.1f} |", flush=True)
        self._last = now


async def main() -> None:
    print(f"| {'Who':7} | {'What has been done':40} | {'Seconds':>7} | {'Step':>5} |")
    print(f"|{'-' * 9}|{'-' * 42}|{'-' * 8}:|{'-' * 6}:|")
    clock = Clock("host")
    with tempfile.TemporaryDirectory() as folder:
        clone = clone_into(folder)
        clock("cloned")
        process = await asyncio.create_subprocess_shell(
            start_line(),
            cwd=clone,
            env=os.environ | {"DEALER_PORT": "0", "DEALER_OPS_PORT": "0", "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            url = await address(process)
            clock("the server is installed and started")
            await first_hand(url, clock)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()


if __name__ == "__main__":
    asyncio.run(main())
