"""Klondike by touch: a whole game to its end, and how the tableau moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Locator, expect

import dealer
from tests.browser.phones import Phone, Phones
from tests.browser.table_page import holds, own_hand
from tests.browser.touch import Point, middle
from tests.harness.server_process import ServerProcess

RANKS = "A23456789TJQK"
COLUMNS = [f"pile:{number}" for number in range(1, 8)]
WASTE = "pile:table"

TO_BE_WON = (
    "Ts 5h 9d Td 5c Qh 9s 8s 7s 4s 7c Jd 6s Kc 8d 7h 3d Js 3s Ad Ks 2h 5d 9c 2c 3c "
    "Jh Ah 4d 4h 4c 3h 8c 8h Tc Jc 6h As Qd Ac 7d Kd Qc Th Kh Qs 2s 9h 5s 2d 6c 6d"
)
"""A deck, the top card first, with which the player below wins on the second way through it."""


@pytest_asyncio.fixture(loop_scope="session")
async def test_decks(tmp_path: Any) -> AsyncIterator[ServerProcess]:
    """A server on which a table may have a deck that can be won."""
    server = ServerProcess(tmp_path)
    server.environment["DEALER_INSECURE_TEST_DECKS"] = "1"
    async with server:
        yield server


def fits(card: str, onto: str | None) -> bool:
    """Whether a card may be laid on the last one of a column; None is an empty column."""
    if onto is None:
        return card[0] == "K"
    red = [one[1] in "hd" for one in (card, onto)]
    return red[0] != red[1] and RANKS.index(onto[0]) == RANKS.index(card[0]) + 1


class Player:
    """Plays by the rules and by what is seen: suits first, then what uncovers a card."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.built = dict.fromkeys("shdc", 0)
        self.runs = 0
        """How often more than one card was moved."""

    async def up(self, stack: str) -> list[str]:
        return await self.phone.shown(stack)

    def cards(self, stack: str) -> Locator:
        return self.phone.stack(stack).locator(".card")

    async def move(self, code: str, stack: str, to: str) -> None:
        """Drag a card, with all that lie on it; the one below turns up on its own."""
        card = self.phone.stack(stack).locator(f'[data-card="{code}"]')
        box = await card.bounding_box()
        assert box is not None
        target = self.cards(to).last if await self.cards(to).count() else self.phone.stack(to)
        # A card below others is seen at its upper edge.
        await self.phone.fingers.drag(Point(box["x"] + box["width"] / 2, box["y"] + 6), target)
        await self.phone.see(to, code)
        below = self.cards(stack).last
        if stack in COLUMNS and await below.count():
            await expect(below).to_have_attribute("data-face", "up")

    async def build(self, code: str, stack: str) -> None:
        """Send a card to the pile of its suit by tapping it twice."""
        card = self.phone.stack(stack).locator(f'[data-card="{code}"]')
        at = await middle(card)
        await self.phone.fingers.tap_at(at, times=2)
        await self.phone.see(f"pile:{code[1]}", code)
        below = self.cards(stack).last
        if stack in COLUMNS and await below.count():
            await expect(below).to_have_attribute("data-face", "up")

    async def step(self) -> bool:
        """Make one move; whether there is one."""
        up = {stack: await self.up(stack) for stack in [*COLUMNS, WASTE]}
        for stack, cards in up.items():
            if cards and RANKS.index(cards[-1][0]) == self.built[cards[-1][1]]:
                self.built[cards[-1][1]] += 1
                await self.build(cards[-1], stack)
                return True
        for stack, cards in up.items():
            covers = stack == WASTE or await self.cards(stack).count() > len(cards)
            if not cards or not covers:
                continue
            head = cards[-1] if stack == WASTE else cards[0]
            for column in COLUMNS:
                if column != stack and fits(head, up[column][-1] if up[column] else None):
                    await self.move(head, stack, column)
                    self.runs += stack != WASTE and len(cards) > 1
                    return True
        return False


