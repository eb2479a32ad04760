"""The audit page without a network: its service worker keeps that page, and nothing else."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, expect

from dealer.cli.demo_game import play
from tests.harness.server_process import ServerProcess

READY = """async () => {
  for (;;) {
    const found = await navigator.serviceWorker.getRegistration("/audit");
    if (found?.active?.state === "activated" && !found.installing && !found.waiting) return;
    await new Promise(requestAnimationFrame);
  }
}"""
REPLACED = """async (before) => {
  for (;;) {
    const names = await caches.keys();
    if (names.length === 1 && names[0] !== before) return;
    await new Promise(requestAnimationFrame);
  }
}"""
KEPT = """async () => {
  const kept = [];
  for (const name of await caches.keys()) {
    for (const { url } of await (await caches.open(name)).keys()) kept.push(new URL(url).pathname);
  }
  return kept.sort();
}"""


async def installed(page: Page) -> list[str]:
    await page.evaluate(READY)
    kept: list[str] = await page.evaluate(KEPT)
    return kept


async def test_the_audit_page_opens_offline_and_checks_a_bundle(
    server, open_page, tmp_path: Path
) -> None:
    table = await play(server.url, lambda message: None)
    page = await open_page(f"/tables/{table}/audit")
    await expect(page.locator("#verdict")).to_be_visible()
    bundle = tmp_path / "bundle.jsonl"
    bundle.write_bytes(await server.bundle(table))
    kept = await installed(page)
    assert "/audit" in kept
    assert all(path == "/audit" or path.startswith("/web/") for path in kept)
    await page.goto("/audit")
    assert await page.evaluate("navigator.serviceWorker.controller !== null")
    await page.goto(f"/tables/{table}")
    assert await page.evaluate("navigator.serviceWorker.controller === null")
    await page.goto("/audit")
    assert await page.evaluate(KEPT) == kept

    await server.close()
    page.errors.expect("ERR_|Failed to load resource|FetchEvent")
    await page.context.set_offline(True)
    await page.goto("/audit")
    await page.set_input_files("#file", bundle)
    # The table page may have saved a checkpoint: then all have passed.
    await expect(page.locator("#verdict-tally")).to_contain_text("checks passed")


async def test_an_upgrade_replaces_what_was_kept(server, open_page, tmp_path: Path) -> None:
    page = await open_page("/audit")
    kept = await installed(page)
    (before,) = await page.evaluate("caches.keys()")
    await page.wait_for_load_state("networkidle")
    port = server.port
    await server.close()
    folder = tmp_path / "next"
    folder.mkdir()
    async with ServerProcess(folder, port=port, title="Next") as following:
        assert following.port == port
        await page.goto("/audit")
        assert await page.title() == "Audit · dealer"
        meta = page.locator('meta[name="application-name"]')
        assert await meta.get_attribute("content") == "Next"  # the network's page, at once
        await page.evaluate(REPLACED, before)
        after = await installed(page)
        (brand,) = set(after) - set(kept)  # the style of the title
        assert brand.endswith("/brand.css")
        assert set(kept) < set(after)
