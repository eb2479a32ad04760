"""A page of a public site that sends requests to a server in its visitor's own network."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.harness.server_process import ServerProcess

ASK = """async (url) => {
  for (const mode of ["cors", "no-cors"])
    for (const method of ["GET", "POST"])
      await fetch(url, { method, mode }).catch(() => {});
  for (const kind of ["img", "script", "iframe"]) {
    const element = Object.assign(document.createElement(kind), { referrerPolicy: "no-referrer" });
    await new Promise((done) => {
      element.onload = element.onerror = done;
      element.src = url;
      document.body.append(element);
    });
  }
  const read = await fetch(url).then((answer) => answer.ok, () => false);
  const opened = await new Promise((done) => {
    const ws = new WebSocket(url.replace("http", "ws").replace(/[^/]*$/, "ws"));
    ws.onopen = () => done(true);
    ws.onerror = () => done(false);
  });
  return read || opened;
}"""


def own_address() -> str:
    """An IPv4 address of this machine that is not its loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no network but its loopback")
        address: str = probe.getsockname()[0]
        return address


async def test_such_a_page_reads_nothing_and_opens_no_deck(
    browser: Browser, tmp_path: Path
) -> None:
    """Over `http` the browser sends no `Sec-Fetch-Site` to such an address, perhaps no page."""
    address = own_address()
    async with ServerProcess(tmp_path, host="0.0.0.0") as server:
        context = await browser.new_context()
        page = await context.new_page()
        await page.route("http://site.example/", lambda route: route.fulfill(body="<p>"))
        await page.goto("http://site.example/")
        assert not await page.evaluate(ASK, f"http://{address}:{server.port}/api/deck/new/")
        await context.close()
    with closing(sqlite3.connect(server.database)) as log:
        assert log.execute("SELECT count(*) FROM stream").fetchone() == (0,)
