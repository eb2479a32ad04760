"""Pages that tests use one after the other: a page that was used before needs half the CPU to load.

Its process runs already, and has the scripts. Only the history of the test before remains: storage
is empty, the size and the media are those of a new page, and the address is `about:blank`.
"""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Browser, Page


class PagePool:
    """Idle pages, each in a context of its own, by the settings of the context."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Page]] = {}

    async def take(self, browser: Browser, settings: dict[str, Any]) -> Page:
        """An idle or new page; `settings` are arguments of `Browser.new_context`."""
        idle = self._pages(settings)
        if idle:
            return idle.pop()
        return await (await browser.new_context(**settings)).new_page()

    async def give_back(self, page: Page, settings: dict[str, Any]) -> None:
        """Keep a page that was taken with these settings; close it if it cannot be used again."""
        context = page.context
        if context.pages != [page] or not page.url.startswith(f"{settings['base_url']}/"):
            await context.close()
            return
        await page.evaluate("sessionStorage.clear()")
        await page.goto("about:blank")
        session = await context.new_cdp_session(page)
        cleared = {"origin": settings["base_url"], "storageTypes": "all"}
        await session.send("Storage.clearDataForOrigin", cleared)
        await session.detach()
        await page.set_viewport_size(settings["viewport"])
        await page.emulate_media(
            color_scheme=settings.get("color_scheme"), reduced_motion=settings["reduced_motion"]
        )
        self._pages(settings).append(page)

    def _pages(self, settings: dict[str, Any]) -> list[Page]:
        return self._idle.setdefault(json.dumps(settings, sort_keys=True), [])
