"""Pages of the server in a frame of another website, which the operator has allowed or not."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Frame, Page, async_playwright, expect

from tests.browser.conftest import FLAGS, TIMEOUT_MS, chromium
from tests.browser.framing import FramingSite
from tests.browser.table_page import open_table, own_cards, own_hand, start_round
from tests.harness.server_process import ServerProcess

LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9v9z"/></svg>'
BLUE = "rgb(29, 59, 106)"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[FramingSite]:
    async with FramingSite() as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A browser that denies storage to frames of other sites."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium(windows=True), args=list(FLAGS)
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, site: FramingSite) -> AsyncIterator[ServerProcess]:
    """A server whose pages `site` may show, under two names, with an appearance of its own."""
    logo = tmp_path / "logo.svg"
    logo.write_text(LOGO)
    names = (f"http://127.0.0.1:{site.port}", f"http://localhost:{site.port}")
    options: dict[str, Any] = {
        "frame-ancestor": names,
        "title": "Blue <Club>",
        "logo": logo,
        "colour": ("felt=#1d3b6a", "accent=#ffcc00"),
    }
    async with ServerProcess(tmp_path, **options) as server:
        yield server


async def framed(page: Page) -> Frame:
    """The frame of a page of `site`, once it shows a page of the server."""
    frame = page.frames[1]
    await expect(frame.locator("#lobby, #felt").first).to_be_attached()
    return frame


# Another port of a host is another origin of the same site; another host is another site.
@pytest.mark.parametrize(
    ("host", "sandbox"),
    [
        ("127.0.0.1", None),
        ("localhost", None),
        ("localhost", "allow-scripts allow-same-origin allow-forms"),
    ],
)
async def test_a_page_of_an_allowed_origin_shows_a_table_to_play_at(
    site: FramingSite, server: ServerProcess, open_page, host: str, sandbox: str | None
) -> None:
    site.sandbox = sandbox
    site.framed = f"http://127.0.0.1:{server.port}/"
    page = await open_page(f"http://{host}:{site.port}/", has_touch=True)
    page.errors.expect("^requested another origin")
    frame = await framed(page)
    await frame.get_by_role("radio", name="Any game").tap()
    await frame.get_by_label("Your name").fill("Ada")
    await frame.get_by_role("button", name="Open a table").tap()
    await expect(frame.get_by_role("listbox", name=re.compile("Your hand"))).to_be_visible()
    await expect(frame.locator("#notice")).to_be_visible(visible=host == "localhost")
    await frame.get_by_role("button", name="Shuffle and start").tap()
    await frame.locator('[data-stack="deck"] > .stack').tap()  # waits until it is enabled
    await expect(frame.get_by_role("option")).to_have_count(1)
    await frame.get_by_role("button", name="Draw", exact=True).tap()
    await expect(frame.get_by_role("option")).to_have_count(2)
    await expect(frame.get_by_role("button", name=re.compile("^Fair ✓"))).to_be_visible()


async def test_a_page_of_another_origin_cannot_show_it(
    site: FramingSite, server: ServerProcess, open_page
) -> None:
    async with FramingSite() as other:
        other.framed = f"http://127.0.0.1:{server.port}/"
        page = await open_page("about:blank")
        page.errors.expect("frame-ancestors|requested another origin|chrome-error")
        async with page.expect_event("console", lambda one: "frame-ancestors" in one.text):
            await page.goto(f"http://127.0.0.1:{other.port}/")
        assert page.frames[1].url == "chrome-error://chromewebdata/"


@pytest_asyncio.fixture(loop_scope="session")
async def without_storage(tmp_path: Path) -> AsyncIterator[Page]:
    """A page of a browser that denies storage to all websites."""
    profile = tmp_path / "profile"
    preferences = profile / "Default" / "Preferences"
    preferences.parent.mkdir(parents=True)
    block = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    preferences.write_text(json.dumps(block))
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            str(profile),
            executable_path=chromium(windows=True),
            args=list(FLAGS),
            has_touch=True,
            reduced_motion="reduce",
        )
        context.set_default_timeout(TIMEOUT_MS)
        errors: list[str] = []
        context.on("weberror", lambda error: errors.append(str(error.error)))
        yield await context.new_page()
        await context.close()
        assert not errors


async def test_a_frame_without_storage_plays_from_memory(
    site: FramingSite, server: ServerProcess, open_page, without_storage: Page
) -> None:
    ada = await open_page("/")
    site.framed = await open_table(ada, "Ada")
    page = without_storage
    await page.goto(f"http://localhost:{site.port}/")
    frame = await framed(page)
    await expect(frame.get_by_text("This browser stores nothing for this page")).to_be_visible()
    link = frame.get_by_role("link", name="Open the table in a tab of its own")
    assert await link.get_attribute("target") == "_blank"
    await frame.get_by_label("Your name").fill("Bob")
    await frame.get_by_role("button", name="Sit down").tap()
    await expect(frame.get_by_role("listbox", name=re.compile("Your hand"))).to_be_visible()
    await start_round(ada)
    await frame.get_by_role("button", name="Draw", exact=True).tap()
    await expect(frame.get_by_role("option")).to_have_count(1)
    await expect(frame.get_by_role("button", name=re.compile("^Fair ✓"))).to_be_visible()


async def test_pages_have_the_operators_title_logo_and_colours(
    server: ServerProcess, open_page, axe
) -> None:
    page = await open_page("/")
    await expect(page).to_have_title("Blue <Club>: open a table")
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        await axe(page)
    await open_table(page, "Ada")
    await expect(page).to_have_title("Ada’s table · Blue <Club>")
    await expect(page.locator("#header .brand")).to_have_text("Blue <Club>")
    loaded = "(logo) => logo.decode().then(() => logo.naturalWidth)"
    await start_round(page)
    await page.get_by_role("button", name="Draw", exact=True).click()
    await expect(own_cards(page)).to_have_count(1)
    await expect(own_hand(page)).to_be_visible()
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        assert await page.locator("#header img").evaluate(loaded) > 0
        await expect(page.locator("#around")).to_have_css("background-color", BLUE)
        await axe(page)
