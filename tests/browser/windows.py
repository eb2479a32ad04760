"""What a test needs of any browser: windows, scripts, and input as people make it.

`Driver` starts a browser and opens windows that share nothing with each other, as if each were on a
device of its own. It is implemented for Chromium here, for Firefox in `bidi`, and for WebKit in
`webdriver`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

from playwright.async_api import Browser, Error, Page

from tests.browser.conftest import ErrorRecorder
from tests.browser.touch import STEPS, Fingers, Point

PHONE = (390, 844)
"""Width and height of the windows, in CSS pixels."""

STEP_MS = 20
"""Duration of one of the `STEPS` of a movement."""


class BrowserError(Exception):
    """The browser could not carry out a command, for example because the page is being left."""


class Window(Protocol):
    """One page of a browser, in a session of its own."""

    touches: bool
    """Whether `press` is a finger; otherwise it is a mouse."""

    async def go(self, address: str) -> None:
        """Open an address, and wait until the page is loaded."""

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function in the page, with and to values of JSON.

        Raises `BrowserError`.
        """

    async def tap(self, at: Point) -> None:
        """Press and lift in one command: on a busy machine two would be a long press at times."""

    async def press(self, at: Point) -> None:
        """Put the finger, or the button of the mouse, down."""

    async def move(self, to: Point) -> None: ...

    async def lift(self) -> None: ...

    async def right_click(self, at: Point) -> None:
        """Only with a mouse."""

    async def type(self, text: str) -> None:
        """Press the keys of a text."""

    def problems(self) -> list[str]:
        """The errors and warnings that the page has logged, in order."""


class Driver(Protocol):
    """A browser that has been started."""

    name: str
    """The browser and its version."""

    async def open(self) -> Window:
        """Open a window with empty storage."""

    async def close_windows(self) -> None: ...


class Pointer:
    """The finger or mouse of a window, as W3C WebDriver and WebDriver BiDi describe its actions."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._at = Point(0, 0)

    def tap(self, at: Point, button: int = 0) -> list[dict[str, Any]]:
        (pressed,), (lifted,) = self.press(at, button), self.lift(button)
        return [pressed | {"actions": pressed["actions"] + lifted["actions"]}]

    def press(self, at: Point, button: int = 0) -> list[dict[str, Any]]:
        self._at = at
        return self._actions(self._move(at, 0), {"type": "pointerDown", "button": button})

    def move(self, to: Point) -> list[dict[str, Any]]:
        start, self._at = self._at, to
        points = [start.towards(to, step / STEPS) for step in range(1, STEPS + 1)]
        return self._actions(*[self._move(point, STEP_MS) for point in points])

    def lift(self, button: int = 0) -> list[dict[str, Any]]:
        return self._actions({"type": "pointerUp", "button": button})

    def _move(self, to: Point, duration: int) -> dict[str, Any]:
        at = {"x": round(to.x), "y": round(to.y), "origin": "viewport"}
        return {"type": "pointerMove", "duration": duration} | at

    def _actions(self, *actions: dict[str, Any]) -> list[dict[str, Any]]:
        pointer = {"id": self._kind, "parameters": {"pointerType": self._kind}}
        return [{"type": "pointer", "actions": list(actions)} | pointer]


def key_actions(text: str) -> list[dict[str, Any]]:
    """What W3C WebDriver and WebDriver BiDi call actions: the keys of a text, one by one."""
    keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
    return [{"type": "key", "id": "keys", "actions": keys}]


def script_of_call(function: str, arguments: Sequence[Any]) -> str:
    """An expression that calls a function; its value is the result as a string of JSON."""
    given = ", ".join(map(json.dumps, arguments))
    return f"JSON.stringify(({function})({given}) ?? null)"


class ChromiumWindow:
    """A window of the Chromium that the other tests use, on a phone with a finger."""

    touches = True

    def __init__(self, page: Page, fingers: Fingers) -> None:
        self._page = page
        self._fingers = fingers
        self._errors = ErrorRecorder(page.context, "")

    async def go(self, address: str) -> None:
        await self._page.goto(address)

    async def call(self, function: str, *arguments: Any) -> Any:
        try:
            return json.loads(await self._page.evaluate(script_of_call(function, arguments)))
        except Error as error:
            raise BrowserError(str(error)) from None

    async def tap(self, at: Point) -> None:
        await self._fingers.tap_at(at)

    async def press(self, at: Point) -> None:
        await self._fingers.press(at)

    async def move(self, to: Point) -> None:
        await self._fingers.move(to)

    async def lift(self) -> None:
        await self._fingers.lift()

    async def right_click(self, at: Point) -> None:
        raise NotImplementedError

    async def type(self, text: str) -> None:
        await self._page.keyboard.type(text)

    def problems(self) -> list[str]:
        return [one for one in self._errors.problems if not one.startswith("requested")]


class Chromium:
    """The Chromium of the other tests."""

    def __init__(self, browser: Browser) -> None:
        self.name = f"Chromium {browser.version}"
        self._browser = browser
        self._windows = AsyncExitStack()

    async def open(self) -> ChromiumWindow:
        width, height = PHONE
        context = await self._windows.enter_async_context(
            await self._browser.new_context(
                viewport={"width": width, "height": height},
                has_touch=True,
                is_mobile=True,
                reduced_motion="reduce",
            )
        )
        page = await context.new_page()
        return ChromiumWindow(page, await Fingers.on(page))

    async def close_windows(self) -> None:
        await self._windows.aclose()
