"""Draws at random: each happens once, at the seal of its own shuffle, and is told to its seat."""

from __future__ import annotations

import asyncio

import pytest

from dealer.errors import NotYourSeat, ShuffleRunning, Unavailable
from dealer.game.commands import (
    Actor,
    CloseRound,
    CommitEntropy,
    LeaveSeat,
    OpenRound,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.game.events import CardDrawn
from dealer.proof.keys import player_digest
from dealer.service import Done, Resident, Service
from tests.service.test_service import HOST, table_of

NONCE = bytes(32)


async def gather(service: Service, resident: Resident, k: int) -> None:
    """Both players bring their bytes to shuffle k."""
    for seat in (1, 2):
        digest = player_digest(table=resident.id, round=1, k=k, seat=seat, nonce=NONCE)
        await service.call(resident, CommitEntropy(Actor(seat=seat), 1, k, digest))
    for seat in (1, 2):
        await service.call(resident, RevealEntropy(Actor(seat=seat), 1, k, NONCE))


def at_random(service: Service, resident: Resident, seat: int) -> asyncio.Task[Done]:
    """The same wish of a seat each time."""
    sent = {"cmd": "r", "scope": f"seat:{seat}", "content": b"random"}
    draw = service.draw_at_random(resident, Actor(seat=seat), count=2, source="deck", **sent)
    return asyncio.ensure_future(draw)


def hands(resident: Resident) -> list[int]:
    return [len(resident.table.round.cards(f"hand:{seat}")) for seat in (1, 2)]


async def test_sent_again_while_another_shuffle_runs_it_has_its_first_answer(
    service: Service,
) -> None:
    resident = await table_of(service, entropy="players")
    first = at_random(service, resident, 1)
    await asyncio.sleep(0)
    await gather(service, resident, 0)
    mine = await first
    theirs = at_random(service, resident, 2)
    await asyncio.sleep(0)
    again = at_random(service, resident, 1)
    await gather(service, resident, 1)
    assert await again == mine
    assert {event.seat for event in (await theirs).events} == {2}
    assert hands(resident) == [2, 2]
    await service.call(resident, StartShuffle(HOST))
    again = at_random(service, resident, 1)
    await gather(service, resident, 2)
    assert await again == mine
    assert hands(resident) == [2, 2]


async def test_sent_again_in_the_next_round_it_has_its_first_answer(service: Service) -> None:
    resident = await table_of(service, entropy="players")
    first = at_random(service, resident, 1)
    await asyncio.sleep(0)
    await gather(service, resident, 0)
    mine = await first
    await service.call(resident, CloseRound(HOST))
    assert await at_random(service, resident, 1) == mine


async def test_sent_again_after_a_long_shuffle_and_a_restart_it_draws_no_more(
    open_service,
) -> None:
    """The shuffle has more events than are read at one go."""
    service = await open_service()
    resident, _ = await service.open_table({})
    await service.call(resident, TakeSeat("Ann"))
    deck = tuple(f"{n:04}" for n in range(1024))
    await service.call(resident, OpenRound(HOST, deck, "players", 10_000, 10_000))
    sent = {"cmd": "r", "scope": "seat:1", "content": b"random", "count": 1010, "source": "deck"}
    first = asyncio.ensure_future(service.draw_at_random(resident, Actor(seat=1), **sent))
    await asyncio.sleep(0)
    digest = player_digest(table=resident.id, round=1, k=0, seat=1, nonce=NONCE)
    await service.call(resident, CommitEntropy(Actor(seat=1), 1, 0, digest))
    await service.call(resident, RevealEntropy(Actor(seat=1), 1, 0, NONCE))
    done = await first
    other = await open_service()
    again = await other.draw_at_random(await other.load(resident.table_id), Actor(seat=1), **sent)
    assert again == done


async def test_a_draw_whose_player_got_up_is_nobodys(service: Service) -> None:
    """Also if another has taken the seat by the time of the seal."""
    resident = await table_of(service, entropy="players")
    ann = Actor(seat=1, since=resident.table.seats[1].since)
    draw = asyncio.ensure_future(service.draw_at_random(resident, ann, count=2, source="deck"))
    await asyncio.sleep(0)
    await service.call(resident, LeaveSeat(ann))
    await service.call(resident, TakeSeat("Carol", seat=1))
    await gather(service, resident, 0)
    with pytest.raises(NotYourSeat):
        await draw
    assert hands(resident) == [0, 0]


async def test_a_draw_that_was_refused_does_not_happen_later(open_service) -> None:
    """The shuffle that it would have begun was overtaken by another process's."""
    one, two = await open_service(), await open_service()
    here = await table_of(one, entropy="players")
    there = await two.load(here.table_id)
    await two.call(there, StartShuffle(HOST))
    with pytest.raises(ShuffleRunning):
        await at_random(one, here, 1)
    assert here.table.round.shuffle is not None
    await gather(one, here, 0)
    assert hands(here) == [0, 0]


async def test_a_draw_whose_shuffle_another_process_sealed_is_found_by_who_asks_again(
    open_service,
) -> None:
    one, two = await open_service(), await open_service()
    here = await table_of(one, entropy="players")
    lost = at_random(one, here, 1)
    await asyncio.sleep(0)
    there = await two.load(here.table_id)
    while there.table.round.shuffle is None:
        there = await two.load(here.table_id)
    await gather(two, there, 0)
    await one.load(here.table_id)
    with pytest.raises(Unavailable):
        await lost
    done = await at_random(one, here, 1)
    assert [type(event) for event in done.events] == [CardDrawn] * 2
    await one.call(here, StartShuffle(HOST))
    await gather(one, here, 1)
    assert hands(here) == [2, 0]
