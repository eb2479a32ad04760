"""The own lost connection, as the page says it."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import own_cards, tool
from tests.harness.cuttable_link import CuttableLink
from tests.harness.server_process import ServerProcess

SAID_WITHIN_MS = 8000
"""Within which the page says that the own connection is lost."""


async def test_the_own_lost_connection_is_said_within_eight_seconds(
    open_page: OpenPage, server: ServerProcess, link: CuttableLink
) -> None:
    """No byte passes any more, without any sign of it, as when a phone leaves its network."""
    path, *_ = await prepared_table(server, ("Ada",), deal=3)
    page = await open_page(path, at=link.port)
    page.errors.expect("WebSocket|ERR_|Failed to load")  # type: ignore[attr-defined]
    await page.clock.install()
    await page.reload()
    await expect(own_cards(page)).to_have_count(3)
    await expect(tool(page, "Draw")).to_be_enabled()
    link.hold()
    await page.clock.run_for(SAID_WITHIN_MS)
    assert await page.locator("#connection").is_visible()
    await expect(page.locator("#connection")).to_contain_text("connection")
    await link.mend()
