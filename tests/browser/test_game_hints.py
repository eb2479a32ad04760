"""What a page says by the file of its game: suits that are chosen, what follows, words."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.phones import Phone
from tests.browser.table_page import expect_log, holds, later_deal, place, tool
from tests.browser.test_looks import by_touch, deal, seated
from tests.browser.test_ownership import phones_at
from tests.harness.server_process import PATIENT

pytestmark = pytest.mark.reuse_pages

PILE = "pile:table"
SIGNS = {"s": "♠", "h": "♥", "d": "♦", "c": "♣"}
KIND = re.compile("^(high card|a |two |three |four )")
"""What a hand of poker is."""


async def suit_now(page: Page, sentence: str | None) -> None:
    """Wait until the pile says which suit comes next, or nothing of it."""
    sign = place(page, PILE).locator(".suit-now")
    if sentence is None:
        await expect(sign).to_be_hidden()
    else:
        await expect(sign).to_have_text(sentence)
        await expect(sign).to_be_visible()


async def card_of(phone: Phone, *, wild: bool, sign: str = "8") -> str:
    return next(card for card in await phone.hand() if card.startswith(sign) is wild)


@pytest.mark.parametrize(
    ("game", "deck", "sign", "name", "said"),
    [
        ("crazy-eights", ["8s", "8h", "8c", "8d", "2s", "2h", "3s", "3h"], "8", "hearts", "♥︎"),
        (
            "colours-and-numbers",
            ["W0.1", "W0.2", "W0.3", "W0.4", "R1.1", "B1.1", "R2.1", "B2.1"],
            *("W", "blue", "●︎"),
        ),
    ],
)
async def test_the_player_of_an_eight_chooses_the_suit(
    open_page: Any, server: Any, game: str, deck: Any, sign: str, name: str, said: str
) -> None:
    pack = {"pack": game} if game != "crazy-eights" else {}
    phones = await phones_at(
        open_page, server, game, names=("Ada", "Bob"), cards=4, deck=deck, **pack
    )
    # Half of the cards are wild: if the first player has one, the other has a plain one.
    has_wild = any(card.startswith(sign) for card in await phones[0].hand())
    wild, plain = phones if has_wild else reversed(phones)
    played = await card_of(wild, wild=True, sign=sign)
    await wild.do("Play", played)
    question = "Which suit comes next?"
    choice = wild.page.get_by_role("group", name=question)
    await expect(choice).to_be_visible()
    await expect(plain.page.get_by_role("group", name=question)).to_be_hidden()
    await suit_now(plain.page, "Suit now: …")
    await wild.fingers.tap(choice.get_by_role("button", name=name))
    await expect(choice).to_be_hidden()
    for phone in phones:
        await suit_now(phone.page, f"Suit now: {said}")
        await expect_log(phone.page, f"{wild.player.name}: Suit now: {said}")
    # Who comes later sees it, too, also after another phrase.
    await plain.page.reload()
    await plain.player.holds(4)
    await suit_now(plain.page, f"Suit now: {said}")
    other = await card_of(plain, wild=False, sign=sign)
    await plain.do("Play", other)
    for phone in phones:
        await suit_now(phone.page, None)


SUITS = "shdc"


def by_suit(hand: list[str]) -> list[str]:
    """A hand whose cards of one suit lie together, as the suits come in it."""
    suits = list(dict.fromkeys(card[1] for card in hand))
    return sorted(hand, key=lambda card: suits.index(card[1]))


async def test_a_hand_of_tricks_is_sorted_until_the_player_says_otherwise(
    open_page: Any, server: Any
) -> None:
    (ada, *_) = await phones_at(open_page, server, "hearts", cards=13)
    hand = await ada.hand()
    assert hand == by_suit(hand)
    await expect(ada.page.locator('.sorts [data-by="suit"]')).to_have_attribute(
        "aria-pressed", "true"
    )
    ranks = ada.page.locator('.sorts [data-by="rank"]')
    await ada.fingers.tap(ranks)
    await expect(ranks).to_have_attribute("aria-pressed", "true")
    sorted_by_rank = await ada.hand()
    assert sorted_by_rank != hand
    await ada.page.reload()
    await ada.player.holds(13)
    await expect(ranks).to_have_attribute("aria-pressed", "true")
    assert await ada.hand() == sorted_by_rank


async def off_suit(phone: Phone) -> set[str]:
    """The cards of the hand that are darker, as they do not follow."""
    dark = phone.page.locator("#hand [data-off] .card")
    return set(await dark.evaluate_all("all => all.map((one) => one.dataset.card)"))


async def test_cards_that_do_not_follow_suit_are_darker(open_page: Any, server: Any) -> None:
    ada, bob, cleo = phones = await phones_at(open_page, server, "spades", cards=13)
    for phone in phones:
        assert await off_suit(phone) == set()
    led = (await ada.hand())[0]
    await ada.do("Play", led)
    for phone in (bob, cleo):
        await phone.see(PILE, led)
        hand = await phone.hand()
        follows = {card for card in hand if card[1] == led[1]}
        assert await off_suit(phone) == (set(hand) - follows if follows else set())
        if phone is bob and follows:
            turn = re.compile(f"^Your turn: follow {SIGNS[led[1]]}")
            await expect(phone.page.locator(".your-turn")).to_have_text(turn)
    assert await off_suit(ada) == set()  # who has played has nothing to follow
    # A darker card can be played, too: people decide.
    dark = await off_suit(bob)
    await bob.do("Play", next(iter(dark), (await bob.hand())[0]))
    assert await off_suit(bob) == set()


async def test_go_fish_says_to_ask_before_drawing(open_page: Any, server: Any) -> None:
    ada, bob = await phones_at(open_page, server, "go-fish", names=("Ada", "Bob"))
    await ada.page.keyboard.press("w")  # passes the turn on
    says = bob.page.locator(".your-turn")
    await expect(says).to_have_text("Your turn: ask for a rank you hold; if none, draw")
    await expect(bob.page.locator("#tools .primary")).to_have_count(0)
    await bob.tap("Draw")
    await bob.player.holds(4)


@pytest.mark.parametrize(("game", "cards"), [("holdem", 2), ("omaha", 4)])
async def test_poker_has_its_own_words(open_page: Any, server: Any, game: str, cards: int) -> None:
    phones = ada, bob, _cleo = await phones_at(open_page, server, game, cards=cards)
    step = ada.page.locator("#tools .primary")
    next_deal = ada.page.locator('#tools [data-action="deal"]')
    await expect(step).to_have_text("Flop")
    await expect(step).to_have_attribute("data-before", "When betting is done, deal:")
    await expect(bob.page.locator("#tools .primary")).to_have_count(0)
    for phone in phones:
        await expect(phone.page.get_by_text("Anyone may play")).to_have_count(0)
    await bob.tap("Fold")  # all cards, without selecting them
    await bob.player.holds(0)
    await expect_log(ada.page, f"Bob discarded {cards} cards.")
    says = ada.page.locator('.seats .chip[data-says="Fold"]')
    await expect(says).to_have_count(1)
    await expect(says).to_have_attribute("data-seat", "2")
    await expect(ada.page.get_by_role("button", name="Bob, seat 2, 0 cards, Fold")).to_be_visible()
    for title in ("Flop", "Turn", "River"):
        await expect(next_deal).to_have_text(title)
        await expect(step).to_have_count(1 if title == "Flop" else 0)  # then it is Cleo's turn
        await ada.tap(later_deal(title))
    await expect(step).to_have_text("End the hand")
    await expect(step).not_to_have_attribute("data-before", "When betting is done, deal:")


async def test_while_cards_are_passed_nothing_else_is_offered(open_page: Any, server: Any) -> None:
    ada, *_ = phones = await phones_at(open_page, server, "hearts", cards=4)
    passing = ada.page.locator("#tools .primary")
    await expect(passing).to_have_text("Pass 3 cards to Bob")
    await expect(tool(ada.page, "Play")).to_be_hidden()
    await expect(ada.page.locator(".your-turn")).to_have_text("Select 3 cards to pass.")
    # A second tap takes back the choice of a card; it does not play it.
    first, *others = await ada.hand()
    await ada.select(first)
    card = ada.player.cards.filter(has=ada.page.locator(f'[data-card="{first}"]'))
    await ada.fingers.tap(card)
    await expect(card).to_have_attribute("aria-selected", "false")
    await ada.player.holds(4)
    await ada.do("Pass 3 cards to Bob", *others)
    await expect(tool(ada.page, "Play")).to_be_hidden()
    for phone, name in zip(phones[1:], ("Cleo", "Ada"), strict=True):
        await phone.select(*(await phone.hand())[:3])
        await phone.tap(f"Pass 3 cards to {name}")
    await ada.player.holds(4)
    await expect(tool(ada.page, "Play")).to_be_visible()


OF_TWO = {"game": "hearts", "deck": ["2h", "3h", "4h", "5h"]}


async def take_the_hand(ada: Any, bob: Any) -> None:
    """One card each; Ada takes both, and the hand is over."""
    await deal([ada, bob], 1)
    for player in (ada, bob):
        await player.play(player.hand)
    await ada.move("pile:table", to="pile:won:1", count=2)
    await ada.round_close()


async def test_the_sheet_adds_a_hand_to_the_total_before(open_page: Any, server: Any) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules=OF_TWO)
        await ada.note(kind="score", text="1:3")
        await take_the_hand(ada, bob)
        page = await by_touch(open_page, bob)
        rows = page.get_by_role("list", name="Result").get_by_role("listitem")
        # Also once the host's page has noted the totals.
        for noted in ([], ["1:5", "2:0"]):
            for text in noted:
                await ada.note(kind="score", text=text)
            if noted:
                await expect(page.locator('.marks .score[data-sign="5 pts"]')).to_have_count(1)
            await expect(rows.nth(0)).to_contain_text("0 before + 0 this hand= 0")
            await expect(rows.nth(1)).to_contain_text("3 before + 2 this hand= 5")
        await expect(page.get_by_role("link", name="Practise it")).to_be_visible()


@pytest.mark.parametrize(
    ("before", "says", "first"),
    [
        ((3, 9), ("Fewest points this hand: Bob K", "Ada leads with 5"), "Ada"),
        ((0, 0), ("Fewest points this hand: Bob K", ""), "Bob K"),
        ((7, 9), ("Fewest points this hand: Bob K", "Bob K and Ada lead with 9"), "Bob K"),
        ((98, 9), ("Bob K wins", ""), "Bob K"),
    ],
)
async def test_a_hand_wins_no_game_to_some_points(
    open_page: Any, server: Any, before: tuple[int, int], says: tuple[str, str], first: str
) -> None:
    """Ada takes both cards of a hand; the totals say who is first."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules=OF_TWO)
        for seat, points in enumerate(before, 1):
            await ada.note(kind="score", text=f"{seat}:{points}")
        await take_the_hand(ada, bob)
        page = await by_touch(open_page, bob)
        parts = page.locator(".winner > *")
        await expect(parts).to_have_text(list(says))
        rows = page.get_by_role("list", name="Result").get_by_role("listitem")
        await expect(rows.first.locator(".name")).to_have_text(first)


