"""Packs and games on a small phone, by touch: opened in the lobby, dealt, named and explained."""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from dealer.client import connect
from dealer.packs.catalogue import shipped
from tests.browser.player_page import PlayerPage
from tests.browser.table_page import (
    LOW,
    choose_game,
    close_invitation,
    close_round,
    codes,
    holds,
    later_deal,
    open_table,
    own_cards,
    place,
    tool,
)
from tests.browser.touch import Fingers
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.reuse_pages

PHONE: dict[str, Any] = {
    "size": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True,
}  # fmt: skip
PACKS, GAMES = shipped()
COME_LATER = ("discard", "burn")
"""Piles that are not drawn before they have a card."""
NEXT_STEP = {
    "blackjack": ["Draw"], "hearts": ["Pass 3 cards to Bob"],
    "holdem": ["End the hand"], "omaha": ["End the hand"],
}  # fmt: skip
"""Of the dealer, once all is dealt; in other games the player to the left has the turn."""
EVIL = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><script>window.evil = 1</script>'
    '<image href="https://evil.example/x.png"/><rect width="9" height="9" onload="evil()"/></svg>'
)


def english(text: Any) -> str:
    return text if isinstance(text, str) else text["en"]


async def choose(page: Page, field: str, value: str) -> None:
    """Choose an entry of a list, once the server's lists are loaded."""
    if field == "game":
        await page.locator(f'input[name=game][value="{value}"]').check()
        return
    chosen = page.locator(f"select[name={field}]")
    await chosen.locator(f'option[value="{value}"]').wait_for(state="attached")
    await chosen.select_option(value)


async def open_by_touch(page: Page, field: str, value: str) -> Fingers:
    """Ada opens a table in the lobby with an entry of a list, and starts a round."""
    fingers = await Fingers.on(page)
    await choose_game(page)
    await page.get_by_label("Your name").fill("Ada")
    if field == "deck":
        await fingers.tap(page.get_by_text("Choose deck, seats and rules"))
    await choose(page, field, value)
    await page.get_by_label("Random bytes").select_option("house")
    await page.get_by_role("button", name="Open a table").scroll_into_view_if_needed()
    await fingers.tap(page.get_by_role("button", name="Open a table"))
    await close_invitation(page)
    return fingers


async def open_pack(page: Page, name: str) -> None:
    """Ada opens a table with a pack, by mouse, and starts a round."""
    await choose_game(page)
    await page.get_by_label("Your name").fill("Ada")
    await page.get_by_text("Choose deck, seats and rules").click()
    await choose(page, "deck", f"pack:{name}")
    await page.get_by_role("button", name="Open a table").click()
    await close_invitation(page)
    await start(page, await Fingers.on(page))


async def start(page: Page, fingers: Fingers) -> None:
    await fingers.tap(page.get_by_role("button", name=re.compile("^Shuffle and ")))
    log = page.get_by_role("log")
    await expect(log.get_by_text(re.compile("^Shuffled")).last).to_be_attached()


@pytest.mark.parametrize("name", PACKS)
async def test_a_table_shows_the_cards_of_its_pack(server, open_page, axe, name) -> None:
    page = await open_page("/", **PHONE)
    fingers = await open_by_touch(page, "deck", f"pack:{name}")
    await start(page, fingers)
    for _ in range(11):
        await page.get_by_role("button", name="More cards").click()
    await fingers.tap(tool(page, "Draw"))
    await expect(own_cards(page)).to_have_count(12)
    pack = PACKS[name]
    drawn = page.locator(f'#hand .card[data-pack="{name}"]')
    await expect(drawn).to_have_count(12)
    named = {
        english(card["name"])
        if "name" in card
        else english(pack["named"])
        .replace("{rank}", english(rank_of(pack, card)["name"]))
        .replace("{suit}", english(suit_of(pack, card)["name"]))
        for card in pack["cards"].values()
    }
    for card in await drawn.all():
        assert await card.get_attribute("aria-label") in named
    # The index of every card is in the strip that the next card leaves free.
    assert await page.evaluate(UNCOVERED) == []
    await axe(page)


UNCOVERED = """() => {
  const cards = [...document.querySelectorAll("#hand .card")];
  const left = (one) => one.getBoundingClientRect().left;
  return cards.slice(0, -1).filter((card, n) => {
    const index = card.querySelector(".corner .rank").getBoundingClientRect();
    return index.width === 0 || index.right > left(cards[n + 1]) + 2;
  }).map((card) => card.dataset.card);
}"""


def suit_of(pack: dict[str, Any], card: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in pack["suits"] if one["suit"] == card["suit"])
    return found


def rank_of(pack: dict[str, Any], card: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in pack["ranks"] if one["rank"] == card["rank"])
    return found


