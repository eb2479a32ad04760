"""Each page loads under its policy, without console errors, and is accessible."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_pages_load_without_console_errors(open_page, axe, path) -> None:
    page = await open_page(path)
    assert await page.title()
    await axe(page)
