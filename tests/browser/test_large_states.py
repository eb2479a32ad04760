"""The states of the pages with large letters: nothing is covered, cut, or past an edge."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from dealer.cli.demo_game import play
from tests.browser.album import ENLARGE
from tests.browser.conftest import OpenPage
from tests.browser.crowd import crowd, has_cards
from tests.browser.geometry import DRAWN, expect_seen
from tests.browser.player_page import PlayerPage
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import close_round, dismiss_help, own_cards
from tests.browser.test_large_text import hearts, trick, wide
from tests.browser.test_looks import box
from tests.harness.server_process import ServerProcess

SMALL, LOW, TABLET, DESKTOP = (360, 640), (844, 390), (768, 1024), (1280, 800)
NAMES = ("Ada", "Bob", "Cleo", "Dan")

BRIGHTEST = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
  return Math.max(...data.filter((_, n) => n % 4 < 3));
}"""
"""The largest value of red, green or blue in a picture."""


async def enlarge(page: Page, letters: int) -> None:
    await page.evaluate(ENLARGE, letters)
    await page.evaluate(DRAWN)


async def shown(
    open_page: OpenPage, path: str, size: tuple[int, int], letters: int, **options: object
) -> Page:
    """A page on a device that is touched, with letters of this size in percent."""
    width, height = size
    page = await open_page(
        path, size={"width": width, "height": height}, has_touch=True, is_mobile=True, **options
    )
    await enlarge(page, letters)
    return page


SMALLEST_LETTERS = """() => Math.min(...[...document.querySelectorAll("#bars text")].map(
  (one) => one.getBoundingClientRect().height))"""

CHART_IS_CLEAR = """(least) => {
  const svg = document.querySelector("#bars svg");
  if (svg === null) return false;
  const around = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")].map((one) => one.getBoundingClientRect());
  const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
    a.top < b.bottom - 4 && b.top < a.bottom - 4;
  return boxes.length > 0 && boxes.every(({ height }) => height >= least) &&
    !boxes.some((a, n) => boxes.slice(n + 1).some((b) => overlap(a, b))) &&
    boxes.every(({ left, right, bottom }) => left >= around.left - 1 &&
      right <= around.right + 1 && bottom <= around.bottom + 1);
}"""
"""Whether the letters of a chart are that high, and neither overlap nor leave it."""

APART = """() => {
  const [controls, moment, table] = ["controls", "moment", "table-view"].map(
    (id) => document.getElementById(id).getBoundingClientRect());
  const apart = (a, b) => a.bottom <= b.top || a.right <= b.left
    || b.bottom <= a.top || b.right <= a.left;
  return apart(moment, table) && apart(moment, controls);
}"""
"""Whether neither the table of a replay nor its controls cover its sentence."""


