"""Fingers on a page: touch events that Chromium turns into pointers, taps and scrolling.

The browser decides as on a phone what a sequence is: with `touch-action` it may scroll the page and
cancel the pointer. Pages must be opened with `has_touch=True, is_mobile=True`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from playwright.async_api import CDPSession, Error, Locator, Page

STEPS = 8
"""Moves of a drag or swipe."""


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float

    def towards(self, other: Point, part: float) -> Point:
        """The point at `part` (0 to 1) of the way to another."""
        return Point(self.x + (other.x - self.x) * part, self.y + (other.y - self.y) * part)


async def middle(target: Locator) -> Point:
    """The middle of an element, in pixels of the window, once it is visible and moves no more.

    An element that the page replaces between being found and being measured has no box.
    """
    box = None
    while box is None:
        one = await target.element_handle()
        with suppress(Error):  # it was replaced meanwhile
            await one.wait_for_element_state("stable")
            box = await one.bounding_box()
    return Point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


class Fingers:
    """The fingers on one page, by number; each of them touches one point."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._down: dict[int, Point] = {}
        self.taps = 0
        """How often an element was tapped."""

    @classmethod
    async def on(cls, page: Page) -> Fingers:
        return cls(await page.context.new_cdp_session(page))

    async def press(self, at: Point, finger: int = 0) -> None:
        self._down[finger] = at
        await self._send("touchStart", self._down)

    async def move(self, to: Point, finger: int = 0) -> None:
        """Move a pressed finger in several steps."""
        start = self._down[finger]
        for step in range(1, STEPS + 1):
            self._down[finger] = start.towards(to, step / STEPS)
            await self._send("touchMove", self._down)

    async def lift(self, finger: int = 0) -> None:
        lifted = {finger: self._down.pop(finger)}
        await self._send("touchEnd", lifted if self._down else {})  # without points: all fingers

    async def cancel(self) -> None:
        """The system takes the touch away, as for a call or a gesture of its own."""
        self._down.clear()
        await self._send("touchCancel", {})

    async def tap(self, target: Locator) -> None:
        await target.scroll_into_view_if_needed()
        await self.tap_at(await middle(target))
        self.taps += 1

    async def tap_at(self, at: Point, times: int = 1) -> None:
        """Tap a point so often, without waiting for the page in between.

        On a busy machine it would else be a long press, or two taps in place of a double one.
        """
        tap = [("touchStart", {0: at}), ("touchEnd", {})]
        await asyncio.gather(*[self._send(kind, fingers) for kind, fingers in times * tap])

    async def drag(self, source: Locator | Point, target: Locator | Point) -> None:
        """Drag from one element or point to another."""
        start, end = [
            one if isinstance(one, Point) else await middle(one) for one in (source, target)
        ]
        await self.press(start)
        await self.move(end)
        await self.lift()

    async def hold(self, target: Locator) -> None:
        """Press until the page has noticed a long press; the finger stays down."""
        await self.press(await middle(target))
        await target.page.locator(".held").wait_for()

    async def _send(self, kind: str, fingers: dict[int, Point]) -> None:
        points: list[dict[str, Any]] = [
            {"x": at.x, "y": at.y, "id": finger} for finger, at in fingers.items()
        ]
        await self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
