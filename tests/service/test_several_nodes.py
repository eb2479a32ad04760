"""Several nodes over one PostgreSQL database: each of them serves every table."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import Overloaded, Refused, Unavailable, VersionConflict
from dealer.eventlog.postgres import reader as hints
from dealer.game.commands import Actor, CheckDeadlines, CloseRound, Draw, StartShuffle, TakeSeat
from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR
from dealer.proof.verify import verify
from dealer.service import IdempotencyKey, Service
from dealer.service.build import open_service
from dealer.service.nodes import head_poller
from tests.harness.postgres import OwnServer, query
from tests.service.conftest import OpenNodes
from tests.service.tables import (
    HOST,
    OPEN_ROUND,
    Listener,
    bundle_of,
    new_table,
    round_of,
    shared_table,
    shuffled_table,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("way", ["hint", "poll"])
async def test_events_of_one_node_are_published_by_the_other(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """With the hints alone, and with every hint lost."""
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 3600 if way == "hint" else 0.02)
    if way == "poll":
        monkeypatch.setattr(hints.Notifier, "notify", lambda self, tables: None)
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    there.subscribers.add("a subscriber")
    listener = Listener(two)
    begun = there.committed
    await one.execute(here, StartShuffle(HOST))
    for _ in range(3):
        await one.execute(here, Draw(Actor(seat=1)))
        if way == "hint":
            two.head_poller.on_hint({there.id})  # the notifiers may not be connected yet
    await listener.until_version(here.committed)
    assert listener.versions == list(range(begun + 1, here.committed + 1))
    assert there.table == here.table
    assert there.tree.root() == here.tree.root()
    there.subscribers.clear()


async def test_a_command_that_changes_nothing_knows_what_the_other_node_answered(
    open_nodes: OpenNodes,
) -> None:
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    taken = await two.execute(there, TakeSeat("Eve"))
    assert here.committed < taken.version
    assert (await one.execute(here, CheckDeadlines(0))).version == taken.version


async def test_a_conflict_reads_the_tail_and_not_the_table(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_nodes(2)
    here = await shuffled_table(one)
    there = await two.lifecycle.load(here.table_id)
    for service in (one, two):

        async def never(*_: object) -> None:
            raise AssertionError("the whole table was read")

        monkeypatch.setattr(service.loader, "load", never)
    reads: list[int] = []
    read = two.log.read

    async def recorded_read(table: bytes, *, after: int = 0, **range_: Any) -> Any:
        reads.append(after)
        return await read(table, after=after, **range_)

    monkeypatch.setattr(two.log, "read", recorded_read)
    async with asyncio.timeout(30):
        for turn in range(12):
            done = await one.execute(here, Draw(Actor(seat=1)))
            assert there.committed < done.version
            await two.execute(there, Draw(Actor(seat=2)), key=IdempotencyKey("s", f"c{turn}"))
            await one.lifecycle.load(here.table_id)
    assert reads
    assert min(reads) > 50
    assert here.table == there.table
    assert here.tree.root() == there.tree.root()
    for viewer in (SPECTATOR, SeatHolder(1, 0), SeatHolder(2, 0)):
        mine = await one.checkpoints.snapshot(here, viewer)
        others = await two.checkpoints.snapshot(there, viewer)
        assert mine.state == others.state
    await two.execute(there, CloseRound(HOST))
    await one.lifecycle.load(here.table_id)
    await one.execute(here, OPEN_ROUND)
    await two.lifecycle.load(here.table_id)
    await two.execute(there, StartShuffle(HOST))
    assert verify(await bundle_of(two, there)).fault is None


async def test_a_load_during_an_append_has_the_events_of_others(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that saw more at the other node would be treated as one of another log."""
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    await one.execute(here, StartShuffle(HOST))
    in_flight: list[Any] = []
    submit, head = two.log.writer.submit, two.log.head

    async def submit_after_the_read(table: bytes) -> int | None:
        version = await head(table)
        if in_flight:
            submit(in_flight.pop())
        return version

    monkeypatch.setattr(two.log, "head", submit_after_the_read)
    monkeypatch.setattr(two.log.writer, "submit", in_flight.append)
    joining = asyncio.create_task(two.execute(there, TakeSeat("Eve")))
    async with asyncio.timeout(20):
        while not there.in_flight:  # noqa: ASYNC110  the task has been created only
            await asyncio.sleep(0)
        monkeypatch.setattr(two.log.writer, "submit", submit)
        assert (await two.lifecycle.load(here.table_id)).committed >= here.committed
        await joining


