"""Real browsers with a real server: every player has a browser context of their own.

A test fails if one of its pages logs an error or a warning, throws, requests anything from another
origin, or shows at the end what is no text, such as an object.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    WebError,
    async_playwright,
    expect,
)

from tests.browser.page_pool import PagePool
from tests.browser.player_page import PlayerPage, TwoPlayers
from tests.browser.prepared_table import prepared_table
from tests.harness.cuttable_link import CuttableLink
from tests.harness.installed import missing
from tests.harness.malicious_server import MaliciousServer
from tests.harness.server_process import ServerProcess

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
TIMEOUT_MS = 15_000.0
"""Timeout of every expectation."""

UNMEANT = re.compile(r"\[object |\b(?:undefined|NaN)\b")
"""What JavaScript makes of a value that is no text."""

expect.set_options(timeout=TIMEOUT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these tests share one event loop, because they share one browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def chromium(*, windows: bool = False) -> str:
    """The path of a Chromium; `windows` asks for one with the settings and limits of a user's.

    The headless shell is Chromium without them, and needs a third less CPU.
    """
    names = ("chromium", "google-chrome")
    found = map(shutil.which, names if windows else ("chromium-headless-shell", *names))
    program = next(filter(None, found), None)
    return program or missing("no chromium is installed (Debian: chromium)")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def server(shared_server: ServerProcess) -> AsyncIterator[ServerProcess]:
    """A server with the tables of earlier tests; a test may end it, and need not restart it."""
    yield shared_server
    if not shared_server.is_running:
        await shared_server.open()


@pytest_asyncio.fixture(loop_scope="session")
async def link(server: ServerProcess) -> AsyncIterator[CuttableLink]:
    """A link to the server that can be cut; a page uses it with `open_page(at=link.port)`."""
    async with CuttableLink(server.port) as link:
        yield link


@pytest_asyncio.fixture(loop_scope="session")
async def malicious(tmp_path: Path) -> AsyncIterator[MaliciousServer]:
    """A server in this process whose behaviour a test may change."""
    server = MaliciousServer(tmp_path)
    await server.open()
    yield server
    await server.close()


@pytest.fixture
def current_server(request: pytest.FixtureRequest) -> ServerProcess | MaliciousServer:
    """The server of the test."""
    which = "malicious" if "malicious" in request.fixturenames else "server"
    found: ServerProcess | MaliciousServer = request.getfixturevalue(which)
    return found


class ErrorRecorder:
    """Records the console errors, exceptions and foreign requests of a browser context."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context = context
        self.problems: list[str] = []
        self._origin = base
        self._expected: list[re.Pattern[str]] = []
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def stop(self) -> None:
        """Record nothing more, as another test uses the context."""
        self.context.remove_listener("console", self._on_console)
        self.context.remove_listener("weberror", self._on_error)
        self.context.remove_listener("request", self._on_request)

    def expect(self, pattern: str) -> None:
        """Problems that match are expected in this test, for example after a lost connection."""
        self._expected.append(re.compile(pattern))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._note(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_error(self, error: WebError) -> None:
        self._note(f"thrown: {error.error}")

    def _on_request(self, request: Request) -> None:
        url = request.url
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and f"{parts.scheme}://{parts.netloc}" != self._origin:
            self._note(f"requested another origin: {url}")

    def _note(self, problem: str) -> None:
        self.problems.append(problem)

    def unexpected(self) -> list[str]:
        return [
            one for one in self.problems if not any(known.search(one) for known in self._expected)
        ]


OpenPage = Callable[..., Awaitable[Page]]


@asynccontextmanager
async def page_opener(
    browser: Browser, server: ServerProcess | MaliciousServer, pool: PagePool | None = None
) -> AsyncIterator[OpenPage]:
    """Opens pages as the fixture `open_page` does, and closes them at the end of the block.

    Pages of the server itself come from the `pool`, if there is one, and go back to it.
    """
    async with AsyncExitStack() as stack:
        recorders: list[ErrorRecorder] = []
        unmeant: list[str] = []

        def record(context: BrowserContext, base: str) -> ErrorRecorder:
            recorders.append(ErrorRecorder(context, base))
            return recorders[-1]

        async def open_page_(
            path: str = "/", *, at: int | None = None, size: Any = DESKTOP, **settings: Any
        ) -> Page:
            base = f"http://127.0.0.1:{server.port if at is None else at}"
            given = {"viewport": size, "base_url": base, "reduced_motion": "reduce"} | settings
            if pool is not None and at is None and path.startswith(("/", base)):
                page = await pool.take(browser, given)
                recorder = record(page.context, base)
                stack.callback(recorder.stop)
                stack.push_async_callback(pool.give_back, page, given)
            else:
                context = await stack.enter_async_context(await browser.new_context(**given))
                recorder = record(context, base)
                page = await context.new_page()
            page.context.set_default_timeout(TIMEOUT_MS)
            page.errors = recorder  # type: ignore[attr-defined]
            stack.push_async_callback(read, page)
            await page.goto(path)
            return page

        async def read(page: Page) -> None:
            with suppress(Error):  # it was closed, or left
                shown = await page.evaluate("() => document.body.innerText")
                unmeant.extend(line for line in shown.splitlines() if UNMEANT.search(line))

        yield open_page_
    problems = [problem for one in recorders for problem in one.unexpected()]
    problems += [f"A page shows {line!r}." for line in unmeant]
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="session")
def page_pool() -> PagePool:
    """Pages for the tests with the marker `reuse_pages`."""
    return PagePool()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(
    request: pytest.FixtureRequest,
    browser: Browser,
    current_server: ServerProcess | MaliciousServer,
    page_pool: PagePool,
) -> AsyncIterator[OpenPage]:
    """Opens a page in a context of its own: `page = await open_page("/", size=PHONE)`.

    Paths are those of the server, or of the port `at`; `file://` addresses are opened unchanged.
    `page.errors` is the recorder of its context. Other arguments go to `Browser.new_context`.
    """
    mark = request.node.get_closest_marker("reuse_pages")
    reuse = mark is not None and mark.args != (False,)
    async with page_opener(browser, current_server, page_pool if reuse else None) as open_page_:
        yield open_page_


AxeCheck = Callable[[Page], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def two_players(
    open_page: OpenPage, current_server: ServerProcess | MaliciousServer
) -> TwoPlayers:
    """Ada, who is the host, and Bob, with three cards each."""
    names = ("Ada", "Bob")
    paths = await prepared_table(current_server, names, deal=3)
    ada, bob = [
        PlayerPage(await open_page(path), name) for path, name in zip(paths, names, strict=True)
    ]
    for one, other in ((ada, bob), (bob, ada)):
        await one.holds(3)
        await expect(one.other(other.name)).to_have_accessible_name(re.compile("here$"))
    return ada, bob


@pytest.fixture
def axe() -> AxeCheck:
    """`await axe(page)` fails with the accessibility problems of a page."""

    async def check(page: Page) -> None:
        results = await Axe().run(page)
        assert results.violations_count == 0, results.generate_report()

    return check