@pytest.fixture(scope="module")
def finished() -> dict[str, str]:
    """The id of the finished game, once one was played."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def replayed(server: ServerProcess, finished: dict[str, str]) -> str:
    """The id of a finished game."""
    if not finished:
        finished["table"] = await play(server.url, lambda message: None)
    return finished["table"]


@pytest.mark.parametrize("letters", [100, 150, 200])
@pytest.mark.parametrize("size", [(320, 568), SMALL, LOW, TABLET, DESKTOP])
async def test_the_controls_of_a_replay_cover_neither_the_sentence_nor_the_top_of_the_deck(
    open_page: OpenPage,
    replayed: str,
    size: tuple[int, int],
    letters: int,
) -> None:
    page = await shown(open_page, f"/tables/{replayed}/audit#round=1&step=17", size, letters)
    await expect(page.get_by_text(re.compile("^Swap 18 "))).to_be_visible()
    await page.locator("#replay").evaluate("(one) => one.scrollIntoView({ block: 'start' })")
    await page.wait_for_function(APART)
    await expect_seen(page, "#moment", "#controls button", "#scrub", "#count")
    await expect_seen(page, ".stack li:first-child .corner:first-child")
    small = await page.locator(".stack .corner:first-child .rank").evaluate_all(
        "(all) => all.filter((one) => parseFloat(getComputedStyle(one).fontSize) < 11).length"
    )
    assert small == 0
    outside = await page.locator("#controls").evaluate(
        """(panel) => [...panel.querySelectorAll("button, input, output")].filter((one) => {
          const [at, around] = [one, panel].map((each) => each.getBoundingClientRect());
          return at.left < around.left || at.right > around.right ||
            at.top < around.top || at.bottom > around.bottom;
        }).map((one) => one.id)"""
    )
    assert outside == []
    assert await wide(page) == []


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [SMALL, LOW, DESKTOP])
async def test_the_verdict_is_seen_as_a_whole_with_the_way_to_the_replay(
    open_page: OpenPage,
    replayed: str,
    size: tuple[int, int],
    letters: int,
) -> None:
    """
    There is one button to start it, and what explains the verdict is folded. The first cards are
    seen, too, and the controls do not lie on them.
    """
    page = await shown(open_page, f"/tables/{replayed}/audit", size, letters)
    await expect(page.locator("#verdict-tally")).to_contain_text("6 of 7 checks passed")
    await expect_seen(page, "#verdict-title", "#verdict-tally", "#verdict-words")
    words, tally = [
        await page.locator(one).evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)")
        for one in ("#verdict-words", "#verdict-tally")
    ]
    assert words < tally
    await expect(page.locator("#envelopes")).to_be_hidden()
    await expect(page.get_by_role("button", name=re.compile("^(Play|Replay)"))).to_have_count(1)
    if letters == 100:
        await expect_seen(page, "#chapters [aria-current]", ".stack li:first-child .card")
        view, controls = [await box(page.locator(one)) for one in ("#table-view", "#controls")]
        first = await box(page.locator("#table-view li").first)
        beside = view["x"] + view["width"] <= controls["x"]
        assert beside or first["y"] + 3 * first["height"] <= controls["y"]
        await page.locator("#play").tap()  # brings the table into view
        await expect_seen(page, "#table-view", "#controls")


@pytest.mark.parametrize("size", [SMALL, (390, 844), LOW, TABLET, DESKTOP])
async def test_the_table_of_a_replay_is_seen_with_its_controls(
    open_page: OpenPage, replayed: str, size: tuple[int, int]
) -> None:
    """At every moment, without scrolling, and the controls are where a thumb is."""
    page = await shown(open_page, f"/tables/{replayed}/audit", size, 100)
    await expect(page.locator("#verdict-tally")).to_be_visible()
    await page.locator("#replay").evaluate("(one) => one.scrollIntoView({ block: 'start' })")
    for chapter in await page.locator("#chapters button").all():
        await chapter.tap()
        await expect(chapter).to_have_attribute("aria-current", "true")
        await expect(chapter).to_be_in_viewport(ratio=0.9)
        await expect_seen(page, "#moment", "#table-view", "#controls")
        await page.wait_for_function(APART)
    if size[0] < 768:
        copy, on = [await box(page.locator(one)) for one in ("#copy", "#play-on")]
        assert copy["y"] == on["y"]  # neither is alone in its row
    await page.locator("#end").tap()
    await expect_seen(page, "#moment", "#table-view", "#controls")
    view, controls = [await box(page.locator(one)) for one in ("#table-view", "#controls")]
    if size[0] < 768:
        assert view["y"] + view["height"] <= controls["y"]
        assert controls["y"] + controls["height"] > 0.7 * size[1]


@pytest.mark.parametrize("size", [SMALL])
async def test_the_letters_of_the_chart_grow_with_the_text(
    open_page: OpenPage, replayed: str, size: tuple[int, int]
) -> None:
    path = f"/tables/{replayed}/audit#round=1&step=17"
    sizes: list[float] = []
    for letters in (100, 150, 200):
        # Like a browser that has this size from the beginning.
        page = await shown(open_page, "/audit", size, letters)
        await page.add_init_script(
            f"addEventListener('DOMContentLoaded', () => ({ENLARGE})({letters}))"
        )
        await page.goto(path)
        # The chart is drawn again once its letters have their size.
        least = {100: 1, 150: 1.4, 200: 1.8}[letters] * (sizes[0] if sizes else 1)
        await page.wait_for_function(CHART_IS_CLEAR, arg=least)
        sizes.append(await page.evaluate(SMALLEST_LETTERS))


@pytest.mark.parametrize("size", [SMALL, LOW, TABLET])
async def test_the_form_to_sit_down_covers_nothing(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, NAMES, deal=None))[0].partition("#")[0]
    page = await shown(open_page, path, size, 150)
    await expect(page.get_by_role("button", name="Sit down")).to_be_visible()
    await expect_seen(
        page, ".between", ".badge", ".seat .name", "#join input", "#join select", "#join button"
    )
    inside = await page.locator("#join form").evaluate(
        """(form) => [...form.querySelectorAll("input, select, button")].every((one) =>
          one.getBoundingClientRect().right <= form.getBoundingClientRect().right)"""
    )
    assert inside
    if size == SMALL:  # a name is not cut by a seat beside it
        name = await page.get_by_label("Your name").bounding_box()
        assert name is not None
        assert name["width"] >= 0.83 * size[0]


@pytest.mark.parametrize("size", [SMALL, TABLET])
async def test_who_watches_a_trick_sees_it_above_the_form(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    page = await shown(open_page, (await hearts(server)).partition("#")[0], size, 150)
    await dismiss_help(page)
    await expect(trick(page)).to_have_count(3)
    await expect_seen(page, "#middle .card .corner:first-child", "#join button")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [SMALL, LOW, TABLET, DESKTOP])
async def test_the_numbers_of_cards_of_the_players_are_seen(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    page = await shown(open_page, await hearts(server), size, letters)
    await dismiss_help(page)
    await expect(trick(page)).to_have_count(3)
    await expect_seen(page, ".seat .count", ".seat .name", ".before .count")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "pl", "zh", "ar"])
async def test_selected_cards_and_their_number_are_seen(
    open_page: OpenPage, server: ServerProcess, language: str, letters: int
) -> None:
    """All of 13 cards are, too, in a title of one line, and drawing beside the next step."""
    path = (await prepared_table(server, NAMES[:3], deal=13))[0]
    page = await shown(open_page, path, SMALL, letters, locale=language)
    await expect(own_cards(page)).to_have_count(13)
    assert await page.evaluate("document.scrollingElement.scrollWidth") == SMALL[0]
    for index in (1, 3):
        await own_cards(page).nth(index).tap()
    await expect(page.locator('#hand [aria-selected="true"]')).to_have_count(2)
    await expect_seen(page, "#hand .corner:first-child", "#hand-title", "#tools button")
    await expect_seen(page, "[data-action=draw]", "[data-action=play].primary")
    assert (await box(page.locator("#hand-title")))["height"] < 20


async def test_selected_cards_stay_in_view(open_page: OpenPage, server: ServerProcess) -> None:
    """While others come, and after the device was turned."""
    path = (await prepared_table(server, NAMES[:2], deal=13))[0]
    page = await shown(open_page, path, SMALL, 100)
    chosen = page.locator('#hand [aria-selected="true"]')
    await own_cards(page).first.tap()
    await page.keyboard.press("9")
    await page.keyboard.press("d")
    await expect(own_cards(page)).to_have_count(22)
    await expect_seen(page, '#hand [aria-selected="true"] .corner:first-child')
    await chosen.tap()
    await page.set_viewport_size({"width": LOW[0], "height": LOW[1]})
    await own_cards(page).last.tap()
    await page.set_viewport_size({"width": SMALL[0], "height": SMALL[1]})
    await page.wait_for_function("(width) => innerWidth === width", arg=SMALL[0])
    await expect_seen(page, '#hand [aria-selected="true"] .corner:first-child')


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_a_raised_card_fades_with_the_others_at_the_edge(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, NAMES[:2], deal=25))[0]
    page = await shown(open_page, path, size, 200)
    await own_cards(page).first.tap()
    await expect(page.locator('#hand [aria-selected="true"]')).to_have_count(1)
    hand = page.locator("#hand")
    await hand.evaluate("(one) => one.scrollBy({ left: 30, behavior: 'instant' })")
    await expect(hand).to_have_attribute("data-more", "start end")
    await page.evaluate(DRAWN)
    box = await hand.bounding_box()
    assert box is not None
    edge = {"x": box["x"] + 1, "y": box["y"], "width": 3, "height": box["height"]}
    canvas = await open_page("about:blank")
    for clip in (edge, edge | {"x": box["x"] + box["width"] - 4}):
        png = b64encode(await page.screenshot(clip=clip)).decode()  # type: ignore[arg-type]
        assert await canvas.evaluate(BRIGHTEST, png) < 120  # a card is white, and the felt green


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_an_arrow_is_at_the_edge_beyond_which_there_are_more_cards(
    open_page: OpenPage, server: ServerProcess, language: str
) -> None:
    path = (await prepared_table(server, NAMES[:2], deal=25))[0]
    page = await shown(open_page, path, SMALL, 100, locale=language)
    await expect(own_cards(page)).to_have_count(25)
    hand = page.locator("#hand")
    for more, sign, edge in (("end", "::after", "right"), ("start", "::before", "left")):
        await hand.evaluate(
            "(one, more) => { one.scrollLeft = more === 'end' ? 0 : one.scrollWidth; }", more
        )
        await page.wait_for_function(
            """([sign, edge]) => {
              const arrow = getComputedStyle(document.querySelector(".hand-frame"), sign);
              return arrow.opacity === "1" && arrow[edge] === "0px";
            }""",
            arg=[sign, edge],
        )


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [SMALL, LOW, DESKTOP])
async def test_the_piles_are_above_the_hand(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    path = (await prepared_table(server, (*NAMES, "Eve"), deal=5))[0]
    page = await shown(open_page, path, size, letters)
    await expect(own_cards(page)).to_have_count(5)
    await expect_seen(page, "#middle .stack", "#middle .stack .name", ".badge", "#hand .card")


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_a_lost_connection_leaves_the_piles_on_the_screen(
    open_page: OpenPage, server: ServerProcess, link, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, (*NAMES, "Eve"), deal=5))[0]
    page = await shown(open_page, path, size, 150, at=link.port)
    page.errors.expect("WebSocket connection|ERR_|Failed to load")  # type: ignore[attr-defined]
    await expect(own_cards(page)).to_have_count(5)
    await link.cut()
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    await expect_seen(page, "#connection", "#middle .stack", "#hand .card")
    await link.mend()
    await expect(page.locator("#connection")).to_contain_text("Connected again", timeout=30_000)


@pytest.mark.parametrize("size", [SMALL, LOW, DESKTOP])
async def test_the_sheet_after_a_round_is_seen_with_its_buttons(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    path = (await prepared_table(server, (*NAMES, "Eve"), deal=5))[0]
    page = await shown(open_page, path, size, 150)
    await expect(own_cards(page)).to_have_count(5)
    await close_round(page)
    await expect(page.get_by_role("heading", name="Round 1 is over")).to_be_visible()
    await expect_seen(page, ".between", ".between button", ".between a", "#hand .card")


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_the_scores_after_a_round_are_seen_with_its_buttons(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    async with crowd(server, 2) as full:
        page = await shown(open_page, full.path, size, 150)
        await PlayerPage(page, "Mo").sit_down()
        await full.start()
        await full.host.deal(3)
        await has_cards(page, 3)
        for text in ("1:12", "2:7"):
            await full.host.note("score", text)
        await full.host.round_close()
        await expect(page.locator(".scores li")).to_have_count(2)
        await expect_seen(page, ".between h2", ".scores li", ".scores b")


@pytest.mark.parametrize("letters", [100, 150])
@pytest.mark.parametrize("size", [SMALL, LOW, TABLET, DESKTOP])
async def test_the_result_of_a_game_is_seen_with_the_names_of_its_players(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int], letters: int
) -> None:
    page = await shown(open_page, await hearts(server, over=True), size, letters)
    await expect(page.locator(".scores li")).to_have_count(4)
    await expect_seen(page, ".between h2", ".scores .name", ".scores b", ".between .next > *")
    names = page.locator(".seats .name")
    for name in await names.all():
        assert await name.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    widths = await page.locator("#around .card:visible").evaluate_all(
        "(all) => all.map((one) => one.offsetWidth)"
    )
    assert min(widths) >= 35


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_the_lobby_shows_its_first_fields(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    page = await shown(open_page, "/", size, 150)
    await expect(page.locator(".tile").first).to_be_visible()
    await expect_seen(page, ".welcome h1", ".welcome p")
    await expect_seen(page, ".tile:nth-of-type(1) .cards", ".tile:nth-of-type(1) .title")


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_the_link_of_an_invitation_is_seen(
    open_page: OpenPage, server: ServerProcess, size: tuple[int, int]
) -> None:
    page = await shown(open_page, (await prepared_table(server, NAMES, deal=None))[0], size, 150)
    await page.get_by_role("button", name="Invite", exact=True).tap()
    await expect(page.locator(".qr svg")).to_be_visible()
    await expect_seen(page, "#dialog-title", ".qr svg", "dialog .line > *")
    link = page.locator("dialog .address")
    assert await link.evaluate("(one) => one.scrollWidth <= one.clientWidth + 1")


@pytest.mark.parametrize("size", [SMALL, LOW])
async def test_the_buttons_of_an_accusation_are_seen(
    open_page: OpenPage, malicious, size: tuple[int, int]
) -> None:
    page = await shown(open_page, "/", size, 100)
    ada = PlayerPage(page, "Ada")
    path = await ada.open_table()
    await ada.do("Shuffle and start")
    await ada.expect_log(re.compile("Shuffled 52 cards"))
    round_ = malicious.live_table(path.rpartition("/")[2]).table.round
    faces, (bottom, *_, top) = round_.faces, round_.cards("deck")
    faces[top], faces[bottom] = faces[bottom], faces[top]
    await ada.do("Draw")
    await expect(page.get_by_role("alertdialog")).to_be_visible()
    await enlarge(page, 150)
    await expect_seen(page, "dialog h2", "dialog .sentence", "dialog p", ".answers button")


@pytest.mark.parametrize("letters", [100, 150])
async def test_the_page_of_an_error_has_a_link_for_fingers(
    open_page: OpenPage, server: ServerProcess, letters: int
) -> None:
    page = await open_page("about:blank", size={"width": 360, "height": 640}, has_touch=True)
    page.errors.expect("404")  # type: ignore[attr-defined]
    await page.goto(f"http://127.0.0.1:{server.port}/nowhere")
    await enlarge(page, letters)
    await expect_seen(page, "h1", "p", "a")
    link = page.get_by_role("link", name="All tables")
    box = await link.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44
    await link.tap()
    await expect(page.get_by_role("radio", name="Any game")).to_be_visible()
