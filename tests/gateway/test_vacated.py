"""A seat that changes hands: who had it before sees and does nothing in the next one's name."""

from __future__ import annotations

import secrets

import pytest

from dealer.eventlog import Log
from dealer.eventlog.house import key_file, open_house
from dealer.game.commands import Actor, Draw, LeaveSeat, TakeSeat
from dealer.service import Service
from tests.gateway.guest import Refusal
from tests.gateway.tables import promise, reveal, seat_all, shuffled
from tests.gateway.test_views import codes_in


async def test_a_draw_that_waits_ends_with_its_player(gateway, arrive) -> None:
    table = await seat_all(arrive, gateway, players=2)
    ann, bob = table.players
    await table.host.ask("round.open")
    waiting = ann.send("deck.draw", from_="random", count=2)
    await ann.seen(4)
    await ann.ask("table.leave")
    carol = await arrive(gateway)
    joined = await carol.ask("table.join", table=table.id, name="Carol")
    assert joined["seat"] == 1
    table.players, table.joined = [carol, bob], [joined, table.joined[1]]
    await promise(table)
    await reveal(table)
    await carol.until(lambda: any(event["type"] == "DeckSealed" for event in carol.events))
    with pytest.raises(Refusal) as caught:
        await waiting
    assert caught.value.reason == "not_your_seat"
    assert not any(event["type"] == "CardDrawn" for event in carol.events)
    assert codes_in(ann.frames) == set()


async def test_who_comes_back_to_a_seat_that_another_had_left_sees_from_it(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=2, watch="nobody")
    await table.players[0].ask("table.leave")
    carol = await arrive(gateway)
    joined = await carol.ask("table.join", table=table.id, name="Carol")
    assert joined["seat"] == 1
    drawn = await carol.ask("deck.draw")
    await carol.leave()
    back = await arrive(gateway)
    await back.ask("table.resume", table=table.id, token=joined["token"], after=0)
    await back.seen(drawn["version"])
    assert [e["private"]["card"] for e in back.events if "private" in e] == drawn["cards"]


async def test_who_joins_a_private_table_again_is_told_again(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=1, watch="nobody")
    ann = table.players[0]
    other = await arrive(gateway)
    await other.ask("table.leave", table=table.id, token=table.tokens[0])
    await ann.ask("table.join", table=table.id, name="Ann again")
    drawn = await ann.ask("deck.draw")
    await ann.seen(drawn["version"])
    assert ann.events[-1]["private"]["card"] == drawn["cards"][0]


@pytest.mark.parametrize("watch", ["anyone", "nobody"])
async def test_who_got_up_elsewhere_is_told_no_card_of_who_sat_there_next(
    gateway, arrive, tmp_path, watch
) -> None:
    """All of it happened at another process, and is told here at one go."""
    table = await shuffled(arrive, gateway, players=1, watch=watch)
    ann, url = table.players[0], f"sqlite:///{tmp_path / 'dealer.db'}"
    async with await Log.open(url) as log:
        key = await open_house(log, key_file(url), fresh=secrets.token_bytes(32))
        other = Service(log, key)
        there = await other.load(table.id)
        left = await other.call(there, LeaveSeat(Actor(seat=1)))
        await other.call(there, TakeSeat("Carol", seat=1))
        drawn = await other.call(there, Draw(Actor(seat=1), 3))
        await other.close()
    await gateway.floor.service.load(table.id)
    last = left.version if watch == "nobody" else drawn.version
    await ann.seen(last)
    await ann.ask("ping")
    assert codes_in(ann.frames) == set()
    assert ann.versions[-1] == last
