"""The audit page: valid and forged bundles, from the server and from disk, and their replay."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, TimeoutError, expect

from dealer.cli.demo_game import play
from dealer.client import connect
from dealer.gateway.pages.self_contained_page import audit_page
from dealer.proof.bundle import DECOMPRESSED, LINE_ENDS, UNMARKED
from tests.browser.conftest import PHONE
from tests.proof.log_builder import openings_of
from tests.proof.test_verify import everything
from tests.web.forged_bundles import Base, dump
from tests.web.js_verifier import Line
from tests.web.played_tables import Played, real_tables

pytestmark = pytest.mark.reuse_pages

CHECKS = ("form", "heads", "saved", "secrets", "tape", "seals", "moves")
PASSED = dict.fromkeys(CHECKS, "passed")
UNSAVED = PASSED | {"saved": "not checked"}


@pytest.fixture(scope="module")
def tables() -> list[Played]:
    """Players' nonces and a voided shuffle; house-only entropy and an open round; a shoe."""
    return real_tables(largest=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def played(shared_server) -> str:
    """The id of a table with a finished game."""
    return await play(shared_server.url, lambda message: None)


@pytest.fixture
def one_file(tmp_path: Path) -> str:
    """The address of the self-contained page on disk."""
    path = tmp_path / "audit.html"
    path.write_bytes(audit_page().page)
    return path.as_uri()


def written(lines: Sequence[Line], folder: Path, name: str = "bundle.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(map(str, lines)) + "\n")
    return path


def forged(played: Played, type_: str, nth: int, *, signed: bool, **members: Any) -> list[Line]:
    """The bundle with changed members in the nth leaf of a type, signed again or not."""
    base = Base.of("forged", played.bundle.lines, played.seed)
    at = [n for n, leaf in enumerate(base.leaves) if f'"type":"{type_}"' in leaf][nth]
    leaf = json.loads(base.leaves[at]) | members
    leaves = [*base.leaves[:at], dump(leaf), *base.leaves[at + 1 :]]
    return (base.signed(leaves) if signed else base._replace(leaves=leaves)).lines()


async def checked(page: Page, bundle: Path | None = None) -> None:
    """Choose a bundle, if one is given, and wait until it is checked."""
    if bundle is not None:
        await page.set_input_files("#file", bundle)
    await page.wait_for_selector("#verdict:not([hidden])")


async def answers(page: Page) -> dict[str, str]:
    found = await page.eval_on_selector_all(
        "#checks li", "all => all.map(one => [one.dataset.check, one.dataset.state])"
    )
    return dict(found)


async def moment(page: Page, says: str | re.Pattern[str]) -> None:
    await expect(page.locator("#moment")).to_contain_text(says)


async def deck(page: Page) -> list[str]:
    names: list[str] = await page.eval_on_selector_all(
        "[data-stack=deck] .card", "all => all.map(one => one.getAttribute('aria-label'))"
    )
    return names


async def fits(page: Page) -> bool:
    """Whether nothing is wider than the window once the layout is final."""
    try:
        await page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth",
            timeout=10_000,
        )
    except TimeoutError:
        return False
    return True


async def test_a_permalink_opens_its_moment(open_page, axe, played) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=17")
    await checked(page)
    assert await answers(page) == UNSAVED
    heading = page.get_by_role("heading", name="Fair, as far as this file shows")
    await expect(heading).to_be_visible()
    await expect(page.locator("#verdict-tally")).to_have_text(
        "6 of 7 checks passed ○ Not checked: “The log is the one you saw”"
    )
    await expect(page.locator("#verdict-words")).to_contain_text("on the device you played on")
    await moment(page, "Swap 18 of 51")
    await page.get_by_text("Show the arithmetic").click()
    await expect(page.locator("#swap-i")).to_have_text("52 − 1 − 17 = 34")
    _, word = (await page.locator("#swap-word").text_content()).split(": ")
    assert await page.locator("#swap-j").text_content() == f"{word} mod 35 = {int(word) % 35}"
    assert await page.locator("#tape .now").text_content() == word
    marks = page.locator("[data-stack=deck] [data-mark]")
    assert set(await marks.evaluate_all("all => all.map(one => one.dataset.mark)")) <= {
        "35",
        str(int(word) % 35 + 1),
    }
    assert json.loads(await page.locator("#logged").text_content())["public"]["i"] == 34
    await axe(page)


async def test_slider_keys_and_buttons_show_the_same_moments(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=17")
    await checked(page)
    await moment(page, "Swap 18 of 51")
    here = await deck(page)
    await page.keyboard.press("ArrowRight")
    await moment(page, "Swap 19 of 51")
    assert await deck(page) != here or "stays" in await page.locator("#moment").text_content()
    await page.keyboard.press("ArrowLeft")
    await moment(page, "Swap 18 of 51")
    assert await deck(page) == here
    await page.keyboard.press("PageDown")
    await moment(page, "Swap 28 of 51")
    await page.get_by_role("button", name="One event forward").click()
    await moment(page, "Swap 29 of 51")
    await page.get_by_role("button", name="To the start").click()
    await moment(page, "Round 1 opens")
    fresh = await deck(page)
    assert fresh[0] == "ace of spades"
    await page.keyboard.press("End")
    await moment(page, "Round 1 closes")
    slider = page.get_by_role("slider", name="Event")
    await slider.fill("0")
    await moment(page, "Round 1 opens")
    assert await deck(page) == fresh
    assert "Round 1 opens" in await slider.get_attribute("aria-valuetext")
    await slider.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("#count")).to_contain_text("2 of")


LABELS = """(all) => all.map((one) =>
  `${one.getAttribute("aria-label")} in ${one.closest(".stack").ariaLabel}`)"""
"""Of each card, what it is and where."""


async def test_the_address_follows_the_replay(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit")
    await checked(page)
    await page.get_by_role("button", name="Shuffle 1").click()
    await moment(page, "Shuffle 1 begins")
    await page.keyboard.press("End")
    await page.select_option("#viewer", "2")
    await page.wait_for_url("**/audit#round=1&version=*&seat=2")
    address = page.url
    shown = await page.locator("#table-view .card").evaluate_all(LABELS)
    other = await open_page(address)
    await checked(other)
    await moment(other, "Round 1 closes")
    assert await other.locator("#table-view .card").evaluate_all(LABELS) == shown
    await other.goto(address.partition("#")[0] + "#round=1&k=0&step=3")
    await moment(other, "Swap 4 of 51")
    assert await other.input_value("#viewer") == "above"
    await other.goto(address.partition("#")[0] + "#round=77")
    await expect(other.get_by_role("alert").first).to_have_text(
        "There is no round 77 in this bundle."
    )


async def test_a_copied_link_opens_the_same_moment(open_page, played) -> None:
    page = await open_page(
        f"/tables/{played}/audit#round=1&step=2", permissions=["clipboard-read", "clipboard-write"]
    )
    await checked(page)
    await moment(page, "Swap 3 of")
    await page.get_by_role("button", name="Copy link").click()
    await expect(page.locator("#copy")).to_have_text("Copied")
    text = await page.evaluate("navigator.clipboard.readText()")
    assert text.endswith(f"/tables/{played}/audit#round=1&k=0&step=2")


WATCH_CARDS = """() => {
  window.drawn = 0;
  new MutationObserver((changes) => (window.drawn += changes.length)).observe(
    document.getElementById("table-view"), { subtree: true, attributeFilter: ["aria-label"] },
  );
}"""


async def test_a_swap_redraws_only_two_cards(open_page, tables, tmp_path) -> None:
    page = await open_page("/audit#round=1&step=9")
    await checked(page, written(tables[2].bundle.lines, tmp_path))
    await moment(page, "Swap 10 of 103")
    await page.evaluate(WATCH_CARDS)
    for step in range(11, 31):
        await page.keyboard.press("ArrowRight")
        await moment(page, f"Swap {step} of 103")
    assert 2 <= await page.evaluate("window.drawn") <= 20 * 2


COUNT_ANIMATIONS = """() => {
  const { animate } = Element.prototype;
  window.animations = 0;
  Element.prototype.animate = function (...how) {
    window.animations += 1;
    return animate.apply(this, how);
  };
}"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
async def test_animations_follow_the_motion_preference(open_page, played, motion) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=40", reduced_motion=motion)
    await checked(page)
    await moment(page, "Swap 41 of 51")
    await page.evaluate(COUNT_ANIMATIONS)
    for step in range(41, 51):
        await page.keyboard.press("ArrowRight")
        await moment(page, f"Swap {step + 1} of 51")
    flights = await page.evaluate("window.animations")
    assert flights == 0 if motion == "reduce" else flights >= 2


async def test_the_replay_plays_to_the_end(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit", reduced_motion="no-preference")
    await checked(page)
    await page.keyboard.press("End")
    await page.keyboard.press("PageUp")
    await page.select_option("#speed", "10")
    await page.locator("#moment").click()
    await page.keyboard.press(" ")
    await expect(page.locator("#play")).to_have_accessible_name("Pause")
    await moment(page, "Round 1 closes")
    await expect(page.locator("#play")).to_have_accessible_name("Play")
    await page.locator("#play").click()
    await moment(page, "commits to random bytes")
    await page.keyboard.press("ArrowLeft")
    await expect(page.locator("#play")).to_have_accessible_name("Play")


async def test_a_keyboard_reaches_every_control_of_the_audit(open_page, axe, played) -> None:
    """What has the focus is not below the controls, and its name has the words that are seen."""
    page = await open_page(f"/tables/{played}/audit", size=PHONE)
    await checked(page)
    await moment(page, "Shuffle 1 is done")
    for summary in ("#explained-title", "#facts-title"):
        await page.locator(summary).focus()
        await page.keyboard.press("Enter")
    await expect(page.locator("#envelopes svg").first).to_be_visible()
    await axe(page)
    results = await Axe().run(page, options={"runOnly": ["label-content-name-mismatch"]})
    assert results.violations_count == 0, results.generate_report()
    reached = set[str]()
    await page.locator("#explained-title").focus()
    while "another" not in reached:
        await page.wait_for_function(
            """() => {
              const one = document.activeElement;
              const { left, right, top, bottom } = one.getBoundingClientRect();
              const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
              return one.contains(seen) || (seen?.contains(one) ?? false);
            }"""
        )
        name = await page.evaluate(
            "document.activeElement.id || document.activeElement.textContent"
        )
        reached.add(name)
        await page.keyboard.press("Tab")
    assert reached >= {
        "explained-title", "facts-title", "key", "Opening", "Shuffle 1", "round", "viewer", "play",
        "scrub", "speed", "copy", "history", "take-bundle",
    }  # fmt: skip


async def test_a_seat_sees_only_its_own_cards(open_page, axe, tables, tmp_path) -> None:
    page = await open_page("/audit")
    await checked(page, written(tables[0].bundle.lines, tmp_path))
    drawn = next(
        json.loads(str(line))["version"]
        for line in tables[0].bundle.lines
        if '"type":"CardDrawn"' in str(line)
    )
    await page.goto(f"{page.url.partition('#')[0]}#version={drawn}&seat=1")
    await moment(page, "Ada 1 🂡 (seat 1) draws the")
    up = page.locator(".card[data-face=up]:visible")
    await expect(up).to_have_count(1)
    assert await page.locator("[data-stack='hand:1'] .card[data-face=up]").count() == 1
    await page.select_option("#viewer", "2")
    await moment(page, "draws a card")
    await expect(up).to_have_count(0)
    await axe(page)
    await page.select_option("#viewer", "above")
    # Of all cards those of the deck are covered once it was dealt from, as in play.
    hidden = page.locator("#table-view .stack:not([data-stack=deck]) .card[data-face=down]")
    await expect(hidden).to_have_count(0)
    await expect(page.locator("[data-stack=deck] .card[data-face=up]")).to_have_count(0)


async def test_a_link_is_followed_although_the_page_replaces_the_address(
    open_page, tables, tmp_path
) -> None:
    page = await open_page("/audit")
    await checked(page, written(tables[0].bundle.lines, tmp_path))
    await moment(page, "were sealed, each in its slot")
    await page.evaluate(
        """() => {
            location.hash = "#round=1&step=17";
            history.replaceState(null, "", "#round=1");
        }"""
    )
    await moment(page, "Swap 18 of 51")


async def test_a_swap_is_hidden_from_a_seat(open_page, tables, tmp_path) -> None:
    page = await open_page("/audit#round=1&step=20&seat=1")
    await checked(page, written(tables[2].bundle.lines, tmp_path))
    await moment(page, "is swapped with a hidden one")
    await page.get_by_text("Show the arithmetic").click()
    await expect(page.locator("#swap-j")).to_have_text("—")
    await expect(page.locator("#tape")).to_be_hidden()
    assert (await deck(page))[:2] == ["ace of spades, deck 1", "two of spades, deck 1"]


async def test_the_plot_can_be_read_as_a_table(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=50")
    await checked(page)
    await expect(page.locator("#plot-words")).to_be_hidden()
    await page.locator("#plot-more summary").click()
    await expect(page.locator("#plot-words")).to_contain_text("98 in 100")
    rows = [
        (await row.inner_text()).split("\t")
        for row in await page.locator("#plot-table tbody tr").all()
    ]
    assert await page.locator("#bars rect.expected").count() == len(rows)
    assert await page.locator("#bars rect.actual").count() == len(rows)
    assert sum(int(cards) for *_, cards in rows) == 52
    assert 51 <= sum(int(swaps) * int(cards) for swaps, *_, cards in rows) <= 102
    assert sum(float(mean) for _, mean, *_ in rows) == pytest.approx(52, abs=0.5)
    even = True
    for _, mean, usual, cards in rows:
        low, high = map(int, usual.split(" to "))
        assert low - 0.5 <= float(mean) <= high + 0.5
        even = even and low <= int(cards) <= high
    verdict = "as even as chance allows ✓" if even else "unusual, as fair ones are"
    await expect(page.locator("#plot-title")).to_contain_text(verdict)


FORGERIES: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "a swap": ("CardsSwapped", 20, {"commit": "00" * 32}, "tape"),
    "a drawn card": ("CardDrawn", 1, {"commit": "00" * 32}, "moves"),
    "a time": ("CardDrawn", 1, {"at": 1}, "form"),
}


@pytest.mark.parametrize("where", ["served", "file"])
@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_bundle_is_reported(
    open_page, axe, tables, tmp_path, one_file, where, forgery
) -> None:
    type_, nth, members, check = FORGERIES[forgery]
    lines = forged(tables[0], type_, nth, signed=True, **members)
    page = await open_page("/audit" if where == "served" else one_file)
    await checked(page, written(lines, tmp_path))
    await expect(
        page.get_by_role("heading", name="Not proved fair: a check failed")
    ).to_be_visible()
    at = CHECKS.index(check)
    found = await answers(page)
    assert found[check] == "failed"
    title = await page.locator(f"[data-check={check}] b").text_content()
    tally = re.compile(f"^[0-6] of 7 checks passed; failed: “{title}”$")
    await expect(page.locator("#verdict-tally")).to_have_text(tally)
    assert [found[one] for one in CHECKS[:at]] == [UNSAVED[one] for one in CHECKS[:at]]
    line = next(
        n for n, (ours, theirs) in enumerate(zip(lines, tables[0].bundle.lines, strict=True))
        if ours != theirs and '"checkpoint"' not in str(ours)
    )  # fmt: skip
    await page.get_by_text(f"Show line {line}").click()
    await expect(page.locator("#fault-line")).to_have_text(str(lines[line]))
    if check == "form":
        await expect(page.locator("#no-replay")).to_be_visible()
    else:
        await page.keyboard.press("End")
        await moment(page, f"The replay stops here: line {line} is wrong.")
    await axe(page)


async def test_an_unsigned_log_is_reported(open_page, tables, tmp_path) -> None:
    lines = forged(tables[0], "CardDrawn", 1, signed=False, commit="00" * 32)
    page = await open_page("/audit")
    await checked(page, written(lines, tmp_path))
    assert await answers(page) == {
        "form": "passed", "heads": "failed", **dict.fromkeys(CHECKS[2:], "not checked"),
    }  # fmt: skip
    await expect(page.locator("#no-replay")).to_contain_text("Nothing can be replayed")


async def test_withheld_names_are_counted_and_no_fault(open_page, axe, tmp_path) -> None:
    lines = everything().lines()
    opened = openings_of(lines)
    page = await open_page("/audit#round=1&step=start")
    await checked(page, written([line for line in lines if line not in opened], tmp_path))
    assert await answers(page) == UNSAVED
    counted = page.locator("#counted")
    await expect(counted).to_contain_text(f"Names or texts withheld: {len(opened)} (events ")
    await expect(counted).to_contain_text("Cosignatures that are not counted, since their player")
    await expect(page.get_by_text("— (seat 2) sits down.").first).to_be_attached()
    await axe(page)


async def test_a_file_that_other_tools_changed_is_restored(
    open_page, tables, tmp_path, one_file
) -> None:
    bundle = written(tables[0].bundle.lines, tmp_path)
    bundle.write_bytes(gzip.compress(b"\xef\xbb\xbf" + bundle.read_bytes().replace(b"\n", b"\r\n")))
    page = await open_page(one_file)
    await checked(page, bundle)
    assert await answers(page) == UNSAVED
    for sentence in (DECOMPRESSED, UNMARKED, LINE_ENDS):
        await expect(page.locator("#verdict-words")).to_contain_text(sentence[1:])


async def test_a_file_that_is_no_bundle_is_named(open_page, tmp_path, one_file) -> None:
    file = tmp_path / "error.html"
    file.write_text("<!doctype html><title>502 Bad Gateway</title>")
    page = await open_page(one_file)
    await checked(page, file)
    assert (await answers(page))["form"] == "failed"
    await expect(page.locator("#fault-sentence")).to_contain_text("This is an HTML page")


async def test_a_given_key_and_checkpoint_are_used(open_page, tables, tmp_path) -> None:
    played = tables[0]
    page = await open_page("/audit")
    await checked(page, written(played.bundle.lines, tmp_path))
    await expect(page.locator("#against")).to_contain_text("only the key in the bundle")
    await page.get_by_text("The checks", exact=True).click()
    await page.get_by_label("The table’s key").fill("ab" * 32)
    await page.get_by_role("button", name="Check again").click()
    await expect(page.locator("#verdict-title")).to_have_text("Not proved fair: a check failed")
    assert (await answers(page))["heads"] == "failed"
    note = json.loads(str(played.bundle.lines[-1]))["checkpoint"]
    await page.get_by_label("The table’s key").fill(str(played.bundle.key))
    await page.get_by_label("Checkpoints that you saved").fill(note)
    await page.get_by_role("button", name="Check again").click()
    await expect(page.locator("#verdict-title")).to_have_text("The shuffle is fair")
    await expect(page.locator("#against")).to_contain_text("the table’s key that you gave")
    await expect(page.locator("#against")).to_contain_text("1 checkpoint that you gave")
    await page.get_by_label("The table’s key").fill("nonsense")
    await page.get_by_role("button", name="Check again").click()
    await expect(page.locator("#known-problem")).to_have_text("A key is 64 hex digits.")


PLAY = """async () => {
  const { browserStore, connect } = await import("/client.js");
  const house = await connect(null, { name: "Ada", store: browserStore() });
  const table = await house.open({ rules: { watch: "nobody", entropy: "players" } });
  await house.join(table);
  await table.roundOpen();
  await table.shuffle();
  await table.draw(2);
  await table.roundClose();
  await house.close();
  return table.id;
}"""


TAMPER = """([table, name, other]) => {
  const key = `dealer/${table}/${name}`;
  const kept = JSON.parse(localStorage.getItem(key));
  const changed = Array.isArray(other) ? other : { ...kept, ...other };
  localStorage.setItem(key, JSON.stringify(changed));
  return kept;
}"""


async def test_the_stored_key_token_and_heads_are_used(open_page) -> None:
    """The token gives access to a private bundle; the key and the heads are checked."""
    page = await open_page("/audit")
    table = await page.evaluate(PLAY)
    await page.goto(f"/tables/{table}/audit")
    await checked(page)
    assert await answers(page) == PASSED
    await expect(page.locator("#against")).to_contain_text("which this browser stored")
    await expect(page.locator("#against")).to_contain_text("that this browser stored")
    heads = await page.evaluate(TAMPER, [table, "heads", [{"note": "no note at all"}]])
    await page.reload()
    await checked(page)
    assert (await answers(page))["saved"] == "failed"
    await page.evaluate(TAMPER, [table, "heads", heads])
    await page.evaluate(TAMPER, [table, "seat", {"key": "ab" * 32}])
    await page.reload()
    await checked(page)
    assert (await answers(page))["heads"] == "failed"
    visitor = await open_page("/audit")
    visitor.errors.expect("401")
    await visitor.goto(f"/tables/{table}/audit")
    await expect(visitor.get_by_role("alert").first).to_contain_text(
        "Only players of this table may check its game"
    )
    await expect(visitor.locator("#file")).to_be_visible()


async def test_an_open_round_cannot_be_replayed(open_page, axe, tables, tmp_path) -> None:
    page = await open_page("/audit#round=2")
    await checked(page, written(tables[1].bundle.lines, tmp_path))
    await expect(page.locator("#no-replay")).to_contain_text("This round is not closed.")
    await expect(page.locator("#verdict-words")).to_contain_text("The last deal is not finished")
    await axe(page)
    await page.select_option("#round", "1")
    await moment(page, "were sealed, each in its slot")
    await expect(page.get_by_role("button", name="Shuffle 2 (top 3)")).to_be_visible()


async def test_a_downloaded_page_works_without_a_server(
    open_page, axe, server, played, tmp_path
) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=17")
    await checked(page)
    kept = {}
    for name in ("Download the game", "Audit page alone", "Game and audit page"):
        async with page.expect_download() as download:
            await page.get_by_role("button", name=name, exact=True).click()
        kept[name] = tmp_path / f"{name} {(await download.value).suggested_filename}"
        await (await download.value).save_as(kept[name])
    bundle = await server.bundle(played)
    assert kept["Download the game"].read_bytes() == bundle
    assert kept["Audit page alone"].read_bytes() == await server.fetch("/audit.html")
    await server.close()

    both = kept["Game and audit page"]
    home = await open_page(both.as_uri() + "#round=1&step=17", offline=True)
    await checked(home)
    assert await answers(home) == UNSAVED
    await moment(home, "Swap 18 of 51")
    await home.keyboard.press("ArrowRight")
    await home.wait_for_url("**#round=1&k=0&step=18")
    await axe(home)
    async with home.expect_download() as download:
        await home.get_by_role("button", name="Game and audit page").click()
    again = tmp_path / "again.html"
    await (await download.value).save_as(again)
    third = await open_page(again.as_uri())
    await checked(third)
    assert await answers(third) == UNSAVED
    async with third.expect_download() as download:
        await third.get_by_role("button", name="Download the game", exact=True).click()
    await (await download.value).save_as(tmp_path / "last.jsonl")
    assert (tmp_path / "last.jsonl").read_bytes() == bundle


async def test_a_bundle_inside_the_page_keeps_all_bytes(
    open_page, tables, tmp_path, one_file
) -> None:
    """It keeps bytes that would end a script element, and bytes that are not UTF-8."""
    bundle = tmp_path / "odd.jsonl"
    bundle.write_bytes(b'</script><!-- <script>\r\n\x00\xff\xfe{"a":1}')
    page = await open_page(one_file)
    await checked(page, bundle)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Game and audit page").click()
    odd = tmp_path / "odd.html"
    await (await download.value).save_as(odd)
    other = await open_page(odd.as_uri())
    await checked(other)
    async with other.expect_download() as download:
        await other.get_by_role("button", name="Download the game", exact=True).click()
    await (await download.value).save_as(tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == bundle.read_bytes()


async def test_a_damaged_bundle_inside_the_page_is_reported(open_page, tables, tmp_path) -> None:
    before, body, after = audit_page().page.decode().rpartition("</body>")
    inside = '<script type="text/plain" id="bundle">eyJidW5kbGUi…</script>\n'
    damaged = tmp_path / "damaged.html"
    damaged.write_text(before + inside + body + after)
    page = await open_page(damaged.as_uri())
    await expect(page.get_by_role("alert").first).to_contain_text("inside this page is damaged")
    await expect(page.locator("#busy")).to_be_hidden()
    await checked(page, written(tables[0].bundle.lines, tmp_path))  # another bundle can be opened
    assert await answers(page) == UNSAVED


async def test_a_bundle_can_be_dropped(open_page, tables, one_file) -> None:
    page = await open_page(one_file)
    text = "\n".join(map(str, tables[2].bundle.lines)) + "\n"
    await page.evaluate(
        """text => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "bundle.jsonl"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
        }""",
        text,
    )
    await checked(page)
    assert await answers(page) == UNSAVED
    await expect(page.locator("[data-stack=deck] .card")).to_have_count(104)


@pytest.mark.reuse_pages(False)
async def test_without_webcrypto_no_result_is_shown(open_page, tables, tmp_path) -> None:
    """Over plain http from another computer the page explains this and offers a download."""
    page = await open_page("/audit")
    await page.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined });")
    await page.reload()
    await page.set_input_files("#file", written(tables[0].bundle.lines, tmp_path))
    await expect(page.get_by_role("alert").first).to_contain_text("nothing can be checked here")
    await expect(page.locator("#verdict")).to_be_hidden()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Game and audit page").click()
    await (await download.value).save_as(tmp_path / "both.html")
    home = await open_page((tmp_path / "both.html").as_uri())
    await checked(home)
    assert await answers(home) == UNSAVED


async def test_the_title_has_the_names_of_table_and_game_and_the_deal(
    open_page, server, tables, tmp_path
) -> None:
    rules = {"game": "hearts", "name": "a rule"}
    async with await connect(server.url, name="Ada") as house:
        opened = await house.open(name="Ada’s table", rules=rules)
        table = await house.join(opened.id)
        for _ in range(2):
            await table.round_open()
            await table.shuffle()
            await table.round_close()
    page = await open_page(f"/tables/{opened.id}/audit#round=2")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text("Audit Ada’s table · Hearts · deal 2")
    await expect(page).to_have_title("Audit: Ada’s table · dealer")
    await page.select_option("#round", "1")
    await expect(heading).to_have_text("Audit Ada’s table · Hearts · deal 1")


async def test_a_replay_starts_with_the_shuffled_deck(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit")
    await checked(page)
    await moment(page, "Shuffle 1 is done")
    await expect(page.get_by_role("button", name="Shuffle 1")).to_have_attribute(
        "aria-current", "true"
    )
    assert len(await deck(page)) == 52
    assert (await deck(page))[:2] != ["ace of spades", "two of spades"]


async def test_what_a_download_is_for_is_said(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit")
    await checked(page)
    for name, purpose in {
        "Download the game": "to keep, to send",
        "Game and audit page": "replays this game without a network",
        "Audit page alone": "the files of other games",
    }.items():
        button = page.get_by_role("button", name=name, exact=True)
        await expect(button).to_have_accessible_description(re.compile(purpose))


async def test_the_layout_follows_a_rotated_phone(open_page, tables, tmp_path) -> None:
    page = await open_page("/audit#round=1&step=9", size=PHONE)
    await checked(page, written(tables[0].bundle.lines, tmp_path))
    await moment(page, "Swap 10 of 51")
    narrow = """() => {
      const boxes = [...document.querySelectorAll("[data-stack=deck] .card")].map(
        (one) => one.getBoundingClientRect());
      return new Set(boxes.map(({ top }) => Math.round(top))).size === 7
        && boxes.every(({ width }) => width > 28);
    }"""
    wide = narrow.replace("=== 7", "=== 4")
    await page.wait_for_function(narrow)
    await page.set_viewport_size({"width": PHONE["height"], "height": PHONE["width"]})
    await page.wait_for_function(wide)
    await page.set_viewport_size(PHONE)
    await page.wait_for_function(narrow)
    assert await fits(page)


async def test_a_permalink_scrolls_past_the_checks_on_a_phone(open_page, played) -> None:
    page = await open_page(f"/tables/{played}/audit#round=1&step=9", size=PHONE)
    await expect(page.locator("#moment")).to_be_in_viewport()


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_every_moment_fits_a_phone(open_page, axe, tables, tmp_path, number) -> None:
    page = await open_page("/audit", size=PHONE)
    assert await fits(page)
    await checked(page, written(tables[number].bundle.lines, tmp_path))
    assert await fits(page)
    await axe(page)
    for key in ("PageDown", "PageDown", "PageDown", "End", "ArrowLeft"):
        before = await page.locator("#count").text_content()
        await page.keyboard.press(key)
        await expect(page.locator("#count")).not_to_have_text(before)
        assert await fits(page), await page.locator("#moment").text_content()
    await axe(page)
