"""The pages of a server behind a proxy, under a path of the proxy's origin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import expect

from dealer.cli.commands.verify import from_house
from dealer.cli.demo_game import play
from dealer.proof.verify import verify
from tests.browser.page_pool import PagePool
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import close_round, open_table, start_round
from tests.browser.test_offline import KEPT
from tests.harness.composed import answers
from tests.harness.installed import program
from tests.harness.ports import unused_port
from tests.harness.server_process import ServerProcess

PROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend players
  bind 127.0.0.1:{port}
  http-request return status 404 unless {{ path_beg /cards/ }}
  {rewrite}
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header Host localhost
  default_backend dealer
backend dealer
  server dealer 127.0.0.1:{server}
"""
STRIPS = "http-request replace-path ^/cards/(.*) /\\1"


class Served(NamedTuple):
    """A server, and the port of the proxy in front of it."""

    server: ServerProcess
    port: int


@asynccontextmanager
async def proxied(folder: Path, rewrite: str, options: dict[str, str]) -> AsyncIterator[Served]:
    haproxy = program("haproxy")
    trusted = {"trusted-proxy": "127.0.0.1"} | options
    async with ServerProcess(folder, **trusted) as server:
        port = unused_port()
        configuration = folder / "haproxy.cfg"
        configuration.write_text(PROXY.format(port=port, rewrite=rewrite, server=server.port))
        process = await asyncio.create_subprocess_exec(haproxy, "-db", "-f", str(configuration))
        try:
            await answers(f"http://127.0.0.1:{port}/cards/")
            yield Served(server, port)
        finally:
            process.terminate()
            await process.wait()


@pytest_asyncio.fixture(
    params=[(STRIPS, {}), (STRIPS, {"path": "/cards/"}), ("", {"path": "/cards/"})],
    ids=["stripped", "stripped, with --path", "passed on"],
    loop_scope="session",
)
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    rewrite, options = request.param
    async with proxied(tmp_path, rewrite, options) as served:
        yield served


@pytest.fixture
def server(served: Served) -> ServerProcess:
    return served.server


@pytest.fixture
def page_pool() -> PagePool:
    """None of the pages of another server."""
    return PagePool()


async def test_a_game_under_a_path_from_the_lobby_to_the_saved_audit(
    served: Served, open_page, tmp_path: Path
) -> None:
    page = await open_page("/cards/", at=served.port)
    base = f"http://127.0.0.1:{served.port}/cards"
    link = await open_table(page, "Ada")
    assert re.fullmatch(rf"{base}/tables/[0-9a-f]{{32}}#invite=.*", link)
    ada = PlayerPage(page, "Ada")
    bob = PlayerPage(await open_page(link, at=served.port), "Bob")
    await bob.sit_down()
    await start_round(page)
    await ada.do("Draw")
    await ada.holds(1)
    await ada.choose(0)
    await ada.do("Play")
    await ada.holds(0)
    await bob.expect_log(re.compile("Ada played"))
    await ada.expect_checks()
    await close_round(page)
    await ada.do("Menu")
    history = page.get_by_role("link", name="Game log")
    assert str(await history.evaluate("link => link.href")).startswith(f"{base}/tables/")
    await page.keyboard.press("Escape")

    await page.get_by_role("link", name="Check the shuffle").click()
    await page.wait_for_url(re.compile(f"^{base}/tables/[0-9a-f]+/audit#round=1$"))
    await expect(page.locator("#verdict")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Game and audit page").click()
    saved = tmp_path / "saved.html"
    await (await download.value).save_as(saved)
    alone = await open_page(saved.as_uri(), offline=True)
    await expect(alone.locator("#verdict")).to_be_visible()

    await page.get_by_role("link", name="All tables").click()
    await page.wait_for_url(f"{base}/")
    await page.locator(f'a[href="{base}/finished"]').click()
    await page.wait_for_url(f"{base}/finished")
    await page.locator(f'a[href="{base}/audit"]').click()
    await page.wait_for_url(f"{base}/audit")
    await page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    kept = await page.evaluate(KEPT)
    assert "/cards/audit" in kept
    assert all(path.startswith("/cards/") for path in kept)


async def test_programs_play_and_check_under_a_path(served: Served) -> None:
    pages = f"http://127.0.0.1:{served.port}/cards/"
    table = await play(pages.replace("http", "ws") + "ws", lambda message: None)
    lines = await asyncio.to_thread(from_house, pages, table)
    assert verify(lines).ok
