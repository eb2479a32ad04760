"""Firefox over WebDriver BiDi, which it speaks itself: `firefox --remote-debugging-port`.

The part of the protocol that the tests need: https://www.w3.org/TR/webdriver-bidi/.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.browser.touch import Point
from tests.browser.windows import PHONE, BrowserError, Pointer, key_actions, script_of_call
from tests.harness.server_process import PATIENT

PREFERENCES: dict[str, bool | int | str] = {
    "app.update.disabledForTesting": True,
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.w3c_touch_events.enabled": 1,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#",
    "toolkit.telemetry.server": "",
    "ui.allPointerCapabilities": 1,
    "ui.prefersReducedMotion": 1,
    "ui.primaryPointerCapabilities": 1,
}
"""No page of its own, no request to anyone, and the screen of a phone: touched, without motion."""

_LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


class Session:
    """One connection to a browser: commands, and the log of each page."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())
        self.logged: dict[str, list[str]] = {}
        """The errors and warnings of each browsing context."""

    async def send(self, method: str, **parameters: Any) -> Any:
        """The result of a command; raises `BrowserError`."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        async with asyncio.timeout(PATIENT):
            return await answer

    async def _read(self) -> None:
        async for frame in self._socket:
            message = json.loads(frame)
            if message["type"] == "event":
                self._on_log(message["params"])
                continue
            answer = self._answers.pop(message["id"])
            if answer.done():
                continue
            if message["type"] == "error":
                answer.set_exception(BrowserError(f"{message['error']}: {message['message']}"))
            else:
                answer.set_result(message["result"])

    def _on_log(self, entry: dict[str, Any]) -> None:
        if entry["level"] in ("error", "warn"):
            kept = self.logged.setdefault(entry["source"]["context"], [])
            kept.append(f"{entry['level']}: {entry['text']}")

    async def close(self) -> None:
        """Close the browser."""
        await self.send("browser.close")
        await self._socket.close()
        await self._reader


class FirefoxWindow:
    """A window of a user context, which has its own storage."""

    touches = True

    def __init__(self, session: Session, context: str) -> None:
        self._session = session
        self._context = context
        self._finger = Pointer("touch")

    async def go(self, address: str) -> None:
        await self._session.send(
            "browsingContext.navigate", context=self._context, url=address, wait="complete"
        )

    async def call(self, function: str, *arguments: Any) -> Any:
        answer = await self._session.send(
            "script.evaluate",
            expression=script_of_call(function, arguments),
            target={"context": self._context},
            awaitPromise=False,
        )
        if answer["type"] == "exception":
            raise BrowserError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    async def tap(self, at: Point) -> None:
        await self._act(self._finger.tap(at))

    async def press(self, at: Point) -> None:
        await self._act(self._finger.press(at))

    async def move(self, to: Point) -> None:
        await self._act(self._finger.move(to))

    async def lift(self) -> None:
        await self._act(self._finger.lift())

    async def right_click(self, at: Point) -> None:
        raise NotImplementedError

    async def type(self, text: str) -> None:
        await self._act(key_actions(text))

    async def _act(self, actions: list[dict[str, Any]]) -> None:
        await self._session.send("input.performActions", context=self._context, actions=actions)

    def problems(self) -> list[str]:
        return self._session.logged.get(self._context, [])


class Firefox:
    """A Firefox that runs, without a screen."""

    def __init__(self, session: Session, name: str) -> None:
        self.name = name
        self._session = session
        self._users: list[str] = []

    async def open(self) -> FirefoxWindow:
        send = self._session.send
        user = (await send("browser.createUserContext"))["userContext"]
        self._users.append(user)
        # A tab that is not in front would be slowed down: each gets a window.
        created = await send("browsingContext.create", type="window", userContext=user)
        width, height = PHONE
        await send(
            "browsingContext.setViewport",
            context=created["context"],
            viewport={"width": width, "height": height},
            devicePixelRatio=2,
        )
        return FirefoxWindow(self._session, created["context"])

    async def close_windows(self) -> None:
        while self._users:
            await self._session.send("browser.removeUserContext", userContext=self._users.pop())


@asynccontextmanager
async def firefox(program: str, folder: Path) -> AsyncIterator[Firefox]:
    """Start Firefox with a new profile in a folder."""
    profile = folder / "profile"
    profile.mkdir()
    given = [(json.dumps(name), json.dumps(value)) for name, value in PREFERENCES.items()]
    lines = [f"user_pref({name}, {value});" for name, value in given]
    (profile / "user.js").write_text("\n".join(lines))
    process = await asyncio.create_subprocess_exec(
        program, "--headless", "--no-remote", "--remote-debugging-port", "0",
        "--profile", str(profile),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        address = await _address(process.stderr)
        rest = asyncio.create_task(process.stderr.read())
        async with connect(f"{address}/session", max_size=None) as socket:
            session = Session(socket)
            begun = await session.send("session.new", capabilities={})
            await session.send("session.subscribe", events=["log.entryAdded"])
            try:
                yield Firefox(session, f"Firefox {begun['capabilities']['browserVersion']}")
            finally:
                await session.close()
        await rest
    except BaseException:
        process.kill()
        raise
    finally:
        await process.wait()


async def _address(stderr: asyncio.StreamReader) -> str:
    printed = ""
    async with asyncio.timeout(PATIENT):
        while line := (await stderr.readline()).decode():
            printed += line
            if found := _LISTENING.search(line):
                return found[1]
    raise AssertionError(f"Firefox did not start: {printed}")
