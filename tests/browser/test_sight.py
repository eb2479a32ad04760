"""What is seen at a glance: whole indices, letters, lines with contrast, and a middle."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.geometry import SETTLE_MS, expect_seen
from tests.browser.table_page import own_cards, place
from tests.browser.test_felt import BOARD, at_seat, seated
from tests.browser.test_large_text import hearts, phone
from tests.harness.server_process import ServerProcess

SIZES = [(360, 640), (390, 844), (844, 390), (768, 1024), (1280, 800)]

COVERED_INDICES = """() => {
  const cards = [...document.querySelectorAll("#middle .trick .card")];
  const inside = (x, y, box) =>
    x > box.left + 1 && x < box.right - 1 && y > box.top + 1 && y < box.bottom - 1;
  return cards.flatMap((card) => [...card.querySelectorAll(".corner")].flatMap((corner) => {
    const { left, right, top, bottom } = corner.getBoundingClientRect();
    const points = [[left, top], [right, top], [left, bottom], [right, bottom]];
    return cards.filter((other) => other !== card && points.some(
      ([x, y]) => inside(x, y, other.getBoundingClientRect())
    )).map((other) => `${other.dataset.card} covers an index of ${card.dataset.card}`);
  }));
}"""
"""Which cards of a trick lie on rank and suit of another one, whichever is above."""

SMALL_LETTERS = """() => {
  const small = [];
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest(".card, .visually-hidden, noscript, svg") !== null) continue;
    if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (one.getBoundingClientRect().width < 2) continue;
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    for (const part of [null, "::before", "::after"]) {
      const style = getComputedStyle(one, part);
      const says = part === null ? own : !["none", "normal", '""'].includes(style.content);
      const size = parseFloat(style.fontSize);
      const text = part === null ? one.textContent : style.content;
      if (says && size > 0 && size < 12) small.push(`${one.className} ${text}: ${size} px`);
    }
  }
  return small;
}"""
"""Labels whose letters are smaller than 12 pixels; those that are not drawn have a size of 0."""

CONTRASTS = r"""() => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.transition = "none";
  const light = (colour) => {
    probe.style.color = `color-mix(in srgb, var(--${colour}), var(--${colour}))`;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0.05);
  };
  const ratio = (one, other) => Math.max(one / other, other / one);
  const found = ["felt-line", "glow", "focus-on-felt"].flatMap((line) =>
    ["felt-light", "felt", "felt-deep", "rim"].map((ground) =>
      [`${line} on ${ground}`, ratio(light(line), light(ground))]));
  probe.remove();
  return Object.fromEntries(found);
}"""
"""How much lighter or darker the lines of the table are than what they are drawn on."""


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", SIZES)
async def test_every_index_of_a_trick_is_whole(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    page = await phone(open_page, await hearts(server), size, letters=letters)
    await own_cards(page).first.tap()
    await page.get_by_role("button", name="Play", exact=True).tap()
    await expect(place(page, "pile:table").locator(".card")).to_have_count(4)
    await page.wait_for_function(
        f"() => ({COVERED_INDICES})().length === 0 || document.timeline.currentTime > {SETTLE_MS}"
    )
    assert await page.evaluate(COVERED_INDICES) == []
    if letters == 100:
        await expect_seen(page, ".quick button:not([hidden])")


@pytest.mark.parametrize("size", SIZES)
async def test_labels_have_letters_of_12_pixels(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with seated(server, "hearts") as tables:
        await tables[0].deal(13)
        for index, table in enumerate(tables[:3]):
            await table.until(lambda one: len(one.hand) == 13)
            await table.pass_(table.hand[:3], to=index + 2)
        await tables[0].note(kind="score", text="2:14")
        await tables[0].note(kind="dealer_button", text="1")
        page = await at_seat(open_page, tables[3], size)
        await expect(own_cards(page)).to_have_count(13)
        assert await page.evaluate(SMALL_LETTERS) == []
        await page.get_by_role("button", name="Log", exact=True).tap()
        assert await page.evaluate(SMALL_LETTERS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_lines_and_rings_are_seen_on_the_felt(
    open_page: OpenPage, server: ServerProcess, scheme: str
) -> None:
    page = await phone(open_page, await hearts(server), (360, 640), color_scheme=scheme)
    contrasts = await page.evaluate(CONTRASTS)
    assert len(contrasts) == 12
    assert {on: ratio for on, ratio in contrasts.items() if ratio < 3} == {}


async def test_the_board_of_a_desktop_is_in_the_middle(
    open_page: OpenPage, server: ServerProcess
) -> None:
    async with seated(server, "holdem") as (ada, *_, dan):
        await ada.deal(2)
        page = await at_seat(open_page, dan, (1280, 800))
        for piles in BOARD:
            await ada.deal(0, piles=piles)
        cards = page.locator('[data-stack="pile:board"] .card')
        await expect(cards).to_have_count(5)
        edges = await cards.evaluate_all(
            """(all) => all.map((one) => one.getBoundingClientRect())
              .flatMap(({ left, right }) => [left, right])"""
        )
        assert (min(edges) + max(edges)) / 2 == pytest.approx(640, abs=4)
        assert max(edges) - min(edges) >= 520  # five cards of 100 pixels
        await expect_seen(page, "#middle .stack .name", "#middle .stack .card:last-child")


async def test_the_log_of_a_phone_on_its_side_leaves_the_hand(
    open_page: OpenPage, server: ServerProcess
) -> None:
    page = await phone(open_page, await hearts(server), (844, 390))
    await expect(own_cards(page)).to_have_count(12)
    await page.get_by_role("button", name="Log", exact=True).tap()
    await expect(page.locator("#log > *").nth(-4)).to_be_in_viewport(ratio=1)
    log = await page.locator("#log-panel").bounding_box()
    hand = await own_cards(page).last.bounding_box()
    assert log is not None
    assert hand is not None
    assert hand["x"] + hand["width"] <= log["x"]


@pytest.mark.parametrize("size", [(360, 640), (844, 390), (1280, 800)])
async def test_a_full_table_is_watched(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with seated(server, "hearts", ("Ada", "Bob", "Cleo", "Dan", "Eve", "Fay")) as tables:
        path = f"/tables/{tables[0].id}"
        page = await open_page(path, size={"width": size[0], "height": size[1]})
        await expect(page.get_by_role("heading", name="6 of 6 seats are taken")).to_be_visible()
        await expect(page.get_by_text("Watch live; hands stay hidden.")).to_be_visible()
        host = page.get_by_role("button", name=re.compile("Ada.*, host"))
        await expect(host.get_by_title("host")).to_have_text("Ada")
        await expect(page.get_by_label("Your name")).to_be_hidden()
        await expect_seen(page, "#join h2", "#join .primary")
        title = await page.locator("#join h2").bounding_box()
        watch = await page.locator("#join .primary").bounding_box()
        assert title is not None
        assert watch is not None
        assert title["y"] < watch["y"] + watch["height"] / 2 < title["y"] + 2 * title["height"]
        await page.get_by_role("button", name="Watch", exact=True).click()
        await expect(page.locator("#join")).to_be_hidden()
        await tables[5].leave()
        await expect(page.get_by_label("Your name")).to_be_visible()
        await expect(page.get_by_role("button", name="Sit down")).to_be_enabled()


@pytest.mark.parametrize("size", SIZES)
async def test_the_form_of_a_chosen_game_is_on_the_screen(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    page = await open_page("/", size={"width": size[0], "height": size[1]})
    await page.get_by_role("radio", name="Hearts 3–6 players").check()
    await expect_seen(page, ".opened .primary")
