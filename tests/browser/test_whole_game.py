"""Four people play a round in four browsers, and one thing after another goes wrong."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import WebSocket, expect

from dealer.proof.verify import verify
from tests.browser.conftest import PHONE
from tests.browser.people import Person
from tests.browser.seated import close_round
from tests.whole.house import PATIENT

NO_LINE = "WebSocket connection to .* failed|Failed to load resource: net::ERR"


async def four(arrive, *, second_at: int | None = None) -> list[Person]:
    """Ada opens a table; Bob (at a phone), Cleo and Dan sit down at it."""
    ada = Person(await arrive("/"), "Ada")
    path = await ada.open_table()
    bob = Person(await arrive(path, size=PHONE, at=second_at), "Bob")
    cleo, dan = [Person(await arrive(path), name) for name in ("Cleo", "Dan")]
    people = [ada, bob, cleo, dan]
    for one in people[1:]:
        await one.sit_down()
    return people


async def deal(people: list[Person], each: int) -> None:
    host = people[0]
    await host.do("Shuffle and start")
    for one in people:
        await one.sees(re.compile("Shuffled 52 cards"))
    await host.set_count(each)
    await host.do("Deal")
    for one in people:
        await one.holds(each)
        await one.trusts()


async def test_a_round_with_a_reload_and_a_lost_line(house, line, arrive) -> None:
    people = await four(arrive, second_at=line.port)
    ada, bob, cleo, dan = people
    await deal(people, 5)

    # Dan loads his page again: same seat, same cards in the same order.
    before = await dan.names()
    await dan.page.reload()
    await expect(dan.line).to_contain_text("Welcome back to seat 4")
    await dan.holds(5)
    assert await dan.names() == before

    # Bob's line is cut: he is told, the others see it, and what they do meanwhile comes to him.
    bob.watched.expect(NO_LINE)
    await line.cut()
    await expect(bob.line).to_contain_text("Nothing is lost")
    await expect(bob.button("Draw")).to_be_disabled()
    await expect(ada.other("Bob")).to_have_accessible_name(re.compile("dropped off the line"))
    await cleo.choose(0)
    await cleo.do("Discard")
    await cleo.holds(4)
    await ada.sees("Cleo discarded 1 card.")
    await line.mend()
    await bob.sees("Cleo discarded 1 card.")
    await expect(bob.line).to_contain_text("nothing was missed")
    await expect(ada.other("Bob")).to_have_accessible_name(re.compile(r", here$"))

    played = await bob.choose(2)
    await bob.do("Play")
    await expect(ada.button(re.compile(f"^Table pile, 1 card: {played}"))).to_be_visible()
    await ada.set_count(2)
    await ada.do("Draw")
    await ada.holds(7)
    await dan.sees("Ada drew 2 cards.")

    await close_round(ada.page)
    for one in people:
        await one.sees(re.compile("Round 1 was closed"))
        await one.trusts(8)
    lines = (await house.bundle(ada.page.url[-32:])).splitlines()
    report = verify(lines)
    assert report.fault is None
    assert report.remarks.house_only == 0

    # Each browser cosigned what it checked, Dan's with the same key after his reload.
    closed = sum(not line.startswith(b'{"checkpoint"') for line in lines[1:])
    async with asyncio.timeout(PATIENT):
        while list(report.cosigned_upto.values()) != 4 * [closed]:
            lines = (await house.bundle(ada.page.url[-32:])).splitlines()
            report = verify(lines)
    assert sorted(report.names.values()) == ["Ada", "Bob", "Cleo", "Dan"]

    # The audit of it, by the link on the table.
    await bob.page.get_by_role("link", name="Watch it being checked, swap by swap").click()
    await expect(bob.page.get_by_text("Everything holds")).to_be_visible()


async def test_the_house_is_killed_and_comes_back(house, arrive) -> None:
    people = await four(arrive)
    ada, bob, *_ = people
    await deal(people, 3)
    hands = [await one.names() for one in people]
    for one in people:
        one.watched.expect(NO_LINE)
    await house.kill()
    await expect(bob.line).to_contain_text("Nothing is lost")
    await house.open()
    for one, hand in zip(people, hands, strict=True):
        await expect(one.line).to_contain_text("nothing was missed")
        assert await one.names() == hand
    await bob.do("Draw")
    await bob.holds(4)
    await ada.sees("Bob drew 1 card.")
    await bob.trusts()


async def test_a_page_that_slept(house, line, arrive) -> None:
    """A line over which nothing passes is found out, and a new one is made."""
    ada = Person(await arrive("/"), "Ada")
    path = await ada.open_table()
    bob = Person(await arrive(path, at=line.port), "Bob")
    bob.watched.expect(NO_LINE)
    await bob.sit_down()
    await deal([ada, bob], 2)
    line.hold()
    await bob.page.context.set_offline(True)
    await ada.do("Draw")
    await ada.holds(3)
    await bob.page.context.set_offline(False)
    await line.cut()
    await line.mend()
    await bob.sees("Ada drew 1 card.")
    await bob.holds(2)


async def test_somebody_who_looks_on_sees_no_hidden_card(house, arrive) -> None:
    ada = Person(await arrive("/"), "Ada")
    path = await ada.open_table()
    eve = Person(await arrive(path), "Eve")
    heard: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: heard.append(str(frame)))

    eve.page.on("websocket", listen)
    await eve.page.reload()
    await deal([ada], 5)
    await eve.sees("Ada drew 5 cards.")
    shown = await ada.choose(0)
    await ada.do("Play")
    await expect(eve.button(re.compile(f"^Table pile, 1 card: {shown}"))).to_be_visible()
    assert heard
    assert not [frame for frame in heard if '"private"' in frame]


async def test_who_leaves_and_who_drops(house, arrive) -> None:
    ada, bob, cleo, dan = await four(arrive)
    await cleo.page.close()
    await expect(ada.other("Cleo")).to_have_accessible_name(re.compile("dropped off the line"))
    await bob.page.get_by_role("button", name="Menu").click()
    await bob.do("Leave your seat")
    await bob.page.get_by_role("dialog").get_by_role("button", name="Leave your seat").click()
    await ada.sees("Bob left.")
    await expect(dan.other("Bob")).to_have_accessible_name(re.compile("left the table$"))
