"""Devices that are not like a developer's: their clocks, keyboards and languages."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import expect

from dealer.client import connect
from tests.browser.conftest import OpenPage
from tests.browser.table_page import expect_log
from tests.browser.test_looks import seated
from tests.harness.server_process import PATIENT, ServerProcess

SHIFTED = "(minutes) => { const real = Date.now; Date.now = () => real() + minutes * 60_000; }"
LEFT = 'document.querySelector("[data-turn]")?.style.getPropertyValue("--left")'


@pytest.mark.parametrize("minutes", [-180, 3, 600_000])
async def test_the_ring_of_a_turn_goes_by_the_servers_clock(
    open_page: OpenPage, server: ServerProcess, minutes: int
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        await ada.note(kind="clock", text="3600")
        await ada.note(kind="turn", text="2")
        page = await open_page("/")
        await page.context.add_init_script(f"({SHIFTED})({minutes})")
        await page.goto(f"/tables/{ada.id}#seat={bob.token}")
        for _ in range(2):
            await page.wait_for_function(f"() => {LEFT} > 0.9 && {LEFT} <= 1")
            await page.reload()


KEYS = [
    ("в", "KeyD"),
    ("ي", "KeyD"),
    ("δ", "KeyD"),
    ("Process", "KeyD"),
    ("ד", "KeyD"),
    ("e", "KeyD"),
]


async def test_keys_are_letters_on_any_keyboard(open_page: OpenPage, server: ServerProcess) -> None:
    """The last key is of a keyboard that has another Latin letter there, which counts."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server)
        await ada.round_open(entropy="house")
        await ada.shuffle()
        page = await open_page(f"/tables/{ada.id}#seat={bob.token}")
        cards = page.locator("#hand [data-slot]")
        await expect(page.get_by_role("button", name="Draw", exact=True)).to_be_enabled()
        for drawn, (key, code) in enumerate(KEYS[:-1], 1):
            await press(page, key=key, code=code)
            await expect(cards).to_have_count(drawn)
        await press(page, key="٣", code="Digit3")
        await press(page, key="В", code="KeyD", shiftKey=False)
        await expect(cards).to_have_count(len(KEYS) - 1 + 3)
        await press(page, key="?", code="KeyM", shiftKey=True)
        await expect(page.get_by_role("dialog")).to_be_visible()


async def press(page: Any, **how: Any) -> None:
    await page.evaluate(
        "(how) => document.body.dispatchEvent("
        'new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...how }))',
        how,
    )


@pytest.mark.parametrize("language", ["en", "de", "fr", "ar"])
@pytest.mark.parametrize("name", ["A" * 57, "B" * 64, "Ü\u0301" * 32])
async def test_a_long_name_opens_a_table_in_any_language(
    open_page: OpenPage, language: str, name: str
) -> None:
    page = await open_page("/", locale=language)
    await page.get_by_role("radio").last.check()  # "Any game", in each language
    await page.locator("input[name=player]").fill(name)
    await page.locator(".start button").click()
    await expect(page.locator("#own")).to_be_visible()
    await expect(page.locator("h1")).to_have_text(re.compile("."))
    title = await page.locator("h1").text_content()
    assert title is not None
    assert ("…" in title) == (len(name) == 64 or language != "ar")
    assert len(title.strip("\u2068\u2069")) <= 64


async def test_names_cards_and_ids_are_not_translated(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, name="Rose")
        await ada.round_open(entropy="house")
        await ada.shuffle()
        await ada.deal(2)
        page = await open_page(f"/tables/{ada.id}#seat={bob.token}")
        await expect(page.locator("#hand .card")).to_have_count(2)
        for selector in ("h1", ".seats .name", ".seats .chip", "#hand .card", "[role=log]"):
            await expect(page.locator(selector).first).to_have_attribute("translate", "no")
        await page.goto("/")
        await expect(page.locator(".tables strong").first).to_have_attribute("translate", "no")


async def test_a_link_followed_by_a_full_stop_keeps_its_invitation(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        house = await stack.enter_async_context(connect(server.url, name="Ada"))
        ada = await house.join(await house.open(rules={"join": "invite"}))
        page = await open_page(f"/tables/{ada.id}.#invite={ada.invite}&by=Ada")
        await expect(page.locator("#felt")).to_be_visible()
        assert page.url.endswith(f"/tables/{ada.id}")
        await expect_log(page, "Ada sat down at seat 1.")
