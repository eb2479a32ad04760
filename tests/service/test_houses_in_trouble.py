"""Several houses over one database, when one of them cannot read, or reads at a bad moment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import DealerError
from dealer.game.commands import (
    Actor,
    CloseRound,
    CommitEntropy,
    Draw,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.proof.keys import player_digest
from dealer.service import deadlines, lookout
from tests.postgres import asked
from tests.service.test_service import HOST, table_of
from tests.service.test_several_houses import OPEN, Houses, Listener, houses, url

__all__ = ["houses", "url"]

NONCE = bytes(32)
UNKNOWN_EVENT = """
WITH u AS (UPDATE stream SET version = version + 1 WHERE id = $1 RETURNING id, version)
INSERT INTO event (stream, version, type, schema, at, public)
SELECT id, version, 'CardFolded', 1, 9999999999999, '{}' FROM u RETURNING 1
"""


async def test_a_table_that_cannot_be_read_holds_up_no_other(
    houses: Houses, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 0.02)
    one, two = await houses(2)
    bad, good = await table_of(one), await table_of(one)
    for table in (bad, good):
        (await two.load(table.table_id)).sessions.add("somebody")
    await asyncio.to_thread(asked, url, UNKNOWN_EVENT, bad.id)
    listener = Listener(two)
    async with asyncio.timeout(20):
        while not two.resident(bad.table_id).reloading:  # noqa: ASYNC110  until it was tried
            await asyncio.sleep(0.01)
    done = await one.call(good, TakeSeat("Eve"))
    await listener.until(done.version)


async def test_who_asks_at_a_table_that_cannot_be_read_is_told_so(houses: Houses, url: str) -> None:
    one, two = await houses(2)
    bad = await table_of(one)
    there = await two.load(bad.table_id)
    await asyncio.to_thread(asked, url, UNKNOWN_EVENT, bad.id)
    for ask in (lambda: two.load(bad.table_id), lambda: two.call(there, Draw(Actor(seat=1)))):
        async with asyncio.timeout(20):
            with pytest.raises(DealerError):
                await ask()


async def test_who_joins_a_load_that_is_under_way_is_not_behind(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await houses(2)
    table = await table_of(one)
    load, has_read, may_end = two.loader.load, asyncio.Event(), asyncio.Event()

    async def slowly(name: bytes) -> Any:
        found = await load(name)
        has_read.set()
        await may_end.wait()
        return found

    monkeypatch.setattr(two.loader, "load", slowly)
    first = asyncio.create_task(two.load(table.table_id))
    async with asyncio.timeout(20):
        await has_read.wait()
        done = await one.call(table, TakeSeat("Eve"))
        second = asyncio.create_task(two.load(table.table_id))
        await asyncio.sleep(0)
        may_end.set()
        assert (await second).committed >= done.version
        await first


async def test_a_table_that_left_memory_while_somebody_came_is_there_again(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await houses(2)
    two.memory.bound = 1
    here, another = await table_of(one), await table_of(one)
    await two.load(here.table_id)
    head, has_looked, may_end = two.log.head, asyncio.Event(), asyncio.Event()

    async def slowly(table: bytes) -> int | None:
        found = await head(table)
        if table == here.id:
            has_looked.set()
            await may_end.wait()
        return found

    monkeypatch.setattr(two.log, "head", slowly)
    coming = asyncio.create_task(two.load(here.table_id))
    async with asyncio.timeout(20):
        await has_looked.wait()
        await two.load(another.table_id)
        assert two.resident(here.table_id) is None
        may_end.set()
        found = await coming
        assert two.resident(here.table_id) is found


async def test_who_waits_for_a_draw_is_told_when_its_shuffle_and_the_next_are_void(
    houses: Houses,
) -> None:
    one, two = await houses(2)
    here = await table_of(one, entropy="players")

    def draw(seat: int) -> asyncio.Task[Any]:
        drawing = one.draw_at_random(here, Actor(seat=seat), count=1, source="deck")
        return asyncio.create_task(drawing)

    waits = draw(1)
    await asyncio.sleep(0)
    for seat in (1, 2):
        digest = player_digest(table=here.id, round=1, k=0, seat=seat, nonce=NONCE)
        await one.call(here, CommitEntropy(Actor(seat=seat), 1, 0, digest))
    await one.call(here, RevealEntropy(Actor(seat=1), 1, 0, NONCE))
    await two.call(await two.load(here.table_id), TakeSeat("Eve"))
    # The shuffle of the first draw ends, and the next one's begins, on a state that is void.
    seals = asyncio.create_task(one.call(here, RevealEntropy(Actor(seat=2), 1, 0, NONCE)))
    await asyncio.sleep(0)
    next_ = draw(2)
    async with asyncio.timeout(20):
        with pytest.raises(DealerError, match="again"):
            await waits
    for task in (seals, next_):
        task.cancel()
    await asyncio.wait((seals, next_))


async def test_a_command_of_a_round_that_this_house_has_not_seen_has_its_answer_here(
    houses: Houses,
) -> None:
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    there.forgetful = True
    for command in (CloseRound(HOST), OPEN, StartShuffle(HOST)):
        await one.call(here, command)
    sent = {"cmd": "c" * 22, "scope": "seat:1", "content": b"x"}
    first = await one.call(here, Draw(Actor(seat=1)), **sent)
    async with asyncio.timeout(20):
        assert await two.call(there, Draw(Actor(seat=1)), **sent) == first


async def test_a_head_that_is_given_is_one_that_this_house_has(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 3600)
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    newest = two.log.newest_checkpoint
    shuffles = [StartShuffle(HOST)]

    async def late(table: bytes, **more: Any) -> Any:
        if shuffles:
            await one.call(here, shuffles.pop())
        return await newest(table, **more)

    monkeypatch.setattr(two.log, "newest_checkpoint", late)
    size, _ = await two.checkpoint(there)
    assert size == there.committed == here.committed


async def test_time_that_cannot_be_written_down_is_not_tried_without_a_pause(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await houses(1)
    table = await table_of(one, entropy="players", commit_ms=100)
    await one.call(table, StartShuffle(HOST))
    monkeypatch.setattr(one.log._writer, "_queue", 0)
    submit, tried, twice = one._desk.submit, 0, asyncio.Event()

    def counted(resident: Any, request: Any) -> None:
        nonlocal tried
        tried += 1
        if tried == 2:
            twice.set()
        submit(resident, request)

    monkeypatch.setattr(one._desk.deadlines, "_submit", counted)
    loop = asyncio.get_running_loop()
    while not tried:  # noqa: ASYNC110  the first try is the timer's own
        await asyncio.sleep(0.01)
    begun = loop.time()
    async with asyncio.timeout(20):
        await twice.wait()
    assert loop.time() - begun > deadlines.RETRY_SECONDS / 2