async def test_a_hand_is_sorted_in_the_order_of_the_pack(server, open_page) -> None:
    page = await open_page("/")
    await open_pack(page, "german-32")
    await page.keyboard.press("9")
    await tool(page, "Draw").click()
    await expect(page.locator("#hand .card[data-pack]")).to_have_count(9)
    order = list(PACKS["german-32"]["cards"])
    await page.get_by_role("button", name="Suit", exact=True).click()
    await expect(page.locator("#announcer")).to_have_text(re.compile("Sorted by suit"))
    hand = await codes(page)
    assert hand == sorted(hand, key=order.index)


@pytest.mark.parametrize("name", GAMES)
async def test_a_game_is_set_up_dealt_and_explained(server, open_page, axe, name) -> None:
    game = GAMES[name]
    page = await open_page("/", **PHONE)
    fingers = await open_by_touch_game(page, name)
    # The help card is offered before the first card is dealt, and closes again.
    title = f"How to play: {english(game['title'])}"
    await fingers.tap(page.get_by_role("button", name=title))
    card = page.get_by_role("dialog", name=english(game["title"]))
    await expect(card.get_by_role("listitem")).to_have_text([english(t) for t in game["help"]])
    await axe(page)
    await fingers.tap(card.get_by_role("button", name="Close"))
    async with AsyncExitStack() as stack:
        await others_sit_down(stack, server, page, game["players"]["min"] - 1)
        await start(page, fingers)  # which deals at once
        await expect(own_cards(page)).to_have_count(game["deal"][0]["each"][0][1])
    for pile in game["piles"]:
        if "{seat}" in pile["name"]:
            continue
        shown = place(page, f"pile:{pile['name']}")
        if pile["name"] in COME_LATER:
            await expect(shown).to_be_hidden()
            continue
        await expect(shown.locator(".name")).to_have_text(english(pile["title"]))
        await shown.scroll_into_view_if_needed()
    counts: dict[str, int] = {}
    for pile in game["deal"][0]["piles"]:
        counts[pile["name"]] = counts.get(pile["name"], 0) + pile["count"]
    for pile_name, count in counts.items():
        await holds(page, f"pile:{pile_name}", count)
    steps = page.get_by_role("toolbar").locator(".primary")
    # A deal is not filled while others bet.
    later = page.get_by_role("toolbar").locator('[data-action="deal"]')
    for deal in game["deal"][1:]:
        await expect(later).to_have_text(english(deal["title"]))
        await page.keyboard.press("a")  # two taps on one button in quick succession are one
    await expect(steps).to_have_text(NEXT_STEP.get(name, []))
    for label in await page.get_by_role("toolbar").get_by_role("button").all():
        await expect(label).not_to_have_text("")
    await fingers.tap(page.get_by_role("button", name="Menu"))
    await expect(page.get_by_role("dialog").get_by_role("button", name=title)).to_be_visible()


async def others_sit_down(
    stack: AsyncExitStack, server: ServerProcess, page: Page, others: int
) -> None:
    """Clients take seats at the table of a page: a game is dealt to as many players as it needs."""
    for name in ("Bob", "Cleo", "Dan")[:others]:
        house = await stack.enter_async_context(connect(server.url, name=name))
        await house.join(page.url.rpartition("/")[2])
    await expect(page.locator("button.seat")).to_have_count(others)


async def open_by_touch_game(page: Page, name: str) -> Fingers:
    fingers = await Fingers.on(page)
    await choose(page, "game", name)
    await page.get_by_label("Your name").fill("Ada")
    button = page.get_by_role("button", name=re.compile("^Play "))
    await button.scroll_into_view_if_needed()
    await fingers.tap(button)
    if GAMES[name]["players"]["min"] > 1:
        await close_invitation(page)
    return fingers


async def test_the_next_deal_follows_from_the_board(server, open_page) -> None:
    page = await open_page("/", **PHONE)
    fingers = await open_by_touch_game(page, "holdem")
    async with AsyncExitStack() as stack:
        await others_sit_down(stack, server, page, 1)
        await start(page, fingers)
        await expect(own_cards(page)).to_have_count(2)
    board = place(page, "pile:board")
    for label, cards in (("Flop", 3), ("Turn", 4), ("River", 5)):
        await expect(tool(page, later_deal(label))).to_be_visible()
        await page.keyboard.press("a")  # two taps on one button in quick succession are one
        await expect(board.locator(".card[data-face=up]")).to_have_count(cards)
    await holds(page, "pile:burn", 3)
    await fingers.tap(page.get_by_role("button", name="More…"))
    await fingers.tap(page.get_by_role("dialog").get_by_role("button", name="Shuffle"))
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_player_who_comes_during_a_round_is_offered_the_help_once(
    server, open_page, axe
) -> None:
    ada = await open_page("/")
    await choose(ada, "game", "hearts")
    await ada.get_by_label("Your name").fill("Ada")
    await ada.get_by_role("button", name="Play Hearts").click()
    await close_invitation(ada)
    async with AsyncExitStack() as stack:
        await others_sit_down(stack, server, ada, 3)
        await start(ada, await Fingers.on(ada))
        await expect(own_cards(ada)).to_have_count(13)
    size = {"size": {"width": 360, "height": LOW + 40}}
    eve = PlayerPage(await open_page(ada.url[ada.url.index("/tables") :], **PHONE | size), "Eve")
    await eve.sit_down()
    offer = eve.page.locator("#notice").get_by_role("button", name="How to play: Hearts")
    await expect(offer).to_be_visible()
    await axe(eve.page)
    await eve.page.emulate_media(color_scheme="dark")
    await axe(eve.page)
    dark = "(one) => getComputedStyle(one).backgroundColor"
    assert await eve.page.locator("#notice").evaluate(dark) == "rgb(61, 50, 18)"
    await eve.page.reload()  # without an answer: it is not offered again
    await expect(place(eve.page, "pile:table").locator(".name")).to_have_text("Trick")
    await expect(eve.page.locator("#notice")).to_be_hidden()