async def test_a_discard_of_each_player_is_no_trick(open_page: Any, server: Any) -> None:
    """A drag of the top one would take both."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "gin-rummy"})
        await deal([ada, bob], 2)
        for player in (ada, bob):
            await player.play(player.hand[:1])
        page = await by_touch(open_page, bob)
        await holds(page, PILE, 2)
        await expect(page.locator('[data-action="trick"]')).to_be_hidden()


async def test_who_takes_the_points_of_all_cards_is_named(open_page: Any, server: Any) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules=OF_TWO)
        await deal([ada, bob], 2)
        for player in (ada, bob):
            await player.play(player.hand)
        await ada.move("pile:table", to="pile:won:1", count=4)
        await ada.round_close()
        page = await by_touch(open_page, bob)
        says = page.locator(".winner small")
        await expect(says).to_have_text("Ada took all points: the others get 26 each")


@pytest.mark.parametrize("deck", [["2s", "3h", "4d", "5c"], ["2s", "3s", "4s", "5s"]])
async def test_the_discards_become_a_new_deck_once_no_card_fits(
    open_page: Any, server: Any, deck: list[str]
) -> None:
    fits = deck[1] == "3s"
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "crazy-eights", "deck": deck})
        await deal([ada, bob], 1)
        await ada.move("deck", to="pile:table", count=2, face="up")
        await ada.note(kind="turn", text="2")
        await ada.transfer_host(2)
        page = await by_touch(open_page, bob)
        hint, step = page.locator(".your-turn"), page.locator("#tools .primary")
        top = place(page, PILE).locator(".card").last
        last = await top.get_attribute("data-card") or ""
        await expect(page.locator("#hand [data-off] .card")).to_have_count(0 if fits else 1)
        if fits:
            await expect(hint).to_contain_text("match suit or rank")
            await expect(step).to_have_count(0)
            return
        await expect(hint).to_have_text("The deck is empty: first the discards are shuffled")
        await expect(step).to_have_text("Shuffle the discards")
        await step.tap()
        await holds(page, "deck", 1)
        await holds(page, PILE, 1)
        await expect(top).to_have_attribute("data-card", last)
        await expect(step).to_have_text("Draw")
        await expect(hint).to_contain_text("else draw")


async def test_hands_of_a_showdown_are_named_and_cannot_be_folded(
    open_page: Any, server: Any
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        await deal([ada, bob], 2)
        await ada.move("deck", to="pile:board", count=5, face="up")
        await ada.show(ada.hand)
        page = await by_touch(open_page, bob)
        says = page.locator(".seats .chip")
        await expect(tool(page, "Fold")).to_be_visible()
        await expect(page.locator(".seats .faces .card")).to_have_count(2)
        await expect(says).not_to_have_attribute("data-says", KIND)
        for card in await page.locator("#hand [data-slot]").all():
            await card.tap()
        await tool(page, "Show").tap()
        await expect(says).to_have_attribute("data-says", KIND)
        await expect(page.locator(".others-turn")).to_contain_text("the best hand: ")
        await expect(tool(page, "Fold")).to_be_hidden()


async def test_in_a_showdown_a_hand_is_shown_with_one_tap(open_page: Any, server: Any) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENT):
        ada, bob = await seated(stack, server, rules={"game": "holdem"})
        await deal([ada, bob], 2)
        await ada.move("deck", to="pile:board", count=5, face="up")
        await ada.note(kind="turn", text="1")
        page = await by_touch(open_page, bob)
        step, line = page.locator("#tools .primary"), page.locator(".your-turn")
        await expect(page.locator(".others-turn")).to_have_text("Ada’s turn")
        await expect(tool(page, "Show")).to_have_attribute("aria-disabled", "true")
        await ada.show(ada.hand)
        await expect(line).to_have_text("Show your cards or fold")
        await expect(page.locator("[data-turn]")).to_have_count(0)
        await expect(step).to_have_text("Show")
        await step.tap()
        await expect(page.locator("#hand [data-shown]")).to_have_count(2)
        await expect(page.locator(".others-turn")).to_contain_text("the best hand: ")
