"""A person at a table, in any browser: what they see, and what they tap.

Elements are found as people find them, by role and name. The page is asked again until a condition
is met, because not every driver can wait in the page.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.browser.touch import Point
from tests.browser.windows import BrowserError, Window
from tests.harness.server_process import PATIENT

Found = TypeVar("Found")

_FIND = """(role, pattern) => {
  const SELECTORS = {
    alert: "[role=alert]", button: "button, summary", card: "#hand [data-slot]", field: "input",
    heading: "h1, h2", link: "a[href]", radio: "[type=radio]", stack: "[data-stack]",
  };
  const nameOf = (one) => {
    if (role === "stack") return one.dataset.stack;
    const label = one.getAttribute("aria-label") ?? one.labels?.[0]?.textContent;
    if (label !== undefined) return label.trim();
    const copy = one.cloneNode(true);
    for (const hidden of copy.querySelectorAll("[aria-hidden=true]")) hidden.remove();
    return copy.textContent.trim();
  };
  const within = document.querySelector("dialog[open]") ?? document;
  const wanted = new RegExp(pattern);
  return Array.from(within.querySelectorAll(SELECTORS[role]))
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && wanted.test(nameOf(one)));
}"""

_NAMES = f"""(role, pattern) => ({_FIND})(role, pattern)
  .map((one) => one.getAttribute("aria-label") ?? one.textContent.trim())"""

_PLACE = f"""(role, pattern) => {{
  const [one] = ({_FIND})(role, pattern);
  if (one === undefined || one.matches(":disabled, [aria-disabled=true]")) return null;
  one.scrollIntoView({{ block: "nearest", inline: "nearest" }});
  const {{ left, top, width, height }} = one.getClientRects()[0]; // of a link, its first line
  // A card of a fan is covered by the next one, except for its left edge.
  const y = top + height / 2;
  const x = [left + width / 2, left + Math.min(12, width / 4)].find((x) => {{
    const hit = document.elementFromPoint(x, y);
    return one.contains(hit) || (hit !== null && hit.contains(one) && role === "stack");
  }});
  if (x === undefined) return null;
  const last = window.lastPlace;
  if (last?.one === one && last.x === x && last.y === y) {{
    if (last.frames < 2) return null;
    window.lastPlace = null; // the next press waits again
    return {{ x, y }};
  }}
  const place = window.lastPlace = {{ one, x, y, frames: 0 }};
  const drawn = () => {{ if (++place.frames < 2) requestAnimationFrame(drawn); }};
  requestAnimationFrame(drawn);
  return null;
}}"""
"""The point at which an element is pressed, once it was there for two frames; null before, and
while it is disabled or something covers it."""


class Person:
    """A player with a window of their own."""

    def __init__(self, window: Window, name: str) -> None:
        self.window = window
        self.name = name

    # Seeing

    async def until(self, what: str, look: Callable[[], Awaitable[Found]]) -> Found:
        """Look until there is something to see, also while the page is left; returns it."""
        failure = ""
        try:
            async with asyncio.timeout(PATIENT):
                while True:
                    try:
                        if found := await look():
                            return found
                    except BrowserError as error:
                        failure = str(error)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            shown = await self.window.call("() => document.body.innerText")
            raise AssertionError(
                f"{self.name} does not see {what}, but:\n{shown}\n{failure}"
            ) from None

    async def names(self, role: str, pattern: str = "") -> list[str]:
        """The names of the visible elements of a role."""
        names: list[str] = await self.window.call(_NAMES, role, pattern)
        return names

    async def sees(self, role: str, pattern: str) -> None:
        async def look() -> list[str]:
            return await self.names(role, pattern)

        await self.until(f"the {role} {pattern!r}", look)

    async def reads(self, selector: str, pattern: str) -> str:
        """Wait until an element has text that matches; returns all its text."""

        async def look() -> str | None:
            text = await self.window.call(
                "(selector) => { const found = document.querySelector(selector);"
                " return found?.checkVisibility() ? found.textContent : null; }",
                selector,
            )
            return text if text and re.search(pattern, text) else None

        return await self.until(f"{pattern!r} in {selector}", look) or ""

    async def hears(self, pattern: str) -> None:
        """Wait until the log has a line that matches; on a phone it may be folded."""

        async def look() -> bool:
            text = await self.window.call(
                "() => document.querySelector('[role=log]')?.textContent ?? ''"
            )
            return re.search(pattern, text) is not None

        await self.until(f"{pattern!r} in the log", look)

    async def holds(self, count: int) -> list[str]:
        """Wait until the hand has this many cards; returns their names, from left to right."""

        async def look() -> list[str] | None:
            cards = await self.names("card")
            return cards if len(cards) == count else None

        return await self.until(f"{count} cards", look) or []

    def _shows(self, selector: str) -> Callable[[], Awaitable[bool]]:
        found = "(selector) => document.querySelector(selector) !== null"
        return lambda: self.window.call(found, selector)

    # Acting

    async def place(self, role: str, pattern: str) -> Point:
        """Wait until an element can be pressed and has stopped moving; returns where."""

        async def look() -> dict[str, float] | None:
            place: dict[str, float] | None = await self.window.call(_PLACE, role, pattern)
            return place

        found = await self.until(f"the {role} {pattern!r}, to press it", look)
        assert found is not None
        return Point(found["x"], found["y"])

    async def tap(self, role: str, pattern: str) -> None:
        await self.window.tap(await self.place(role, pattern))

    async def open_sheet(self, card: str) -> None:
        """Open the sheet of a card of the hand, by a long press or a right click."""
        at = await self.place("card", exactly(card))
        if self.window.touches:
            await self.window.press(at)
            await self.until(f"that {card} is held", self._shows(".held"))
            await self.window.lift()
        else:
            await self.window.right_click(at)

    async def drag(self, card: str, stack: str) -> None:
        """Drag a card of the hand onto a stack."""
        source = await self.place("card", exactly(card))
        target = await self.place("stack", exactly(stack))
        await self.window.press(source)
        await self.window.move(target)
        await self.window.lift()

    async def choose(self, card: str) -> None:
        """Select a card of the hand."""
        await self.tap("card", exactly(card))
        await self.until(f"that {card} is selected", self._shows("#hand [aria-selected=true]"))

    async def confirm(self, label: str) -> None:
        """Press the button of a question, which is called as its title is."""
        await self.sees("heading", exactly(label))
        await self.tap("button", exactly(label))

    async def write(self, label: str, text: str) -> None:
        """Type a text into a field."""
        await self.tap("field", label)
        await self.window.type(text)


def exactly(name: str) -> str:
    return f"^{re.escape(name)}$"
