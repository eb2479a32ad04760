"""Players with phones at one table; everything that they do is touch events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.browser.player_page import PlayerPage
from tests.browser.table_page import codes, own_cards, own_hand, place, tool
from tests.browser.touch import Fingers

SIZES = ((390, 844), (360, 640), (430, 932), (320, 568))
"""Of the phones, one after the other."""

NAMES = ("Ada", "Bob", "Cleo", "Dan")

OpenPage = Callable[..., Awaitable[Page]]


DOUBLE_TAP_MS = 600
"""Within which the page takes a second tap of a button as part of the first."""


@dataclass(slots=True)
class Phone:
    """A player on a phone, and their fingers."""

    player: PlayerPage
    fingers: Fingers
    seat: int
    tapped_at: float = 0.0
    late: bool = False
    """Whether the player came during the round, and so cannot check the whole of it."""

    @property
    def page(self) -> Page:
        return self.player.page

    @property
    def sheet(self) -> Locator:
        return self.page.get_by_role("dialog")

    def stack(self, name: str) -> Locator:
        return place(self.page, name)

    async def hand(self) -> list[str]:
        """The codes of the player's cards, from left to right."""
        return await codes(self.page)

    async def shown(self, stack: str) -> list[str]:
        """The codes of the face-up cards of a stack that are drawn, bottom first."""
        found: list[str] = await self.stack(stack).evaluate(
            "it => [...it.querySelectorAll('.card[data-card]')].map((one) => one.dataset.card)"
        )
        return found

    async def see(self, stack: str, code: str) -> None:
        """Wait until a card lies face up in a stack."""
        await expect(self.stack(stack).locator(f'[data-card="{code}"]')).to_have_count(1)

    async def tap(self, name: str) -> None:
        """Tap a tool, once its action is possible, and not as the second tap of a double tap."""
        button = tool(self.page, name)
        await expect(button).to_be_enabled()
        await self.page.evaluate(
            "(at) => new Promise((done) => setTimeout(done, at - performance.now() + 1))",
            self.tapped_at + DOUBLE_TAP_MS,
        )
        await self.fingers.tap(button)
        self.tapped_at = await self.page.evaluate("performance.now()")

    async def choose(self, label: str | re.Pattern[str]) -> None:
        """Tap a button of the open sheet."""
        button = self.sheet.get_by_role("button", name=label, exact=isinstance(label, str))
        await self.fingers.tap(button)
        await expect(self.sheet).to_have_count(0)

    async def choose_player(self, other: Phone) -> None:
        """Tap a player in the open sheet, whose button may name the key, too."""
        await self.choose(re.compile(f"^{other.player.name}"))

    async def open_sheet(self, stack: str) -> None:
        """Open the sheet of a stack with a long press."""
        await self.fingers.hold(self.stack(stack))
        await self.fingers.lift()
        await expect(self.sheet).to_be_visible()

    async def select(self, *cards: str) -> None:
        """Tap cards of the hand."""
        for code in cards:
            card = own_cards(self.page).filter(has=self.page.locator(f'[data-card="{code}"]'))
            await self.fingers.tap(card)
            await expect(card).to_have_attribute("aria-selected", "true")

    async def do(self, name: str, *cards: str) -> None:
        """Select cards and tap a tool; wait until they have left the hand."""
        left = await self.player.cards.count() - len(cards)
        await self.select(*cards)
        await self.tap(name)
        await self.player.holds(left)

    async def draw(self, stack: str = "deck") -> str:
        """Drag the top card of a stack into the hand; its code."""
        before = await self.hand()
        top = self.stack(stack).locator(".card").last
        await self.fingers.drag(top, own_hand(self.page))
        await self.player.holds(len(before) + 1)
        (drawn,) = set(await self.hand()) - set(before)
        return drawn


