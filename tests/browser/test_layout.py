"""Where things are on the table, at all sizes of screens, for any number of players and cards."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.crowd import Crowd, crowd, has_cards
from tests.browser.geometry import covered_cards, problems
from tests.browser.table_page import codes, own_cards, place, player, sit_down

pytestmark = pytest.mark.reuse_pages

SMALL = {"width": 360, "height": 640}
TOUCH: dict[str, Any] = {"size": SMALL, "has_touch": True, "is_mobile": True}


async def expect_no_problems(page: Page) -> None:
    found = await problems(page)
    assert not found, "\n".join(found)


@pytest.fixture
def others() -> int:
    return 2


@pytest_asyncio.fixture(loop_scope="session")
async def full(server: Any, others: int) -> AsyncIterator[Crowd]:
    """A table at which `others` Python clients sit."""
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(crowd(server, others))


@pytest_asyncio.fixture(loop_scope="session")
async def me(full: Crowd, open_page: Any) -> Page:
    """The page of the last player, on a phone; a round is open."""
    page: Page = await open_page(full.path, **TOUCH)
    await sit_down(page, "Mo")
    await full.start()
    return page


@pytest.mark.parametrize("others", [1, 5, 9])
async def test_the_own_hand_is_on_the_screen_and_nothing_overlaps(
    full: Crowd, me: Page, others: int
) -> None:
    own = others + 1
    for count in (1, 13):
        await full.host.deal(count - len(await codes(me)), seats=[own])
        await has_cards(me, count)
        await expect_no_problems(me)
    for number in range(9):
        await full.pile("table" if number == 0 else f"pile-{number}", 2 if number == 0 else 1)
    await full.host.deal(12, seats=[own])
    await has_cards(me, 25)
    await full.host.deal(1)
    await has_cards(me, 26)
    await expect_no_problems(me)
    await full.host.round_close()
    await full.start()
    await full.host.deal(52, seats=[own])
    await has_cards(me, 52)
    await expect_no_problems(me)


@pytest.mark.parametrize("others", [9])
async def test_marks_shown_cards_and_piles_of_seats_overlap_nothing(full: Crowd, me: Page) -> None:
    await full.host.deal(5)
    await has_cards(me, 5)
    for seat in (1, 2, 7):
        hand = full.players[seat].hand
        await full.players[seat].show(hand[:2])
        await full.players[seat].play(hand[2:4], pile=f"won:{seat}", face="down")
    await full.host.note("turn", "7")
    await full.host.note("dealer_button", "2")
    await full.host.note("score", "2:-15")
    await expect(player(me, "Wolfe.*|WWW.*|Zoë")).to_have_count(3)
    await expect(player(me, "Zoë")).to_have_accessible_name(re.compile("it is their turn"))
    await expect(place(me, "pile:won:7")).to_be_visible()
    await expect_no_problems(me)


async def test_a_refusal_covers_no_card(full: Crowd, me: Page) -> None:
    await full.host.deal(13)
    await has_cards(me, 13)
    await me.keyboard.press("p")
    await expect(me.get_by_role("alert")).to_have_text("Select cards of your hand first.")
    assert await covered_cards(me, "#toast") == []


async def test_the_banner_covers_no_card(full: Crowd, link: Any, open_page: Any) -> None:
    page: Page = await open_page(full.path, at=link.port, **TOUCH)
    page.errors.expect("WebSocket connection|ERR_|Failed to load")  # type: ignore[attr-defined]
    await sit_down(page, "Mo")
    await full.start()
    await full.host.deal(13)
    await has_cards(page, 13)
    await link.cut()
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    assert await covered_cards(page, "#connection") == []
    await expect_no_problems(page)
    await link.mend()
    await expect(page.locator("#connection")).to_contain_text("Connected again", timeout=30_000)
    await page.locator("#connection").evaluate(
        """(banner) => { // the sentence is brief, and looked at in many sizes
          const stay = () => { if (banner.hidden) banner.hidden = false; };
          new MutationObserver(stay).observe(banner, { attributes: true });
          stay();
        }"""
    )
    assert await covered_cards(page, "#connection") == []


async def test_a_card_that_was_given_away_does_not_look_shown(full: Crowd, me: Page) -> None:
    await full.host.deal(3)
    await has_cards(me, 3)
    given = (await codes(me))[0]
    await own_cards(me).nth(0).tap()
    await player(me, "Bo").tap()
    await me.get_by_role("dialog").get_by_role("button", name="Give").tap()
    card = place(me, "hand:1").locator(f'[data-card="{given}"]')
    await expect(card).to_have_attribute("data-face", "down")
    await expect(card).to_have_attribute("data-only-you", re.compile("."))
    await full.host.until(lambda table: given in table.hand)
    await full.host.show([given])
    await expect(card).to_have_attribute("data-face", "up")
    await expect(card).not_to_have_attribute("data-only-you", re.compile(""))


async def test_marks_are_at_their_seats_and_in_their_names(full: Crowd, me: Page) -> None:
    bob = full.players[2]
    for kind, text in (
        ("turn", "2"), ("dealer_button", "3"), ("score", "2:-15"), ("score", "3:120"),
        ("counter", "pot:1200"),
    ):  # fmt: skip
        await bob.note(kind, text)
    seat = me.locator('.seats li:has([data-stack="hand:2"])')
    await expect(seat.locator(".mark.score")).to_have_attribute("data-sign", "-15 pts")
    await expect(seat.locator(".chip > span")).to_have_attribute("data-sign", "M")
    await expect(seat).to_have_attribute("data-turn", "")
    await expect(player(me, "Maxi.*")).to_have_accessible_name(
        re.compile("seat 2, 0 cards, it is their turn, score -15, here$")
    )
    await expect(me.locator(".hand-head .mark.dealer")).to_be_visible()
    await expect(me.locator(".hand-head .mark.score")).to_have_attribute("data-sign", "120 pts")
    await expect(me.get_by_role("listbox")).to_have_accessible_description(
        re.compile("^Your seat: 3, has the dealer button, score 120")
    )
    await expect(me.get_by_role("list", name="Counters")).to_have_text("pot 1,200")
    await bob.note("turn", "3")
    await expect(seat).not_to_have_attribute("data-turn", "")
    await expect(me.locator("#own")).to_have_attribute("data-turn", "")


async def test_a_reaction_is_a_bubble_until_its_seat_acts(full: Crowd, me: Page) -> None:
    bob = full.players[2]
    await bob.note("reaction", "!?")
    bubble = me.locator('.seats li:has([data-stack="hand:2"]) .bubble')
    await expect(bubble).to_have_text("!?")
    await full.host.draw(1)
    await expect(player(me, "Bo")).to_have_accessible_name(re.compile("1 card"))
    await expect(bubble).to_be_visible()
    await bob.draw(1)
    await expect(bubble).to_be_hidden()


async def test_piles_of_a_seat_are_at_the_seat(full: Crowd, me: Page) -> None:
    await full.host.deal(1)
    await full.players[2].call("hand.pass", cards=full.players[2].hand, to=1)
    for name in ("won:2", "seat:3", "side"):
        await full.pile(name, face="down")
    seats = me.locator(".seats")
    await expect(seats.locator('[data-stack="pile:won:2"]')).to_be_visible()
    await expect(seats.locator('[data-stack="pile:pass:1"]')).to_be_visible()
    await expect(me.locator('#own [data-stack="pile:seat:3"]')).to_be_visible()
    await expect(me.locator('#middle [data-stack="pile:side"]')).to_be_visible()
    await expect(me.locator('#middle [data-stack*=":won:"]')).to_have_count(0)
    await expect(place(me, "pile:won:2").get_by_role("button")).to_have_accessible_name(
        re.compile("1 card, at seat 2$")
    )


async def test_the_cards_of_a_closed_round_stay_until_the_next_one(
    full: Crowd, me: Page, axe: Any
) -> None:
    await full.host.deal(4)
    await has_cards(me, 4)
    await full.pile("table", 2, face="down")
    held, laid = await codes(me), place(me, "pile:table").locator('[data-face="up"]')
    await expect(place(me, "pile:table").locator(".card")).to_have_count(2)
    await full.host.round_close()
    shown = place(me, "hand:2").locator('.card[data-face="up"]')
    for reloaded in (False, True):
        if reloaded:
            await me.reload()
        await expect(me.get_by_role("heading", name="Round 1 is over")).to_be_in_viewport()
        await expect(shown).to_have_count(4)
        await expect(laid).to_have_count(2)
        assert await codes(me) == held
        await expect(me.get_by_role("link", name="Check the shuffle")).to_be_visible()
        await expect_no_problems(me)
    await axe(me)
    await place(me, "pile:table").get_by_role("button").tap()
    await expect(me.get_by_role("dialog").locator("li")).to_have_count(2)
    await expect(me.get_by_role("dialog").get_by_role("button")).to_have_count(1)  # closes it
    await me.keyboard.press("Escape")
    await full.start()
    await expect(me.get_by_role("heading", name="Round 1 is over")).to_be_hidden()
    await expect(shown).to_have_count(0)
    await has_cards(me, 0)
