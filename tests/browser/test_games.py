"""The games of the lobby, each played to its end with fingers on phones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.phones import Phone, Phones, open_phone, tricks
from tests.browser.table_page import has_won, holds, later_deal, own_hand, shown_link, tool

RANKS = "A23456789TJQK"


def follow(hand: Sequence[str], suit: str | None) -> str:
    """A card of the suit that was led, or else the first one."""
    return next((card for card in hand if card[1] == suit), hand[0])


async def holder(table: Phones, card: str) -> Phone:
    for phone in table.players:
        if card in await phone.hand():
            return phone
    raise AssertionError(f"no player holds {card}")


async def test_hearts(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Hearts", 4)
    await table.deal(13)
    passed = {}
    for phone in table.players:
        cards = sorted(await phone.hand(), key=lambda card: RANKS.index(card[0]))[-3:]
        passed[table.after(phone).seat] = set(cards)
        label = f"Pass 3 cards to {table.after(phone).player.name}"
        await expect(phone.page.locator("#tools .primary")).to_have_text(label)
        await expect(phone.page.locator("[data-turn]")).to_have_count(0)
        await phone.select(*cards)
        await phone.tap(label)
        await expect(tool(phone.page, label)).to_be_hidden()
    for phone in table.players:
        await phone.player.holds(13)
        assert passed[phone.seat] <= set(await phone.hand())
        giver = table.after(phone, -1).player.name
        await phone.player.expect_log(re.compile(rf"^You got .+, .+ and .+ from {giver}\.$"))
    leader = await holder(table, "2c")
    await expect(leader.page.locator("#own[data-turn]")).to_be_visible()
    await expect(leader.page.locator(".your-turn")).to_have_text(re.compile("^Your turn: lead 2♣"))
    await expect(leader.page.locator("#hand [data-slot]:not([data-off])")).to_have_count(1)
    await take_back_a_wrong_card(table, leader)

    def card_of(hand: Sequence[str], suit: str | None) -> str:
        return "2c" if "2c" in hand else follow(hand, suit)

    won = await tricks(table, leader=leader, choose=card_of, best="")
    assert sum(won.values()) == 13
    assert not re.search(r"(pass|won):\d", await table.host.player.log.inner_text())
    await table.finish()
    for seat, count in won.items():
        if count:
            await has_won(table.host.page, seat, count)
    await expect_hearts_result(table)


async def take_back_a_wrong_card(table: Phones, phone: Phone) -> None:
    """A player lays a card that they did not mean, and takes it back into the hand."""
    before = await phone.hand()
    wrong = next(card for card in before if card != "2c")
    await table.play(phone, wrong)
    await phone.tap("Take back")
    await phone.player.holds(len(before))
    assert sorted(await phone.hand()) == sorted(before)
    for one in table.players:
        await expect(one.stack("pile:table").locator(".card")).to_have_count(0)


async def expect_hearts_result(table: Phones) -> None:
    """All see the points, of which there are 26, or 26 for each of three players."""
    for phone in table.players:
        scores = phone.page.get_by_role("list", name="Result").get_by_role("listitem")
        await expect(scores).to_have_count(4)
        found = [
            int(re.findall(r"(\d+) points?$", text)[0]) for text in await scores.all_inner_texts()
        ]
        assert sum(found) in (26, 78)
        assert found == sorted(found)
        best = await phone.page.locator(".scores [data-best]").count()
        assert best == found.count(found[0])
        hand = re.compile("^Fewest points this hand: ")
        await expect(phone.page.locator(".between .winner")).to_have_text(hand)
    await expect(table.host.player.button("Deal again")).to_be_visible()
    await expect(table.after(table.host).player.button("Deal again")).to_be_hidden()


@pytest.mark.parametrize(
    ("game", "players", "cards", "taps"),
    [
        ("Hearts", 4, 13, 6), ("Texas hold’em", 3, 2, 5), ("Go fish", 2, 7, 4),
        ("Crazy eights", 2, 7, 4), ("Klondike", 1, 0, 3),
    ],
)  # fmt: skip
async def test_the_first_hand_takes_few_taps(
    open_page: Any, game: str, players: int, cards: int, taps: int
) -> None:
    """Names are typed where the focus is: no tap opens a field, the invitation or closes it."""
    host, *others = phones = [await open_phone(open_page, "/", 0)]
    await host.fingers.tap(host.page.get_by_role("radio", name=re.compile(f"^{game} ")))
    await host.page.keyboard.type("Ada")
    await host.fingers.tap(host.page.get_by_role("button", name=f"Play {game}"))
    await expect(host.page.locator(".between")).to_be_visible()
    invitation = host.page.get_by_role("dialog", name="Invite players")
    await expect(invitation).to_have_count(0 if players == 1 else 1)
    link = "" if players == 1 else await shown_link(host.page)
    for index in range(1, players):
        others.append(await open_phone(open_page, link, index))
        await expect(others[-1].page.get_by_label("Your name")).to_be_focused()
        await others[-1].page.keyboard.type(others[-1].player.name)
        await others[-1].fingers.tap(others[-1].player.button("Sit down"))
        await expect(invitation).to_have_count(0)
        await expect(own_hand(others[-1].page)).to_be_visible()
    await expect(host.page.locator(".seats .seat")).to_have_count(players - 1)
    await host.fingers.tap(host.player.button(re.compile("^Shuffle and ")))
    if players == 1:
        await expect(host.stack("pile:7").locator(".card")).to_have_count(7)
    for one in [host, *others] if cards else []:
        await one.player.holds(cards)
    assert sum(one.fingers.taps for one in [*phones, *others]) == taps


async def test_crazy_eights_goes_on_with_another_player(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Crazy eights", 2)
    await table.deal(7)
    bob = table.players[1]
    hand = await bob.hand()
    await table.play(bob, hand[0])
    eve = await table.replace(bob, open_page, "Eve")
    await eve.player.holds(6)
    assert sorted(await eve.hand()) == sorted(hand[1:])
    for card in await eve.hand():
        await table.play(eve, card)
    await table.finish()
    winner = table.host.page.locator(".between .winner")
    await expect(winner).to_have_text("Eve wins")
    await expect(table.host.page.locator(".scores li").first).to_have_text(re.compile("Eve0 cards"))


async def test_a_tarot_game_of_three(open_page: Any) -> None:
    """Tricks with trumps of a pack, at a table without a game file."""
    table = await Phones.at_table(open_page, None, 3, deck="pack:tarot")
    host = table.host
    await host.fingers.tap(host.page.get_by_role("button", name="Shuffle and start"))
    for _ in range(2):
        await host.fingers.tap(host.player.button("More cards"))
    await host.tap("Deal")
    for phone in table.players:
        await phone.player.holds(3)
    leader, won = host, dict.fromkeys((1, 2, 3), 0)
    for left in (2, 1, 0):
        played: list[tuple[str, Phone]] = []
        for places in range(3):
            phone = table.after(leader, places)
            hand = await phone.hand()
            card = follow_tarot(hand, played[0][0][0] if played else None)
            await phone.select(card)
            await phone.tap("Play")
            await phone.player.holds(left)
            played.append((card, phone))
        suit = played[0][0][0]
        _, leader = max(played, key=lambda one: (one[0][0] == "t", one[0][0] == suit, one[0]))
        await table.take_trick(leader, by=host)
        won[leader.seat] += 3
    for seat, cards in won.items():
        if cards:
            await holds(host.page, f"pile:won:{seat}", cards)
    await table.finish()


def follow_tarot(hand: Sequence[str], suit: str | None) -> str:
    """A card of the suit that was led, or else a trump, or else the first one."""
    for wanted in (suit, "t"):
        for card in hand:
            if card[0] == wanted:
                return card
    return hand[0]


async def test_spades(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Spades", 4)
    await table.deal(13)
    won = await tricks(table, leader=table.after(table.host), choose=follow, best="s")
    assert sum(won.values()) == 13
    await table.finish()


async def test_bridge_is_dealt_and_the_dummy_shown(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Bridge", 4)
    await table.deal(13)
    declarer, dummy = table.players[1], table.players[3]
    await table.play(table.after(declarer), (await table.after(declarer).hand())[0])
    await table.show_hand(dummy)
    await table.finish()


@pytest.mark.parametrize(("game", "cards"), [("Texas hold’em", 2), ("Omaha", 4)])
async def test_poker_with_a_board(open_page: Any, game: str, cards: int) -> None:
    table = await Phones.at_table(open_page, game, 3)
    await table.deal(cards)
    for deal, on_board in (("Flop", 3), ("Turn", 4), ("River", 5)):
        await table.host.tap(later_deal(deal))
        for phone in table.players:
            await expect(phone.stack("pile:board").locator("[data-card]")).to_have_count(on_board)
    await expect(tool(table.host.page, "Deal")).to_have_count(0)  # no tap deals again to everybody
    await table.host.page.keyboard.press("a")
    await expect(table.host.page.get_by_role("alert")).to_contain_text("has been dealt")
    await expect(tool(table.host.page, "End the hand")).to_be_visible()
    first, second, third = table.players
    for phone in table.players:
        await phone.player.holds(cards)
    await third.tap("Fold")
    await third.player.holds(0)
    for phone in (first, second):  # the showdown of those who have not folded
        await table.show_hand(phone)
    await table.finish()


async def test_five_card_draw(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Five-card draw", 3)
    await table.deal(5)
    for phone in table.players:
        counts = Counter(card[0] for card in await phone.hand())
        useless = [card for card in await phone.hand() if counts[card[0]] == 1][:3]
        if useless:
            await phone.do("Discard", *useless)
        for _ in useless:
            await phone.draw()
        await phone.player.holds(5)
    await table.showdown()


def unmatched(hand: Sequence[str]) -> list[str]:
    """The cards outside of the best two melds or fewer, of three or four cards each."""
    melds = [set(one) for size in (3, 4) for one in combinations(hand, size) if is_meld(one)]
    pairs = [one | other for one, other in combinations(melds, 2) if not one & other]
    best = min([set(), *melds, *pairs], key=lambda melded: points(set(hand) - melded))
    return [card for card in hand if card not in best]


def is_meld(cards: Sequence[str]) -> bool:
    ranks = sorted(RANKS.index(card[0]) for card in cards)
    if len(set(ranks)) == 1:
        return True
    run = list(range(ranks[0], ranks[0] + len(ranks)))
    return len({card[1] for card in cards}) == 1 and ranks == run


def points(cards: Sequence[str] | set[str]) -> int:
    return sum(min(10, RANKS.index(card[0]) + 1) for card in cards)


async def test_gin_rummy(open_page: Any) -> None:
    """It ends when a player can knock, or when two cards are left in the deck."""
    table = await Phones.at_table(open_page, "Gin rummy", 2)
    await table.deal(10)
    phone, left = table.after(table.host), 31
    while left > 2:
        (top,) = await phone.shown("pile:table")
        if len(unmatched([*await phone.hand(), top])) <= len(unmatched(await phone.hand())):
            await phone.draw("pile:table")
        else:
            await phone.draw()
            left -= 1
        hand = await phone.hand()
        loose = [card for card in unmatched(hand) or hand if card != top]
        worst = max(loose, key=lambda card: points([card]))
        await table.play(phone, worst)
        if points(unmatched(await phone.hand())) <= 10:
            break
        phone = table.after(phone)
    await table.showdown()


async def test_go_fish(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Go fish", 2)
    await table.deal(7)
    asking, books, left = table.host, 0, 38
    while books < 13:
        other = table.after(asking)
        hand = await asking.hand()
        if hand:
            rank = Counter(card[0] for card in hand).most_common(1)[0][0]
            held = await other.hand()
            asked = [card for card in held if card[0] == rank]
            if asked:
                await other.select(*asked)
                await other.tap("Give")
                await other.choose("Give")
                await asking.player.holds(len(hand) + len(asked))
                await other.player.holds(len(held) - len(asked))  # it may be drawn later
            elif left:
                await asking.draw()
                left -= 1
        elif left:
            await asking.draw()
            left -= 1
        counts = Counter(card[0] for card in await asking.hand())
        for rank in [rank for rank, count in counts.items() if count == 4]:
            await asking.do("Play", *(card for card in await asking.hand() if card[0] == rank))
            books += 1
        asking = other
    await holds(table.host.page, "pile:table", 52)
    await table.finish()


@pytest.mark.parametrize("game", ["Crazy eights", "Colours and numbers"])
async def test_a_game_of_matching_cards(open_page: Any, game: str) -> None:
    """The first player without cards wins; codes of both decks are a colour or suit and a rank."""
    table = await Phones.at_table(open_page, game, 2)
    await table.deal(7)
    phone, left = table.after(table.host), 52 - 15
    while left:
        top = (await phone.shown("pile:table"))[-1]
        fits = [card for card in await phone.hand() if set(card[:2]) & set(top[:2])]
        if fits:
            await phone.do("Play", fits[0])
            for one in table.players:
                await one.see("pile:table", fits[0])
            if not await phone.hand():
                break
        else:
            await phone.draw()
            left -= 1
        phone = table.after(phone)
    await table.finish()


def value(cards: Sequence[str]) -> int:
    """In blackjack: picture cards count ten, and one ace may count eleven."""
    low = points(list(cards))
    return low + 10 if low <= 11 and any(card[0] == "A" for card in cards) else low


async def test_blackjack(open_page: Any) -> None:
    table = await Phones.at_table(open_page, "Blackjack", 3)
    await table.deal(2)
    for phone in table.players:
        while value(await phone.hand()) < 17:
            await phone.draw()
    host = table.host
    await host.open_sheet("pile:dealer")
    await host.choose("Turn the top card up")
    dealer = host.stack("pile:dealer")
    await expect(dealer.locator("[data-card]")).to_have_count(2)
    while value(cards := await host.shown("pile:dealer")) < 17:
        await host.fingers.drag(host.stack("deck").locator(".card").last, dealer)
        await expect(dealer.locator("[data-card]")).to_have_count(len(cards) + 1)
    await table.showdown()
