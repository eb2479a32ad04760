"""WebKitGTK over W3C WebDriver: `WebKitWebDriver`, its MiniBrowser, and a screen in memory.

The part of the protocol that the tests need: https://www.w3.org/TR/webdriver2/.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.browser.touch import Point
from tests.browser.windows import PHONE, BrowserError, Pointer, key_actions, script_of_call
from tests.harness import installed
from tests.harness.ports import unused_port
from tests.harness.server_process import PATIENT

SCREEN = "1400x1000x24"

_RECORD = """() => {
  if (globalThis.problems !== undefined) return globalThis.problems;
  const problems = globalThis.problems = [];
  for (const level of ["error", "warn"]) {
    const log = console[level];
    console[level] = (...values) => {
      problems.push(`${level}: ${values.join(" ")}`);
      log.apply(console, values);
    };
  }
  const on = (name, text) => addEventListener(name, (event) => problems.push(text(event)), true);
  on("error", ({ message, target }) => message ?? `not loaded: ${target.src ?? target.href}`);
  on("unhandledrejection", ({ reason }) => `rejected: ${reason}`);
  on("securitypolicyviolation", ({ blockedURI }) => `against the policy: ${blockedURI}`);
  return problems;
}"""
_STILL = "[Settings]\ngtk-enable-animations=0\n"
"""GTK's settings; pages see them as `prefers-reduced-motion`."""


class WebKitWindow:
    """A MiniBrowser of its own, with storage in memory.

    The driver does not report what is logged, so a page records it from the first call on.
    """

    touches = False

    def __init__(self, client: httpx.AsyncClient, session: str) -> None:
        self._client = client
        self._session = f"/session/{session}"
        self._problems: list[str] = []
        self._mouse = Pointer("mouse")  # the GTK port has no touch events for drivers

    async def go(self, address: str) -> None:
        await self._send("url", url=address)

    async def call(self, function: str, *arguments: Any) -> Any:
        call = script_of_call(function, arguments)
        script = f"const found = ({_RECORD})(); return [{call}, found.splice(0)];"
        answer, found = await self._send("execute/sync", script=script, args=[])
        self._problems += found
        return json.loads(answer)

    async def tap(self, at: Point) -> None:
        await self._send("actions", actions=self._mouse.tap(at))

    async def press(self, at: Point) -> None:
        await self._send("actions", actions=self._mouse.press(at))

    async def move(self, to: Point) -> None:
        await self._send("actions", actions=self._mouse.move(to))

    async def lift(self) -> None:
        await self._send("actions", actions=self._mouse.lift())

    async def right_click(self, at: Point) -> None:
        await self._send("actions", actions=self._mouse.tap(at, button=2))

    async def type(self, text: str) -> None:
        await self._send("actions", actions=key_actions(text))

    async def resize(self, width: int, height: int) -> None:
        await self._send("window/rect", width=width, height=height)

    def problems(self) -> list[str]:
        return self._problems

    async def _send(self, command: str, **parameters: Any) -> Any:
        return await send(self._client, f"{self._session}/{command}", parameters)

    async def close(self) -> None:
        await self._client.delete(self._session)


async def send(client: httpx.AsyncClient, path: str, parameters: dict[str, Any]) -> Any:
    """The value that a command returns; raises `BrowserError`."""
    value = (await client.post(path, json=parameters)).json()["value"]
    if isinstance(value, dict) and "error" in value:
        raise BrowserError(f"{value['error']}: {value.get('message', '')}")
    return value


class WebKit:
    """Starts a driver and a browser for each window, on one screen."""

    def __init__(self, programs: installed.WebKit, display: str, folder: Path) -> None:
        self.name = "WebKitGTK"
        self._programs = programs
        self._environment = os.environ | {
            "DISPLAY": display,
            "GDK_BACKEND": "x11",
            "GSETTINGS_BACKEND": "memory",
            "HOME": str(folder),
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "NO_AT_BRIDGE": "1",
            "WEBKIT_DISABLE_COMPOSITING_MODE": "1",
            "XDG_CONFIG_HOME": str(folder),
        }
        self._windows = AsyncExitStack()

    async def open(self) -> WebKitWindow:
        port = unused_port()
        process = await asyncio.create_subprocess_exec(
            self._programs.driver, f"--port={port}",
            env=self._environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self._windows.push_async_callback(_end, process)
        client = await self._windows.enter_async_context(
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENT)
        )
        await _ready(client)
        options = {"binary": self._programs.browser, "args": ["--automation"]}
        capabilities = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        begun = await send(client, "/session", {"capabilities": capabilities})
        self.name = f"WebKitGTK {begun['capabilities']['browserVersion']}"
        window = WebKitWindow(client, begun["sessionId"])
        self._windows.push_async_callback(window.close)
        await window.resize(*PHONE)
        return window

    async def close_windows(self) -> None:
        await self._windows.aclose()


@asynccontextmanager
async def webkit(programs: installed.WebKit, folder: Path) -> AsyncIterator[WebKit]:
    """A screen for windows of WebKit; their settings and logs are in a folder."""
    settings = folder / "gtk-3.0/settings.ini"
    settings.parent.mkdir()
    settings.write_text(_STILL)
    read, write = os.pipe()
    process = await asyncio.create_subprocess_exec(
        programs.screen, "-displayfd", str(write), "-screen", "0", SCREEN, "-nolisten", "tcp",
        pass_fds=(write,),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    try:
        with os.fdopen(read) as answer:
            display = (await asyncio.to_thread(answer.readline)).strip()
        assert display, "Xvfb did not start"
        yield WebKit(programs, f":{display}", folder)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def _ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                await client.get("/status")
                return
            except httpx.ConnectError:
                await asyncio.sleep(0.02)  # another process is waited for


async def _end(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGTERM)
    await process.wait()
