"""Bots at a real table: what they play, and that they play it as their seats may."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

import dealer
from dealer.bots import Bots, read_link
from dealer.errors import HouseUnreachable, NotEntitled
from dealer.game.events import CardDrawn, CardMoved, CardShown, EntropyRevealed
from tests.harness.own_gateway import own_gateway


class Party:
    """Bots that play in the background at the table of a host without a seat."""

    def __init__(self, link: str, count: int, **options) -> None:
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self.stop = asyncio.Event()
        bots = Bots(
            read_link(link, server=link), count,
            pace=0.01, rng=random.Random(7), report=self._said.put_nowait, **options,
        )  # fmt: skip
        self.task = asyncio.create_task(bots.run(self.stop))

    async def said(self, count: int) -> list[str]:
        """The next sentences, in the order of the alphabet."""
        return sorted([await self._said.get() for _ in range(count)])

    async def end(self) -> None:
        self.stop.set()
        await self.task


@pytest.fixture
async def server(tmp_path):
    async with own_gateway(tmp_path) as url:
        yield url


@pytest.fixture
async def host(server):
    async with dealer.connect(server, name="Host") as house:
        yield house


async def opened(host, server, **rules):
    table = await host.open(seats=4, rules=rules)
    return table, f"{server}/{table.id}"


async def test_bots_sit_down_shuffle_and_play(host, server):
    table, link = await opened(host, server)
    party = Party(link, 3)
    await table.until(lambda table: len(table.seats) == 3)
    assert all(player.bot for player in table.state.seats.values())
    await table.round_open()
    await table.shuffle()
    await table.until(lambda table: table.deck_count < 40)
    await party.end()
    await table.until(lambda table: not table.seats)
    await table.round_close()  # this client replays the round
    said = await party.said(6)
    assert len([one for one in said if "sits down at seat" in one]) == 3
    assert len([one for one in said if one.endswith(": left.")]) == 3


async def test_every_bot_adds_random_bytes_and_plays(host, server):
    table, link = await opened(host, server)
    party = Party(link, 2)
    await table.until(lambda table: len(table.seats) == 2)
    kinds: Counter = Counter()
    seats: set[int] = set()
    stream = table.events()
    await table.round_open()
    await table.shuffle()
    async for _, _, event in stream:
        kinds[type(event)] += 1
        if isinstance(event, CardDrawn):
            seats.add(event.seat)
        if kinds[CardMoved] > 5 and seats == {1, 2} and kinds[CardShown]:
            break
    await party.end()
    assert kinds[EntropyRevealed] == 2


async def test_bots_keep_to_the_rules(host, server):
    """Only the host draws here, so they play what they were dealt, and nothing is refused."""
    table, link = await opened(host, server, preset="dealer", discard="nobody")
    party = Party(link, 2)
    await table.until(lambda table: len(table.seats) == 2)
    await table.round_open()
    await table.shuffle()
    await table.deal(3)
    await table.until(lambda table: len(table.piles.get("table", [])) == 6)
    assert set(table.piles) == {"table"}
    assert table.deck_count == 46
    await party.end()


async def test_bots_wait_for_the_turn_marker_and_pass_it_on(host, server):
    table, link = await opened(host, server)
    party = Party(link, 3)
    await table.until(lambda table: len(table.seats) == 3)
    await table.note("turn", "2")
    movers: list[int] = []
    stream = table.events()
    await table.round_open()
    await table.shuffle()
    async for _, _, event in stream:
        if isinstance(event, CardDrawn):
            movers.append(event.seat)
        elif isinstance(event, CardMoved):
            movers.append(int(event.source[5:]))
        if len(movers) == 7:
            break
    await party.end()
    assert movers == [2, 3, 1, 2, 3, 1, 2]


async def test_kept_seats_are_taken_again(host, server, tmp_path):
    table, link = await opened(host, server)
    for _ in range(2):
        party = Party(link, 2, store=tmp_path / "seats")
        await table.until(lambda table: len(table.seats) == 2)
        assert all("sits down" in one for one in await party.said(2))
        await party.end()
        assert all(one.endswith("the seat is kept.") for one in await party.said(2))
    assert table.version == 3  # the table was opened, and each seat taken once


async def test_an_invitation_admits_them(host, server):
    table, link = await opened(host, server, join="invite")
    with pytest.raises(NotEntitled):
        await Bots(read_link(link, server=link), 2).run(asyncio.Event())
    party = Party(f"{link}#invite={table.invite}", 1)
    await table.until(lambda table: len(table.seats) == 1)
    await party.end()


async def test_the_others_play_on_where_seats_are_few(host, server):
    table = await host.open(seats=2)
    party = Party(f"{server}/{table.id}", 3)
    ended, *_ = await party.said(3)
    assert ended.startswith("A bot ended: All 2 seats of this table are taken")
    assert not party.task.done()
    assert len(table.seats) == 2
    await party.end()


async def test_they_end_with_the_table(host, server):
    table, link = await opened(host, server)
    party = Party(link, 2)
    await table.until(lambda table: len(table.seats) == 2)
    await table.close()
    await party.task


async def test_no_server_is_an_error(tmp_path):
    link = read_link("0" * 32, server="ws://127.0.0.1:9/ws")
    with pytest.raises(HouseUnreachable):
        await Bots(link, 2).run(asyncio.Event())