@dataclass(frozen=True, slots=True)
class Phones:
    """A table whose host is the first of its players."""

    players: list[Phone]

    @property
    def host(self) -> Phone:
        return self.players[0]

    @classmethod
    async def at_table(
        cls, open_page: OpenPage, game: str | None, players: int, *, deck: str | None = None
    ) -> Phones:
        """Open a table with a game or a deck in the lobby, and sit down with all phones."""
        phones = [await open_phone(open_page, "/", 0)]
        page, fingers = phones[0].page, phones[0].fingers
        tile = page.get_by_role("radio", name=re.compile(f"^{re.escape(game or 'Any game')} "))
        await fingers.tap(tile)
        await page.get_by_label("Your name").fill(NAMES[0])
        if deck is not None:
            await fingers.tap(page.get_by_text("Choose deck, seats and rules"))
            choice = page.locator("select[name=deck]")
            await choice.locator(f'option[value="{deck}"]').wait_for(state="attached")
            await choice.select_option(deck)
        opens = re.compile("^Open a table$" if game is None else "^Play ")
        await fingers.tap(page.get_by_role("button", name=opens))
        await page.wait_for_url(re.compile(r"/tables/[0-9a-f]{32}$"))
        await expect(own_hand(page)).to_be_visible()
        path = page.url[page.url.index("/tables/") :]
        for index in range(1, players):
            other = await open_phone(open_page, path, index)
            await other.page.get_by_label("Your name").fill(NAMES[index])
            await other.fingers.tap(other.page.get_by_role("button", name="Sit down"))
            await expect(own_hand(other.page)).to_be_visible()
            phones.append(other)
        if players == 1 and await page.get_by_role("dialog").count():
            await page.keyboard.press("Escape")  # one plays alone what is made for more
        await expect(page.get_by_role("dialog")).to_have_count(0)
        return cls(phones)

    @classmethod
    async def of_one(cls, open_page: OpenPage, path: str, *, at: int) -> Phones:
        """A player alone, who comes by the link to their seat, at the server of a port."""
        alone = await open_phone(open_page, path, 0, at=at)
        await expect(alone.page.locator("#middle .between")).to_be_visible()
        return cls([alone])

    def after(self, phone: Phone, places: int = 1) -> Phone:
        """The player some places to the left of another."""
        return self.players[(self.players.index(phone) + places) % len(self.players)]

    async def deal(self, cards: int) -> None:
        """Open a round, shuffle, and deal as the game says: this many cards to each."""
        page = self.host.page
        await self.host.fingers.tap(page.get_by_role("button", name=re.compile("^Shuffle and ")))
        await asyncio.gather(*(phone.player.holds(cards) for phone in self.players))

    async def play(self, phone: Phone, card: str, stack: str = "pile:table") -> None:
        """Play a card face up; wait until all players see it."""
        await phone.do("Play", card)
        await asyncio.gather(*(one.see(stack, card) for one in self.players))

    async def replace(self, phone: Phone, open_page: OpenPage, name: str) -> Phone:
        """The player leaves, and a newcomer sits down at the same seat; the newcomer's phone."""
        path = phone.page.url[phone.page.url.index("/tables/") :]
        await phone.fingers.tap(phone.page.get_by_role("button", name="Menu"))
        for _ in ("in the menu", "the question"):
            await phone.fingers.tap(phone.sheet.get_by_role("button", name="Leave your seat"))
        await self.host.player.expect_log(f"{phone.player.name} left.")
        index = self.players.index(phone)
        newcomer = await open_phone(open_page, path, index)
        page = newcomer.page
        await page.get_by_label("Your name").fill(name)
        await page.locator("select[name=seat]").select_option(str(phone.seat))
        await newcomer.fingers.tap(page.get_by_role("button", name="Sit down"))
        await expect(own_hand(page)).to_be_visible()
        newcomer.player.name = name
        newcomer.late = True
        self.players[index] = newcomer
        return newcomer

    async def take_trick(self, winner: Phone, *, by: Phone) -> None:
        """Give the trick to its winner with two taps."""
        await by.fingers.tap(by.page.get_by_role("button", name="Trick to a player…"))
        await by.choose_player(winner)
        for one in self.players:
            await expect(one.stack("pile:table").locator(".card")).to_have_count(0)

    async def show_hand(self, phone: Phone) -> None:
        """Show all cards of a hand; wait until the next player sees them."""
        hand = await phone.hand()
        await phone.select(*hand)
        await phone.tap("Show")
        for code in hand:
            await self.after(phone).see(f"hand:{phone.seat}", code)

    async def showdown(self) -> None:
        """Every player shows the hand, and the round ends."""
        for phone in self.players:
            await self.show_hand(phone)
        await self.finish()

    async def finish(self) -> None:
        """Close the round; every player sees all its cards, and has checked them.

        The page asks first, unless the hand is over and no hand has cards.
        """
        host = self.host
        held = [await phone.player.cards.count() for phone in self.players]
        asks = True
        if await tool(host.page, "End the hand").is_visible():
            asks = any(held)
            await host.tap("End the hand")
        else:
            await host.fingers.tap(host.page.get_by_role("button", name="More…"))
            await host.fingers.tap(host.sheet.get_by_role("button", name="End the hand"))
        if asks:
            await expect(host.page.get_by_role("dialog", name="End the hand")).to_be_visible()
            await host.choose("End the hand")
        for one in self.players:
            await expect(one.page.get_by_role("heading", name="Round 1 is over")).to_be_visible()
            badge = "Checked since you came" if one.late else "Fair ✓"
            await expect(
                one.page.get_by_role("button", name=re.compile(f"^{badge}"))
            ).to_be_visible()


async def open_phone(open_page: OpenPage, path: str, index: int, *, at: int | None = None) -> Phone:
    """A phone at a page, whose player has the name of that index."""
    width, height = SIZES[index % len(SIZES)]
    size: dict[str, Any] = {"width": width, "height": height}
    page = await open_page(path, at=at, size=size, has_touch=True, is_mobile=True)
    return Phone(PlayerPage(page, NAMES[index]), await Fingers.on(page), index + 1)


async def tricks(
    table: Phones, *, leader: Phone, choose: Callable[[Sequence[str], str | None], str], best: str
) -> dict[int, int]:
    """Play all tricks; the number that each seat won.

    `choose(hand, suit)` is the card that a player plays, where a suit was led; `best` is the
    trumps, or empty.
    """
    won = {phone.seat: 0 for phone in table.players}
    while await leader.player.cards.count():
        played: list[tuple[str, Phone]] = []
        for places in range(len(table.players)):
            phone = table.after(leader, places)
            card = choose(await phone.hand(), played[0][0][1] if played else None)
            await table.play(phone, card)
            played.append((card, phone))
        suit = played[0][0][1]
        _, leader = max(played, key=lambda one: strength(one[0], suit, best))
        await table.take_trick(leader, by=table.host)
        won[leader.seat] += 1
    return won


def strength(card: str, suit: str, trumps: str) -> tuple[bool, bool, int]:
    """By which the cards of a trick are compared."""
    return card[1] == trumps, card[1] == suit, "23456789TJQKA".index(card[0])