async def test_a_cancelled_caller_does_not_stop_a_reload(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    await one.execute(here, StartShuffle(HOST))
    advance, begun, may_end = two.loader.advance, asyncio.Event(), asyncio.Event()

    async def slowly(live_table: Any) -> Any:
        begun.set()
        await may_end.wait()
        return await advance(live_table)

    monkeypatch.setattr(two.loader, "advance", slowly)
    loading = asyncio.create_task(two.lifecycle.load(here.table_id))
    async with asyncio.timeout(20):
        await begun.wait()
        loading.cancel()
        await asyncio.wait((loading,))
        may_end.set()
        assert (await two.lifecycle.load(here.table_id)).committed == here.committed
        await two.execute(there, Draw(Actor(seat=1)))


async def test_a_command_executed_elsewhere_during_the_search_is_not_refused(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that it would be refused for is void: the other node's event has its number."""
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    there.stored_commands.evicted = True
    expect = here.committed
    sent: dict[str, Any] = {"key": IdempotencyKey("s", "once", b"x"), "expect": expect}
    find_command, submit = two.reader.find_command, two.log.writer.submit
    in_flight: list[Any] = []
    monkeypatch.setattr(two.log.writer, "submit", in_flight.append)
    searched, may_continue = asyncio.Event(), asyncio.Event()

    async def slowly(live_table: Any, name: str) -> Any:
        found = await find_command(live_table, name)
        searched.set()
        await may_continue.wait()
        return found

    monkeypatch.setattr(two.reader, "find_command", slowly)
    ahead = asyncio.create_task(two.execute(there, TakeSeat("Bob")))
    late = asyncio.create_task(two.execute(there, TakeSeat("Eve"), **sent))
    async with asyncio.timeout(20):
        await searched.wait()
        first = await one.execute(here, TakeSeat("Eve"), **sent)
        assert first.version == there.table.version == expect + 1
        monkeypatch.setattr(two.log.writer, "submit", submit)
        submit(in_flight.pop())
        await ahead
        may_continue.set()
        assert await late == first


async def test_a_command_allowed_by_another_nodes_events_is_not_refused(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_poller, "POLL_SECONDS", 3600)
    monkeypatch.setattr(hints.Notifier, "notify", lambda self, tables: None)
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    await one.execute(here, StartShuffle(HOST))
    drawn = await asyncio.gather(*(two.execute(there, Draw(Actor(seat=1))) for _ in range(20)))
    assert len({done.version for done in drawn}) == 20


async def test_an_illegal_command_is_refused_after_one_read(
    open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await open_nodes(1)
    here = await new_table(one)
    head, reads = one.log.head, 0

    async def counted(table: bytes) -> int | None:
        nonlocal reads
        reads += 1
        return await head(table)

    monkeypatch.setattr(one.log, "head", counted)
    draws = (one.execute(here, Draw(Actor(seat=1))) for _ in range(20))
    for refused in await asyncio.gather(*draws, return_exceptions=True):
        assert isinstance(refused, Refused)
    assert reads <= 2


async def test_a_command_executed_elsewhere_gets_its_first_answer(open_nodes: OpenNodes) -> None:
    one, two = await open_nodes(2)
    here, there = await shared_table(one, two)
    sent: dict[str, Any] = {"key": IdempotencyKey("s", "once", b"x")}
    first = await one.execute(here, TakeSeat("Eve"), **sent)
    assert await two.execute(there, TakeSeat("Eve"), **sent) == first
    assert [p.name for p in there.table.seats.values()].count("Eve") == 1


async def test_commands_from_three_nodes_have_one_order(open_nodes: OpenNodes) -> None:
    services = await open_nodes(3)
    first = await new_table(services[0], players=3)
    await services[0].execute(first, StartShuffle(HOST))
    tables = [await service.lifecycle.load(first.table_id) for service in services]

    async def play(service: Service, live_table: Any, seat: int) -> None:
        for number in range(12):
            while True:
                try:
                    await service.execute(
                        live_table,
                        Draw(Actor(seat=seat)),
                        key=IdempotencyKey(f"{seat}", f"{number}"),
                    )
                    break
                except (VersionConflict, Overloaded):
                    continue

    await asyncio.gather(
        *(
            play(service, t, n)
            for n, (service, t) in enumerate(zip(services, tables, strict=True), 1)
        )
    )
    for service, table in zip(services, tables, strict=True):
        await service.lifecycle.load(table.table_id)
        assert [len(round_of(table).cards(f"hand:{seat}")) for seat in (1, 2, 3)] == [12] * 3
    assert len({table.tree.root() for table in tables}) == 1
    assert verify(await bundle_of(services[0], tables[0])).fault is None


async def test_a_rewound_log_is_read_again(postgres_url: str, open_nodes: OpenNodes) -> None:
    (one,) = await open_nodes(1)
    here = await new_table(one)
    await one.execute(here, TakeSeat("forgotten"))
    here.savepoint = None
    here.refresh_savepoint()  # at the newest version, which the log will lose
    last = here.committed
    for statement in (
        "ALTER TABLE event DISABLE TRIGGER USER",
        f"DELETE FROM event WHERE version = {last}",
        f"UPDATE stream SET version = {last - 1}",
        "ALTER TABLE event ENABLE TRIGGER USER",
    ):
        query(postgres_url, statement)
    await one.execute(here, TakeSeat("Eve"))
    assert here.table.version == here.committed == last
    assert "Eve" in [player.name for player in here.table.seats.values()]
    assert "forgotten" not in [player.name for player in here.table.seats.values()]


async def test_commands_are_unavailable_while_the_database_is(
    own_postgres: OwnServer, tmp_path: Path
) -> None:
    url = own_postgres.url(own_postgres.database())
    sent: dict[str, Any] = {"key": IdempotencyKey("s", "again", b"x")}
    async with open_service(url, house_key=tmp_path / "key", busy_seconds=0.2) as service:
        live_table = await shuffled_table(service)
        before = live_table.committed
        await asyncio.to_thread(own_postgres.stop)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await service.execute(live_table, Draw(Actor(seat=1)), **sent)
        await asyncio.to_thread(own_postgres.start)
        async with asyncio.timeout(30):
            while True:
                try:
                    done = await service.execute(live_table, Draw(Actor(seat=1)), **sent)
                    break
                except Unavailable:
                    continue
        assert done.version == before + 1
        assert len(round_of(live_table).cards("hand:1")) == 1
        assert await service.execute(live_table, Draw(Actor(seat=1)), **sent) == done
        assert verify(await bundle_of(service, live_table)).fault is None