async def test_court_cards_have_pictures_and_keep_their_index(server, open_page) -> None:
    page = await open_page("/")
    court = page.locator('.fan .card[data-card="Kd"]')
    await page.wait_for_function(
        """(card) => getComputedStyle(card.querySelector(".middle"), "::after")
          .backgroundImage.includes("cards/Kd.svg")""",
        arg=await court.element_handle(),
    )
    await expect(court.locator(".corner .rank").first).to_have_attribute("data-sign", "K")


async def test_a_table_is_listed_only_when_its_host_asks(server, open_page) -> None:
    for name, listed in (("Quentin", False), ("Xenia", True)):
        page = await open_page("/")
        await choose_game(page)
        await page.get_by_text("Choose deck, seats and rules").click()
        if listed:
            await page.get_by_label("Show this table in the list").check()
        await open_table(page, name)
    visitor = await open_page("/")
    await expect(visitor.get_by_role("link", name="Xenia’s table")).to_be_visible()
    await expect(visitor.get_by_role("link", name="Quentin’s table")).to_have_count(0)


async def test_pictures_of_a_strangers_pack_run_no_script(
    open_page, server, tmp_path: Path
) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    cards = {"红中": {"name": "<b>red</b>", "svg": EVIL}, "a": {"name": "x", "svg": EVIL}}
    (packs / "evil.json").write_text(json.dumps({"title": "<i>Evil</i>", "cards": cards}))
    folder = tmp_path / "own"
    folder.mkdir()
    async with ServerProcess(folder, packs=packs) as own:
        page = await open_page("/", at=own.port)
        await choose_game(page)
        await page.get_by_label("Your name").fill("Ada")
        await page.get_by_text("Choose deck, seats and rules").click()
        await choose(page, "deck", "pack:evil")
        await page.get_by_role("button", name="Open a table").click()
        await close_invitation(page)
        await page.get_by_role("button", name="Shuffle and start").click()
        await page.keyboard.press("2")
        await tool(page, "Draw").click()
        cards_drawn = page.locator("#hand .card[data-pack=evil]")
        await expect(cards_drawn).to_have_count(2)
        assert sorted(await codes(page)) == ["1", "2"]
        labels = [await one.get_attribute("aria-label") for one in await cards_drawn.all()]
        assert sorted(labels) == ["<b>red</b>", "x"]
        assert await page.evaluate("window.evil") is None
        loaded = "(one) => one.complete && one.naturalWidth > 0"
        picture = page.locator("#hand .card img").first
        assert await picture.evaluate(loaded)
        await page.goto("about:blank")  # the server ends before the page


async def test_the_audit_page_names_cards_by_the_pack(server, open_page) -> None:
    page = await open_page("/")
    await open_pack(page, "spanish-40")
    await close_round(page)
    await page.get_by_role("link", name="Check the shuffle").click()
    await expect(page.locator("#replay .card[data-pack='spanish-40']").first).to_be_visible()
    await expect(page.get_by_role("img", name="king of coins").first).to_be_visible()


async def test_a_new_pile_has_a_title_in_any_script(server, open_page) -> None:
    page = await open_page("/")
    await open_table(page, "Ada")
    await page.get_by_role("button", name="Shuffle and start").click()
    await tool(page, "Draw").click()
    await own_cards(page).first.click()
    await page.keyboard.press("Shift+P")
    await page.get_by_label("Name of a new pile").fill("弃牌 links")
    await page.get_by_role("button", name="Play there").click()
    pile = page.locator('[data-stack^="pile:~"]')
    await expect(pile.locator(".name")).to_have_text("弃牌 links")
    await expect(page.get_by_role("log")).to_contain_text("onto “弃牌 links”")
    await page.reload()
    await expect(pile.locator(".name")).to_have_text("弃牌 links")