async def test_klondike_to_the_end(test_decks: ServerProcess, open_page: Any) -> None:
    async with dealer.connect(test_decks.url, name="Ada") as house:
        rules = {"game": "klondike", "insecure_test_deck": {"order": TO_BE_WON.split()}}
        prepared = await house.join(await house.open(rules=rules))
        await prepared.transfer_host(1)
        path = f"/tables/{prepared.id}#seat={prepared.token}"
    table = await Phones.of_one(open_page, path, at=test_decks.port)
    phone = table.host
    await table.deal(0)
    await expect(phone.stack("pile:7").locator(".card")).to_have_count(7)
    player, left, times_through = Player(phone), 24, 1
    while sum(player.built.values()) < 52:
        if await player.step():
            continue
        await phone.fingers.tap(phone.stack("deck"))
        if left:
            left -= 1
        else:  # the whole waste goes back, and comes in the same order
            await expect(phone.stack(WASTE).locator(".card")).to_have_count(0)
            left = 52 - sum(player.built.values()) - await on_the_columns(phone)
            times_through += 1
        await holds(phone.page, "deck", left)
    assert times_through == 2
    assert player.runs > 1
    for suit in "shdc":
        await holds(phone.page, f"pile:{suit}", 13)
    await phone.tap("End the hand")
    await expect(phone.page.get_by_role("heading", name="Round 1 is over")).to_be_visible()


async def on_the_columns(phone: Phone) -> int:
    return sum([await phone.stack(column).locator(".card").count() for column in COLUMNS])


async def test_a_tableau_keeps_its_places_and_its_runs_move(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Klondike", 1)
    await table.deal(0)
    phone, page = table.host, table.host.page
    columns = [phone.stack(f"pile:{number}") for number in range(1, 8)]
    await expect(columns[6].locator(".card")).to_have_count(7)
    stacks = page.locator("#middle li[data-stack]")
    corner = "(all) => all.map((one) => [one.offsetLeft, one.offsetTop])"
    before = await stacks.evaluate_all(corner)
    assert len({left for left, _ in before}) == 7  # columns in a row, the others above them
    assert len({top for _, top in before}) == 2
    for left in (23, 22, 21):
        await phone.fingers.tap(phone.stack("deck"))
        await holds(page, "deck", left)
    assert await stacks.evaluate_all(corner) == before
    await expect(own_hand(page)).to_be_hidden()  # nothing is dealt or drawn into a hand
    await holds(page, "pile:table", 3)
    await expect(phone.stack("pile:table").locator('[data-face="up"]')).to_have_count(1)
    width = await columns[6].locator(".card").first.evaluate("(one) => one.offsetWidth")
    down = (
        await columns[6]
        .locator(".card")
        .evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")
    )
    assert down == sorted(set(down))

    # A card is dragged onto a column, and then with the one below it to another column.
    (top,) = await phone.shown("pile:table")
    await phone.fingers.drag(phone.stack("pile:table"), columns[0])
    await phone.see("pile:1", top)
    run = await phone.shown("pile:1")
    assert run[1:] == [top]
    # Rank and suit of the covered card are seen: 26 pixels of a card of 43.
    covered, covering = [
        float(one)
        for one in await columns[0]
        .locator(".card")
        .evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")
    ]
    assert covering - covered >= 26 / 43 * width
    assert 48 <= width <= 52
    box = await columns[0].locator(".card").first.bounding_box()
    assert box is not None
    await phone.fingers.drag(
        Point(box["x"] + box["width"] / 2, box["y"] + 6), columns[1].locator(".card").last
    )
    await phone.see("pile:2", top)
    assert (await phone.shown("pile:2"))[-2:] == run
    await expect(columns[0].locator(".card")).to_have_count(0)

    # On its side the phone has a line above the tools, which has nothing to say of an empty hand.
    await page.set_viewport_size({"width": 844, "height": 390})
    await expect(phone.stack("deck")).to_be_visible()
    await expect(page.locator("#tools")).to_be_visible()
    await expect(page.locator(".says")).to_be_hidden()
