"""Practice tables in both clients: a Hearts round, played again from its fifth trick."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dealer.errors import BadRequest, NotEntitled, UnknownTable
from dealer.game.cards import UNKNOWN
from dealer.proof.verify import verify
from dealer.proof.verify.practice import NOT_FAIR
from tests.client.test_scenes import connect
from tests.gateway.http_client import get

__all__ = ["connect"]

RANKS = "23456789TJQKA"
PLAYERS = ("Ada", "Bob", "Cleo", "Dan")
TRICKS = 13


class Hearts:
    """Four clients at one table, who play by a choice of each."""

    def __init__(self, tables: list[Any]) -> None:
        self.tables = tables
        self.versions: list[int] = []
        """The version before each trick."""
        self.played: list[str] = []

    async def play(self, tricks: int, highest: bool) -> None:
        """Each plays its lowest or highest card, of the suit led if it can; the winner collects."""
        for _ in range(tricks):
            self.versions.append(max(table.version for table in self.tables))
            trick: dict[Any, str] = {}
            for table in self.tables:
                led = next(iter(trick.values()), "")
                following = [card for card in table.hand if card[1] == led[1:]] or table.hand
                card = (max if highest else min)(following, key=rank)
                await table.play(card, pile="trick")
                trick[table] = card
            suit = next(iter(trick.values()))[1]
            winner = max(trick, key=lambda table: (trick[table][1] == suit, rank(trick[table])))
            await winner.move("pile:trick", to=f"pile:won:{winner.seat}", whole=True)
            for table in self.tables:
                await table.until(lambda table: not table.piles.get("trick"))
            self.played += trick.values()


def rank(card: str) -> int:
    return RANKS.index(card[0])


@pytest.fixture
async def houses(connect: Any) -> AsyncIterator[list[Any]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(name=name)) for name in PLAYERS]


async def sit(houses: list[Any], opened: Any) -> list[Any]:
    """All of them in the seats from 1 on."""
    return [await house.join(opened.id, seat=seat) for seat, house in enumerate(houses, 1)]


async def dealt(houses: list[Any], **rules: Any) -> list[Any]:
    """A Hearts table in the middle of its first round, nothing played yet."""
    tables = await sit(houses, await houses[0].open(seats=4, rules={"game": "hearts", **rules}))
    await tables[0].round_open(entropy="house")
    await tables[0].shuffle()
    await tables[0].deal(TRICKS)
    for table in tables:
        await table.until(lambda table: len(table.hand) == TRICKS)
    return tables


async def bundle(server: Any, table: Any) -> list[str]:
    answer = await get(server.port, f"/tables/{table.id}/bundle.jsonl", connection="close")
    assert answer.status == 200
    return answer.text.splitlines()


async def test_hearts_is_played_on_from_trick_five_with_other_cards(
    houses: list[Any], real_server: Any
) -> None:
    first = Hearts(await dealt(houses))
    await first.play(4, highest=False)
    hands = [list(table.hand) for table in first.tables]
    won = {name: list(cards) for name, cards in first.tables[0].piles.items() if cards}
    await first.play(TRICKS - 4, highest=False)
    await first.tables[0].round_close()
    assert first.tables[0].practice is None

    source = {"table": first.tables[0].id, "round": 1, "version": first.versions[4]}
    again = Hearts(await sit(houses, await houses[2].open(from_=source)))
    for table, hand in zip(again.tables, hands, strict=True):
        await table.until(lambda table: UNKNOWN not in table.hand)
        assert table.hand == hand
    assert {name: cards for name, cards in again.tables[0].piles.items() if cards} == won
    assert {table.id for table in again.tables} != {first.tables[0].id}
    for table in again.tables:
        rule = dict(table.practice)
        assert len(rule.pop("root")) == 64
        assert rule == source
        assert table.doubts == [NOT_FAIR]
    await again.play(TRICKS - 4, highest=True)
    assert sorted(again.played) == sorted(first.played[16:])
    assert again.played != first.played[16:]
    host = again.tables[2]
    await host.round_close()
    for table in again.tables:  # each has replayed the round with the revealed secret
        await table.until(lambda table: table.round is None)
        assert table.doubts == [NOT_FAIR]

    origin = await bundle(real_server, first.tables[0])
    report = verify(await bundle(real_server, host), source=origin)
    assert report.fault is None
    assert report.practice is not None
    assert report.practice.source == "proved"


async def test_the_same_shuffle_of_a_private_table_with_the_stored_token(
    houses: list[Any], connect: Any
) -> None:
    tables = await dealt(houses, watch="nobody")
    hand = list(tables[1].hand)
    await tables[0].round_close()
    source = {"table": tables[0].id, "round": 1}
    again = await sit(houses, await houses[1].open(from_=source, name="Again"))
    assert again[1].hand == []
    assert not any(again[1].piles.values())
    await again[1].deal(TRICKS)
    await again[1].until(lambda table: len(table.hand) == TRICKS)
    assert again[1].hand == hand
    async with connect(name="Eve") as stranger:
        with pytest.raises(UnknownTable, match=r"^There is no table with that id from which"):
            await stranger.open(from_=source)


async def test_what_a_server_refuses_to_lay_out(houses: list[Any]) -> None:
    tables = await dealt(houses)
    source = {"table": tables[0].id, "round": 1}
    with pytest.raises(NotEntitled, match=r"^Round 1 is still open: "):
        await houses[0].open(from_=source)
    await tables[0].round_close()
    with pytest.raises(BadRequest, match=r"^Version 2 is not of round 1: "):
        await houses[0].open(from_={**source, "version": 2})
    with pytest.raises(BadRequest, match=r"^A practice table has its source's rules: "):
        await houses[0].open(from_=source, seats=3)
    with pytest.raises(BadRequest):
        await houses[0].open(from_={**source, "moment": 2})
