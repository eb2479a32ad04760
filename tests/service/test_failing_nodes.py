"""Several nodes over one database, when a read fails or is overtaken by a write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dealer.errors import DealerError
from dealer.game.commands import (
    Actor,
    CloseRound,
    Draw,
    DrawAtRandom,
    RevealEntropy,
    StartShuffle,
    TakeSeat,
)
from dealer.service import IdempotencyKey
from dealer.service.commands import table_lifecycle
from dealer.service.nodes import head_poller
from dealer.service.tables.live_table import TableState
from tests.harness.postgres import query
from tests.service.conftest import OpenNodes
from tests.service.tables import (
    HOST,
    NONCE,
    OPEN_ROUND,
    Listener,
    commit_entropy,
    new_table,
    reveal_entropy,
    shared_table,
)

UNKNOWN_EVENT = """
WITH u AS (UPDATE stream SET version = version + 1 WHERE id = $1 RETURNING id, version)
INSERT INTO event (stream, version, type, schema, at, public)
SELECT id, version, 'CardFolded', 1, 9999999999999, '{}' FROM u RETURNING 1
"""


async def test_a_table_that_cannot_be_read_does_not_delay_others(
    open_nodes: OpenNodes, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 0.02)
    one, two = await open_nodes(2)
    bad, good = await new_table(one), await new_table(one)
    loaded, other = [await two.lifecycle.load(table.table_id) for table in (bad, good)]
    for table in (loaded, other):
        table.subscribers.add("a subscriber")
    await asyncio.to_thread(query, postgres_url, UNKNOWN_EVENT, bad.id)
    listener = Listener(two)
    async with asyncio.timeout(20):
        while loaded.state is TableState.ACTIVE:  # noqa: ASYNC110  until it was tried
            await asyncio.sleep(0.01)
    done = await one.execute(good, TakeSeat("Eve"))
    await listener.until_version(done.version)


async def test_requests_to_a_table_that_cannot_be_read_get_an_error(
    open_nodes: OpenNodes, postgres_url: str
) -> None:
    one, two = await open_nodes(2)
    bad, there = await shared_table(one, two)
    await asyncio.to_thread(query, postgres_url, UNKNOWN_EVENT, bad.id)
    for call in (
        lambda: two.lifecycle.load(bad.table_id),
        lambda: two.execute(there, Draw(Actor(seat=1))),
    ):
        async with asyncio.timeout(20):
            with pytest.raises(DealerError):
                await call()


async def test_a_caller_that_joins_a_running_load_is_up_to_date(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_nodes(2)
    table = await new_table(one)
    load, has_read, may_end = two.loader.load, asyncio.Event(), asyncio.Event()

    async def slowly(name: bytes) -> Any:
        found = await load(name)
        has_read.set()
        await may_end.wait()
        return found

    monkeypatch.setattr(two.loader, "load", slowly)
    first = asyncio.create_task(two.lifecycle.load(table.table_id))
    async with asyncio.timeout(20):
        await has_read.wait()
        done = await one.execute(table, TakeSeat("Eve"))
        second = asyncio.create_task(two.lifecycle.load(table.table_id))
        await asyncio.sleep(0)
        may_end.set()
        assert (await second).committed >= done.version
        await first


async def test_a_table_evicted_during_a_load_is_in_memory_again(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_nodes(2)
    two.tables.bound = 1
    here, another = await new_table(one), await new_table(one)
    await two.lifecycle.load(here.table_id)
    head, has_read, may_end = two.log.head, asyncio.Event(), asyncio.Event()

    async def slowly(table: bytes) -> int | None:
        found = await head(table)
        if table == here.id:
            has_read.set()
            await may_end.wait()
        return found

    monkeypatch.setattr(two.log, "head", slowly)
    loading = asyncio.create_task(two.lifecycle.load(here.table_id))
    async with asyncio.timeout(20):
        await has_read.wait()
        await two.lifecycle.load(another.table_id)
        assert two.tables.get(here.table_id) is None
        may_end.set()
        loaded = await loading
        assert two.tables.get(here.table_id) is loaded


async def test_a_waiting_draw_fails_when_its_shuffle_is_void(
    open_nodes: OpenNodes,
) -> None:
    one, two = await open_nodes(2)
    here = await new_table(one, entropy="players")

    def draw(seat: int) -> asyncio.Task[Any]:
        drawing = one.random_draws.draw(here, DrawAtRandom(Actor(seat=seat)))
        return asyncio.create_task(drawing)

    waiting = draw(1)
    await asyncio.sleep(0)
    await commit_entropy(one, here, 1, 2)
    await reveal_entropy(one, here, 1)
    await two.execute(await two.lifecycle.load(here.table_id), TakeSeat("Eve"))
    # The shuffle of the first draw ends, and the next one's begins, on a state that is void.
    sealing = asyncio.create_task(one.execute(here, RevealEntropy(Actor(seat=2), 1, 0, NONCE)))
    await asyncio.sleep(0)
    next_draw = draw(2)
    async with asyncio.timeout(20):
        with pytest.raises(DealerError, match="again"):
            await waiting
    for task in (sealing, next_draw):
        task.cancel()
    await asyncio.wait((sealing, next_draw))


async def test_a_command_of_a_round_unknown_to_this_node_gets_its_answer(
    open_nodes: OpenNodes,
) -> None:
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    there.stored_commands.evicted = True
    for command in (CloseRound(HOST), OPEN_ROUND, StartShuffle(HOST)):
        await one.execute(here, command)
    sent: dict[str, Any] = {"key": IdempotencyKey("seat:1", "c" * 22, b"x")}
    first = await one.execute(here, Draw(Actor(seat=1)), **sent)
    async with asyncio.timeout(20):
        assert await two.execute(there, Draw(Actor(seat=1)), **sent) == first


async def test_a_signed_head_is_one_that_this_node_has(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 3600)
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    newest = two.log.newest_checkpoint
    shuffles = [StartShuffle(HOST)]

    async def after_a_shuffle(table: bytes, **range_: Any) -> Any:
        if shuffles:
            await one.execute(here, shuffles.pop())
        return await newest(table, **range_)

    monkeypatch.setattr(two.log, "newest_checkpoint", after_a_shuffle)
    size, _ = await two.checkpoints.checkpoint(there)
    assert size == there.committed == here.committed


async def test_a_deadline_that_cannot_be_written_is_retried_with_a_pause(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await open_nodes(1)
    table = await new_table(one, entropy="players", commit_ms=100)
    await one.execute(table, StartShuffle(HOST))
    monkeypatch.setattr(one.log.writer, "_max_queued", 0)
    monkeypatch.setattr(one.log.writer, "full", True)
    submit, attempts, twice = one.processor.submit, 0, asyncio.Event()

    def counted(live_table: Any, request: Any) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            twice.set()
        submit(live_table, request)

    monkeypatch.setattr(one.lifecycle, "_decide", counted)
    loop = asyncio.get_running_loop()
    while not attempts:  # noqa: ASYNC110  the timer makes the first attempt
        await asyncio.sleep(0.01)
    begun = loop.time()
    async with asyncio.timeout(20):
        await twice.wait()
    assert loop.time() - begun > table_lifecycle.DEADLINE_RETRY_SECONDS / 2
