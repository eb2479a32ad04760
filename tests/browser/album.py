"""Pictures of one page at several sizes, themes and letters, and a sheet of each state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from itertools import product
from pathlib import Path

from playwright.async_api import Browser, Page

THEMES = ("light", "dark")
LETTERS = (100, 150)
"""Sizes of letters in percent."""
Size = tuple[int, int]

SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

ENLARGE = "(percent) => { document.documentElement.style.fontSize = `${percent}%`; }"

SHEET = """<!doctype html>
<meta charset="utf-8">
<title>{state}</title>
<style>
  body {{ display: flex; flex-wrap: wrap; gap: 12px; margin: 12px; background: #777; }}
  body {{ font: 14px sans-serif; width: 1900px; }}
  h1 {{ flex-basis: 100%; margin: 0; font-size: 18px; }}
  figure {{ margin: 0; }}
  img {{ display: block; max-height: 460px; max-width: 640px; }}
</style>
<h1>{state}</h1>
{pictures}
"""
PICTURE = '<figure><img src="{file}" alt="{file}"><figcaption>{file}</figcaption></figure>'


class Album:
    """The pictures in a folder, `state-WIDTHxHEIGHT-theme-LETTERS.png`; of some states or all."""

    def __init__(self, folder: Path, states: Collection[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._states = states
        self.taken: dict[str, list[str]] = {}
        """The files of each state."""

    async def take(
        self,
        page: Page,
        state: str,
        sizes: Collection[Size],
        prepare: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Take the pictures of a state; `prepare` is called before each."""
        if self._states and state not in self._states:
            return
        await page.mouse.move(0, 0)
        for theme, letters in product(THEMES, LETTERS):
            await page.emulate_media(color_scheme="light" if theme == "light" else "dark")
            await page.evaluate(ENLARGE, letters)
            for width, height in sizes:
                await page.set_viewport_size({"width": width, "height": height})
                await page.evaluate(SETTLED)
                if prepare is not None:
                    await prepare()
                file = f"{state}-{width}x{height}-{theme}-{letters}.png"
                await page.screenshot(path=self._folder / file, animations="disabled")
                self.taken.setdefault(state, []).append(file)
        await page.evaluate(ENLARGE, 100)
        width, height = next(iter(sizes))
        await page.set_viewport_size({"width": width, "height": height})

    async def make_sheets(self, browser: Browser) -> None:
        """Write `state.html`, and a picture of it, for each state."""
        page = await browser.new_page()
        for state, files in self.taken.items():
            pictures = "\n".join(PICTURE.format(file=file) for file in sorted(files, key=_order))
            sheet = self._folder / f"{state}.html"
            sheet.write_text(SHEET.format(state=state, pictures=pictures))
            await page.set_viewport_size({"width": 1924, "height": 600})
            await page.goto(sheet.absolute().as_uri())
            await page.screenshot(path=self._folder / f"{state}.png", full_page=True)
        await page.close()


def _order(file: str) -> tuple[str, bool, int]:
    """Small letters before large ones, light before dark, narrow before wide."""
    _, size, theme, letters = file.rsplit("-", 3)
    return letters, theme != "light", int(size.partition("x")[0])
