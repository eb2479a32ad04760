"""What the audit page says before its checks: three sentences, or that nothing is shown."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.test_audit import checked, forged, moment, written
from tests.web.played_tables import Played, real_tables

pytestmark = pytest.mark.reuse_pages


@pytest.fixture(scope="module")
def tables() -> list[Played]:
    """Players' nonces and a voided shuffle; house-only entropy and an open round; a shoe."""
    return real_tables(largest=False)


async def lines(page: Page) -> list[str]:
    """The sentences, which the reader opens."""
    await page.locator("#explained").evaluate("(one) => (one.open = true)")
    return await page.locator("#explained-lines li").all_inner_texts()


async def limits(page: Page) -> str:
    return " ".join(await page.locator("#explained-limits li").all_inner_texts())


async def test_players_bytes_and_a_voided_shuffle(open_page, axe, tables, tmp_path) -> None:
    leaves = [json.loads(str(line)) for line in tables[0].bundle.lines[1:]]
    (voided,) = [one["public"]["k"] + 1 for one in leaves if one.get("type") == "ShuffleVoided"]
    page = await open_page("/audit", timezone_id="UTC", locale="en-GB")
    await checked(page, written(tables[0].bundle.lines, tmp_path))
    promise, given, why = await lines(page)
    assert re.match(
        r"Promised before\. Before the first card of round 1 moved, on .*\d\d:", promise
    )
    assert "random bytes of the house, Ada 1 🂡" in given
    assert f"huffle {voided} used" not in given
    assert "Each player committed to theirs before anyone revealed any" in given
    assert why.startswith("Why no one could choose. The swaps follow from all of these bytes")
    assert f"Shuffle {voided} was voided" in await limits(page)
    assert "neither the table’s key nor a checkpoint" in await limits(page)
    await expect(page.locator("#verdict-words")).to_contain_text("1 of")
    await axe(page)


async def test_the_house_alone_is_not_said_to_be_unable_to_choose(
    open_page, tables, tmp_path
) -> None:
    page = await open_page("/audit")
    await checked(page, written(tables[1].bundle.lines, tmp_path))
    _, given, why = await lines(page)
    assert "used random bytes of the house only" in given
    assert "committed" not in given
    assert why.startswith("Not shown: that no one could choose.")
    assert "Shown is only that the cards were fixed before the deal" in why
    await page.select_option("#round", "2")
    (only,) = await lines(page)
    assert only.startswith("Nothing is shown. Round 2 is still open.")


async def test_nothing_is_claimed_of_a_forged_bundle(open_page, tables, tmp_path) -> None:
    page = await open_page("/audit")
    bundle = forged(tables[0], "CardsSwapped", 20, signed=True, commit="00" * 32)
    await checked(page, written(bundle, tmp_path))
    (only,) = await lines(page)
    assert only.startswith("Nothing is shown. A check failed, in line ")
    await expect(page.locator("#explained-limits")).to_be_hidden()


async def test_the_history_comes_first_and_numbers_count_from_one(
    open_page, axe, tables, tmp_path
) -> None:
    page = await open_page("/audit#round=1&k=0&step=0", timezone_id="UTC", locale="en-GB")
    await checked(page, written(tables[2].bundle.lines, tmp_path))
    await moment(page, re.compile(r"Swap 1 of 103.* place 104\b"))
    here = page.locator("#history [aria-current]")
    await expect(here).to_contain_text("103 swaps; the replay shows each.")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", await here.locator("time").inner_text())
    await expect(page.locator("#logged")).to_be_hidden()
    await page.get_by_text("Show the arithmetic").click()
    await expect(page.locator("#swap-i")).to_have_text("104 − 1 − 0 = 103")
    await expect(page.locator("#logged")).to_contain_text('"step": 0')
    await axe(page)
    await page.get_by_text("Show the arithmetic").click()
    await page.get_by_role("button", name="One event back").click()
    await expect(here).not_to_contain_text("swaps;")
    await page.select_option("#viewer", "spectator")
    await expect(page.locator("#history")).to_contain_text("draws a card")
