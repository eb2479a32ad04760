"""Each page as it comes: under its policy, without a complaint, for everybody."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", ["/", "/audit"])
async def test_a_page_comes_and_complains_of_nothing(arrive, axe, path) -> None:
    page = await arrive(path)
    assert await page.title()
    await axe(page)
