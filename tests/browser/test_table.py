"""The table page, in real browsers with a real server."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conftest import PHONE
from tests.browser.geometry import resize
from tests.browser.prepared_table import prepared_table
from tests.browser.table_page import (
    answer,
    choose_game,
    close_round,
    codes,
    expect_log,
    holds,
    open_table,
    own_cards,
    own_hand,
    place,
    player,
    sit_down,
    start_round,
    tool,
)

pytestmark = pytest.mark.reuse_pages


async def come_to(open_page, paths: list[str]) -> tuple[Page, Page]:
    ada, bob = await open_page(paths[0]), await open_page(paths[1], size=PHONE, has_touch=True)
    for page, other in ((ada, "Bob"), (bob, "Ada")):
        await expect(player(page, other)).to_have_accessible_name(re.compile("here$"))
    return ada, bob


@pytest_asyncio.fixture(loop_scope="session")
async def two(open_page, server) -> tuple[Page, Page]:
    """The pages of Ada, who is the host, and of Bob on a phone; no round is open."""
    paths = await prepared_table(server, ("Ada", "Bob"), deal=None)
    return await come_to(open_page, paths)


@pytest_asyncio.fixture(loop_scope="session")
async def dealt(open_page, server) -> tuple[Page, Page]:
    """Ada and Bob, with five cards each; clients have shuffled and dealt."""
    paths = await prepared_table(server, ("Ada", "Bob"), deal=5)
    ada, bob = await come_to(open_page, paths)
    for page in (ada, bob):
        await expect(own_cards(page)).to_have_count(5)
    return ada, bob


@pytest_asyncio.fixture(loop_scope="session")
async def joined(open_page) -> tuple[Page, Page]:
    """The pages of Ada, who opened the table, and of Bob, who joined by the link on a phone."""
    ada = await open_page("/")
    link = await open_table(ada, "Ada")
    bob = await open_page(link, size=PHONE, has_touch=True)
    await sit_down(bob, "Bob")
    await expect_log(ada, "Bob sat down at seat 2.")
    return ada, bob


@pytest_asyncio.fixture(loop_scope="session")
async def dealt_by_pages(joined: tuple[Page, Page]) -> tuple[Page, Page]:
    """The same, with five cards each: the random bytes are those of the pages."""
    ada, bob = joined
    await start_round(ada)
    await ada.keyboard.press("5")
    await tool(ada, "Deal").click()
    await expect(own_cards(ada)).to_have_count(5)
    await expect(own_cards(bob)).to_have_count(5)
    return ada, bob


async def test_the_invitation_is_removed_from_the_address(joined) -> None:
    _, bob = joined
    assert "#" not in bob.url
    assert "invite" not in await bob.evaluate("location.href")


async def test_every_state_of_the_page_is_accessible(open_page, axe) -> None:
    ada = await open_page("/")
    link = await open_table(ada, "Ada")
    bob = await open_page(link, size=PHONE)
    await expect(bob.get_by_role("button", name="Sit down")).to_be_visible()
    await axe(bob)
    await sit_down(bob, "Bob")
    await axe(ada)
    await start_round(ada)
    await ada.keyboard.press("5")
    await ada.keyboard.press("a")
    await expect(own_cards(bob)).to_have_count(5)
    await own_cards(ada).first.click()
    for page in (ada, bob):
        await axe(page)
    for key in ("?", "i", "m", "z"):
        await ada.keyboard.press(key)
        await expect(ada.get_by_role("dialog")).to_be_visible()
        await axe(ada)
        await ada.keyboard.press("Escape")
    await close_round(ada)
    await expect_log(bob, "Round 1 was closed")
    for page in (ada, bob):
        await axe(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_colours_have_enough_contrast(open_page, axe, scheme) -> None:
    page = await open_page("/", color_scheme=scheme)
    await axe(page)
    await open_table(page, "Ada")
    await start_round(page)
    await page.keyboard.press("d")
    await expect(own_cards(page)).to_have_count(1)
    await axe(page)


async def test_dealt_cards_are_seen_only_by_their_player(dealt_by_pages) -> None:
    ada, bob = dealt_by_pages
    assert not set(await codes(ada)) & set(await codes(bob))
    await holds(ada, "hand:2", 5)
    await holds(ada, "deck", 42)
    await expect(place(ada, "hand:2").locator('[data-face="up"]')).to_have_count(0)
    await expect_log(bob, "5 cards were dealt to each of 2 players; you got")


async def test_cards_are_drawn_discarded_played_and_returned(dealt) -> None:
    ada, bob = dealt
    await bob.get_by_role("button", name=re.compile("^Deck, 42 cards")).click()
    await expect(own_cards(bob)).to_have_count(6)
    await expect_log(ada, "Bob drew 1 card.")

    played, discarded, returned = (await codes(ada))[:3]
    await own_cards(ada).nth(0).click()
    await tool(ada, "Play").click()
    await expect(place(bob, "pile:table").locator(f'[data-card="{played}"]')).to_be_visible()
    await expect(own_cards(ada)).to_have_count(4)
    await own_cards(ada).nth(0).click()
    await ada.keyboard.press("x")
    await expect(own_cards(ada)).to_have_count(3)
    await holds(bob, "pile:discard", 1)
    await expect(place(bob, "pile:discard").locator('[data-face="up"]')).to_have_count(0)
    await own_cards(ada).nth(0).click()
    await ada.keyboard.press("r")
    await expect(own_cards(ada)).to_have_count(2)
    await holds(bob, "deck", 42)
    assert not {played, discarded, returned} & set(await codes(ada))


async def test_cards_are_given_to_another_player_and_shown(dealt) -> None:
    ada, bob = dealt
    given, kept = (await codes(ada))[:2]
    await own_cards(ada).nth(0).click()
    await player(ada, "Bob").click()
    await answer(ada, "Give")
    await expect(own_hand(bob).locator(f'[data-card="{given}"]')).to_be_visible()
    await own_cards(ada).nth(0).click()
    await ada.keyboard.press("h")
    await expect(place(bob, "hand:1").locator(f'[data-card="{kept}"]')).to_be_visible()
    assert kept in await codes(ada)


async def test_cards_are_dragged_onto_stacks_and_within_the_hand(dealt) -> None:
    ada, bob = dealt
    before = await codes(ada)
    await own_cards(ada).nth(0).drag_to(own_cards(ada).nth(4), target_position={"x": 60, "y": 40})
    await expect(own_cards(ada).nth(4).locator(".card")).to_have_attribute("data-card", before[0])
    assert await codes(ada) == [*before[1:], before[0]]
    await own_cards(ada).nth(1).drag_to(place(ada, "pile:table"))
    await expect(place(bob, "pile:table").locator(f'[data-card="{before[2]}"]')).to_be_visible()
    await own_cards(ada).nth(0).drag_to(place(ada, "hand:2"))
    await answer(ada, "Give")
    await expect(own_hand(bob).locator(f'[data-card="{before[1]}"]')).to_be_visible()
    await place(ada, "deck").drag_to(own_hand(ada))
    await expect(own_cards(ada)).to_have_count(4)
    await place(ada, "deck").drag_to(place(ada, "pile:burn"))
    await holds(bob, "pile:burn", 1)


async def test_the_deck_is_cut_shuffled_again_and_collected(dealt_by_pages) -> None:
    ada, bob = dealt_by_pages
    await ada.keyboard.press("c")
    await expect_log(bob, "The deck was cut.")
    await ada.keyboard.press("s")
    await expect_log(bob, "Shuffled 42 cards, by the house, Ada and you.")
    # While a page has not yet heard the end of a shuffle, it refuses every move of cards.
    await expect_log(ada, re.compile("^Shuffled 42 cards, by the house, "))
    await ada.keyboard.press("k")
    await holds(bob, "deck", 52)


AT_ONCE = """(inputs) => {
  const cards = [...document.querySelectorAll("#hand [data-slot]")];
  for (const one of inputs) {
    if (typeof one === "number") cards[one].click();
    else document.dispatchEvent(new KeyboardEvent("keydown", { key: one }));
  }
  return document.querySelector("dialog[open]")?.getAttribute("class") ?? null;
}"""
"""Press keys, and tap cards by their index, before any of them takes effect."""


async def test_actions_run_one_after_the_other(dealt_by_pages) -> None:
    """A shuffle that is requested while cards are being collected waits until all are."""
    ada, bob = dealt_by_pages
    await own_cards(ada).nth(0).click()
    await ada.keyboard.press("p")
    await holds(ada, "pile:table", 1)
    # The list of keys opens immediately: dialogs do not wait for actions.
    assert await ada.evaluate(AT_ONCE, ["k", "s", "?"]) == "wide"
    await expect(
        bob.get_by_role("log").get_by_text("Shuffled 52 cards, by the house, Ada")
    ).to_have_count(2)


async def test_an_action_uses_the_selection_at_its_request(dealt) -> None:
    ada, bob = dealt
    played, kept, shown = (await codes(ada))[:3]
    await ada.evaluate(AT_ONCE, [0, "p", 0, 2, "h"])  # the first is played, the third is shown
    await expect(place(bob, "pile:table").locator(f'[data-card="{played}"]')).to_be_visible()
    await expect(place(bob, "hand:1").locator(f'[data-card="{shown}"]')).to_be_visible()
    await expect(place(bob, "hand:1").locator(f'[data-card="{kept}"]')).to_have_count(0)


async def test_the_order_of_a_hand_survives_a_reload(two) -> None:
    ada, _ = two
    await start_round(ada)
    await ada.keyboard.press("7")
    await ada.keyboard.press("d")
    await expect(own_cards(ada)).to_have_count(7)
    await own_cards(ada).nth(2).focus()
    third = (await codes(ada))[2]
    await ada.keyboard.press("Alt+ArrowLeft")
    await ada.keyboard.press("Alt+Home")
    assert (await codes(ada))[0] == third
    order = await codes(ada)
    await ada.reload()
    await expect(own_cards(ada)).to_have_count(7)
    assert await codes(ada) == order
    await ada.keyboard.press("t")
    await expect(ada.get_by_role("button", name="Suit", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    suits = [code[1] for code in await codes(ada)]
    assert suits == sorted(suits, key="shcd".index)


async def test_impossible_actions_are_hidden_or_give_their_reason(two) -> None:
    ada, bob = two
    await expect(ada.get_by_role("toolbar")).to_be_hidden()  # between rounds
    await ada.keyboard.press("d")
    await expect(ada.get_by_role("alert")).to_have_text("No round is open yet.")
    await start_round(ada)
    await ada.keyboard.press("p")
    await expect(ada.get_by_role("alert")).to_have_text("Your hand is empty.")
    await expect(tool(ada, "Draw")).not_to_have_attribute("aria-disabled", "true")
    await expect(tool(ada, "Play")).to_have_attribute("aria-disabled", "true")
    await expect(tool(ada, "Play")).to_have_accessible_description("Your hand is empty.")
    await expect(tool(ada, "Deal")).to_have_class(re.compile("primary"))  # the next step
    await expect(ada.get_by_role("toolbar").locator(".primary")).to_have_count(1)
    await expect(tool(bob, "Deal")).to_have_count(0)


async def test_the_number_of_cards_is_reset_after_its_use(two) -> None:
    ada, _ = two
    await ada.keyboard.press("3")
    await ada.keyboard.press("d")
    await expect(ada.get_by_role("alert")).to_have_text("No round is open yet.")
    await start_round(ada)
    await expect(ada.get_by_role("group", name="How many cards: 3")).to_be_visible()
    await ada.keyboard.press("d")
    await expect(own_cards(ada)).to_have_count(3)
    await expect(ada.get_by_role("group", name="How many cards: 1")).to_be_visible()


async def test_the_log_unfolds_over_the_table_on_a_phone(dealt) -> None:
    ada, _ = dealt
    await resize(ada, (PHONE["width"], PHONE["height"]))
    middle, unfold = ada.locator("#middle"), ada.get_by_role("button", name="Log", exact=True)
    await expect(unfold).to_be_visible()  # the layout of a phone
    before = await middle.bounding_box()
    await unfold.click()
    await expect(ada.get_by_role("log").get_by_text("The table was opened.")).to_be_in_viewport()
    after = await middle.bounding_box()
    assert all(abs(after[side] - before[side]) < 0.5 for side in before)  # parts of a pixel
    await ada.get_by_role("button", name="Show less").click()
    await expect(ada.get_by_role("log").get_by_text("The table was opened.")).to_be_hidden()


async def test_the_badge_lists_the_checks(dealt_by_pages) -> None:
    ada, _ = dealt_by_pages
    mark = ada.get_by_role(
        "button", name=re.compile("Checked by this browser: all 7 checks passed")
    )
    await expect(mark).to_be_visible()
    await mark.click()
    checks = ada.get_by_role("dialog").get_by_role("listitem")
    await expect(checks).to_have_count(8)
    await expect(checks.first).to_contain_text("random bytes went into the shuffle")


async def test_the_badge_shows_a_house_only_round(open_page, axe) -> None:
    ada = await open_page("/")
    await choose_game(ada)
    await ada.get_by_text("Choose deck, seats and rules").click()
    await ada.get_by_label("Random bytes").select_option("house")
    await open_table(ada, "Ada")
    await start_round(ada)
    await ada.keyboard.press("d")
    badge = ada.locator("button.badge")
    await expect(badge).to_have_attribute("data-state", "house")
    await expect(badge).to_have_text(
        "Shuffled by the house alone This round uses the house’s random bytes only; "
        "the 6 other checks passed"
    )
    await axe(ada)
    await close_round(ada)
    await expect(badge).to_have_text(
        "Shuffled by the house alone This round uses the house’s random bytes only; "
        "the 7 other checks passed"
    )


async def test_a_closed_round_links_to_its_audit_and_bundle(dealt_by_pages) -> None:
    ada, bob = dealt_by_pages
    await close_round(ada)
    for page in (ada, bob):
        await expect_log(page, "Round 1 was closed")
        await expect(
            page.get_by_role("button", name=re.compile("all 8 checks passed"))
        ).to_be_visible()
    await bob.get_by_role("button", name="Menu").click()
    async with bob.expect_download() as download:
        await bob.get_by_role("link", name="Download the game").click()
    assert (await download.value).suggested_filename.endswith(".jsonl")
    await ada.get_by_role("link", name="Check the shuffle").click()
    await ada.wait_for_url("**/audit#round=1**")


async def test_a_reload_keeps_seat_and_cards(dealt) -> None:
    _, bob = dealt
    before = await codes(bob)
    await bob.reload()
    await expect(own_cards(bob)).to_have_count(5)
    assert await codes(bob) == before
    await bob.keyboard.press("d")
    await expect(own_cards(bob)).to_have_count(6)


async def test_the_page_reconnects_after_a_server_restart(dealt, server) -> None:
    ada, bob = dealt
    for page in (ada, bob):
        page.errors.expect("WebSocket connection|ERR_CONNECTION|Failed to load")
    await server.close()
    banner = ada.locator("#connection")
    await expect(banner).to_be_visible()
    await expect(tool(ada, "Draw")).to_have_attribute("aria-disabled", "true")
    await server.open()
    await expect(banner).to_have_text("Connected again; you are up to date.", timeout=30_000)
    await ada.keyboard.press("d")
    await expect_log(bob, "Ada drew 1 card.")


async def test_the_presence_of_other_players_is_shown(two) -> None:
    ada, bob = two
    await expect(player(ada, "Bob")).to_have_accessible_name(re.compile("here$"))
    await bob.keyboard.press("Shift+Q")
    await bob.get_by_role("dialog").get_by_role("button", name="Leave your seat").click()
    await expect_log(ada, "Bob left.")
    await expect(player(ada, "Bob")).to_have_accessible_name(re.compile("left the table$"))
    await expect(bob.get_by_role("button", name="Sit down")).to_be_visible()
    await sit_down(bob, "Bob")
    await expect(player(ada, "Bob")).to_have_accessible_name(re.compile("here$"))
    await bob.goto("about:blank")
    await expect(player(ada, "Bob")).to_have_accessible_name(re.compile("disconnected$"))


async def test_a_spectator_sees_only_card_backs(dealt, open_page, axe) -> None:
    ada, _ = dealt
    eve = await open_page(ada.url[ada.url.index("/tables") :])
    await holds(eve, "hand:1", 5)
    await expect(eve.locator('[data-face="up"]')).to_have_count(0)
    await expect(eve.get_by_role("toolbar").get_by_role("button")).to_have_count(0)
    await axe(eve)


async def test_the_four_colour_preference_is_stored(dealt) -> None:
    ada, _ = dealt
    await ada.keyboard.press("z")
    await ada.get_by_label("Four colours").check()
    await ada.keyboard.press("Escape")
    await ada.reload()
    await expect(own_cards(ada)).to_have_count(5)
    assert await ada.evaluate("document.documentElement.classList.contains('four-colour')")


async def test_nothing_is_wider_than_a_phone(dealt) -> None:
    ada, bob = dealt
    await ada.keyboard.press("8")
    await ada.keyboard.press("a")
    await expect(own_cards(bob)).to_have_count(13)
    for selector in ("body", "#felt", "#around", "#tools", "#seats", "#middle"):
        wide = await bob.locator(selector).evaluate("one => one.scrollWidth - one.clientWidth")
        assert wide <= 0, selector


COUNT_ADDED = """() => {
  window.added = 0;
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) window.added += addedNodes.length;
  }).observe(document.querySelector("#overlay"), { childList: true });
}"""


async def test_reduced_motion_has_no_card_animations(open_page) -> None:
    page = await open_page("/", reduced_motion="no-preference")
    await open_table(page, "Ada")
    await start_round(page)
    await page.evaluate(COUNT_ADDED)
    await page.keyboard.press("d")
    await expect(own_cards(page)).to_have_count(1)
    await page.wait_for_function("() => window.added === 1")
    await expect(page.locator("#overlay .card")).to_have_count(0)
    await expect(own_cards(page).locator(".card")).to_be_visible()  # its picture has come

    await page.emulate_media(reduced_motion="reduce")
    await page.keyboard.press("d")
    await expect(own_cards(page)).to_have_count(2)
    assert await page.evaluate("window.added") == 1
