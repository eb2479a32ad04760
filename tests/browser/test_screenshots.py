"""The pictures that people look at: the tour still finds every state."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.browser.album import LETTERS, THEMES, Album
from tests.browser.screenshots import PHONE, STATES, Device, photograph

DEVICE = Device(PHONE.sizes[:2], PHONE.settings)


async def test_every_state_is_found_and_taken_at_each_size(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    album = Album(tmp_path, STATES[-2:])
    visited: list[str] = []
    take = album.take

    async def record(page: Page, state: str, *others: Any) -> None:
        visited.append(state)
        await take(page, state, *others)

    monkeypatch.setattr(album, "take", record)
    await photograph(browser, album, (DEVICE,))
    assert sorted(visited) == sorted(STATES)
    for state in STATES[-2:]:
        names = {
            f"{state}-{width}x{height}-{theme}-{letters}.png"
            for (width, height), theme, letters in product(DEVICE.sizes, THEMES, LETTERS)
        }
        assert set(album.taken[state]) == names
        for name in (*names, f"{state}.png"):
            assert (tmp_path / name).stat().st_size > 5_000
