"""Table cache: tables in use stay in memory, idle ones up to a bound on bytes."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import DatabaseUnavailable, Overloaded, UnknownTable
from dealer.eventlog import services
from dealer.eventlog.recent import RecentEvents
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw, StartShuffle, TakeSeat
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.tables.cache import EVENTS, LOADS, TableCache
from dealer.service.tables.live_table import SUBSCRIBER_BYTES, TABLE_BYTES, LiveTable
from tests.gateway.rpc_client import eventually
from tests.service.tables import HOST, OPEN_ROUND, shuffled_table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


class FakeLoader:
    """Loads any table, with one event."""

    async def load(self, table: bytes) -> LiveTable:
        return LiveTable(table, table.hex(), committed=1)


def table_ids(count: int) -> list[str]:
    return [number.to_bytes(16, "big").hex() for number in range(count)]


async def test_tables_in_use_stay_and_idle_ones_are_evicted() -> None:
    loader: Any = FakeLoader()
    cache = TableCache(loader, RecentEvents(), Projector(), bound=100)
    all_ = table_ids(2000)
    used = [await cache.load(table) for table in all_[:40]]
    for live_table in used:
        live_table.subscribers.add("a subscriber")
    for table in all_[40:]:
        await cache.load(table)
    assert len(cache) <= 140
    assert all(cache.get(live_table.table_id) is live_table for live_table in used)


async def test_tables_are_bounded_by_their_bytes() -> None:
    loader: Any = FakeLoader()
    cache = TableCache(loader, RecentEvents(), Projector(), bytes_bound=50 * (TABLE_BYTES + 2000))
    for table in table_ids(1000):
        await cache.load(table)
        assert cache.bytes <= cache.bytes_bound
    assert cache.get(table_ids(1000)[-1]) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "grow", "use", "free", "get"]), st.integers(0, 30)),
        max_size=200,
    )
)
def test_no_table_in_use_is_evicted_and_the_others_are_bounded(
    steps: list[tuple[str, int]],
) -> None:
    loader: Any = FakeLoader()
    cache = TableCache(
        loader,
        RecentEvents(),
        Projector(),
        bound=20,
        bytes_bound=10 * (TABLE_BYTES + 3000),
    )
    live_tables: dict[int, LiveTable] = {}
    for step, number in steps:
        live_table = live_tables.get(number)
        if step == "add" or live_table is None:
            live_table = LiveTable(bytes([number] * 16), bytes([number] * 16).hex(), committed=1)
            live_tables[number] = cache.add(live_table)
        elif step == "grow":
            live_table.leaf += "x" * 1000
            cache.weigh(live_table)
        elif step == "use" and cache.get(live_table.table_id) is live_table:
            live_table.subscribers.add("a subscriber")
        elif step == "free":
            live_table.subscribers.clear()
            cache.weigh(live_table)
        else:
            cache.get(live_table.table_id)
        cached = {one.table_id for one in cache}
        assert cache.bytes == sum(one.weight for one in cache)
        for one in live_tables.values():
            assert one.table_id in cached or not one.subscribers
        idle = [one for one in cache if one.idle()]
        assert not cache.full or len(idle) <= 1


async def test_no_table_is_loaded_while_those_in_use_fill_the_cache(service: Service) -> None:
    live_table, _ = await service.open_table({})
    other, _ = await service.open_table({})
    service.subscribe(live_table, "a subscriber")
    service.tables.bytes_bound = live_table.size() - 1
    with pytest.raises(Overloaded, match="take all the memory"):
        await service.open_table({})
    assert service.tables.get(other.table_id) is None  # it was evicted, which was not enough
    with pytest.raises(Overloaded) as caught:
        await service.lifecycle.load(other.table_id)
    assert caught.value.temporary
    assert await service.lifecycle.load(live_table.table_id) is live_table
    await service.execute(live_table, TakeSeat("a player"))  # tables in memory can be played at
    service.unsubscribe(live_table, "a subscriber")
    assert (await service.lifecycle.load(other.table_id)).committed == 1


async def test_viewers_of_a_broadcast_count_as_spectators_do(service: Service) -> None:
    live_table, _ = await service.open_table({"broadcast": 0})
    link = await service.broadcasts.link(live_table, services.HOST)
    broadcast = await service.broadcasts.find(live_table.table_id, link)
    service.tables.weigh(live_table)
    before = service.tables.used
    for watched in (live_table, broadcast):
        for number in range(1000):
            service.subscribe(watched, number)
        assert service.tables.used == before + 1000 * SUBSCRIBER_BYTES
        for number in range(1000):
            service.unsubscribe(watched, number)
        assert service.tables.used == before
    # As long as one watches, the table stays.
    service.subscribe(broadcast, "a viewer")
    service.tables.bytes_bound = 1
    with pytest.raises(Overloaded, match="take all the memory"):
        await service.open_table({})
    assert service.tables.get(live_table.table_id) is live_table


async def test_a_large_table_may_end_but_not_grow_without_room(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_table, _ = await service.open_table({})
    service.subscribe(live_table, "a subscriber")
    await service.execute(live_table, TakeSeat("a player"))
    await service.execute(live_table, OPEN_ROUND)
    await service.execute(live_table, StartShuffle(HOST))
    service.tables.bytes_bound = 1
    await service.execute(live_table, Draw(Actor(seat=1)))  # a small table may grow
    service.tables.small = 10_000
    for command in (Draw(Actor(seat=1)), StartShuffle(HOST)):
        with pytest.raises(Overloaded, match="close its round"):
            await service.execute(live_table, command)
    await service.execute(live_table, CloseRound(HOST))


async def test_a_new_table_stays_in_memory_for_its_opener(service: Service) -> None:
    service.tables.bytes_bound = 3 * TABLE_BYTES
    opened = await asyncio.gather(*(service.open_table({}) for _ in range(3)))
    live_table, _ = await service.open_table({})
    assert service.tables.get(live_table.table_id) is live_table
    assert len(opened) == 3


async def test_events_are_kept_for_subscribers_and_the_projector(service: Service) -> None:
    def kept() -> list[int]:
        found = service.recent.between(live_table.id, 2, live_table.committed) or ()
        return [event.version for event in found]

    def project() -> None:
        service.recent.projected([table for table, _ in service.recent.take(99)])

    live_table, _ = await service.open_table({})
    await service.execute(live_table, TakeSeat("one"))
    assert kept() == [2]
    project()
    assert kept() == []
    service.subscribe(live_table, "a subscriber")
    await service.execute(live_table, TakeSeat("two"))
    project()
    assert service.recent.between(live_table.id, 3, 3)
    service.unsubscribe(live_table, "a subscriber")
    assert service.recent.bytes == 0
    await service.execute(live_table, TakeSeat("three"))
    assert service.recent.between(live_table.id, 4, 4), "it is not projected yet"


async def test_a_failed_load_without_callers_logs_nothing() -> None:
    class UnreachableLoader:
        async def load(self, table: bytes) -> LiveTable:
            await may_fail.wait()
            raise DatabaseUnavailable("unreachable")

    may_fail, reported = asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    loader: Any = UnreachableLoader()
    cache = TableCache(loader, RecentEvents(), Projector())
    callers = [asyncio.create_task(cache.load(table_ids(1)[0])) for _ in range(3)]
    await eventually(lambda: cache._loading)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    may_fail.set()
    await eventually(lambda: not cache._loading)
    del callers, caller
    gc.collect()  # an unretrieved exception is reported when its task is collected
    assert reported == []


async def test_a_load_does_not_take_the_absence_that_an_earlier_one_found() -> None:
    """The earlier one had read the log before the table was opened there."""
    versions, may_read = [0, 1], asyncio.Event()

    class SlowLoader:
        async def load(self, table: bytes) -> LiveTable:
            found = LiveTable(table, table.hex(), committed=versions.pop(0))
            await may_read.wait()
            return found

    loader: Any = SlowLoader()
    cache, table = TableCache(loader, RecentEvents(), Projector()), table_ids(1)[0]
    earlier = asyncio.create_task(cache.load(table))
    await eventually(lambda: cache._loading)
    later = asyncio.create_task(cache.load(table))
    may_read.set()
    assert (await later).committed == 1
    with pytest.raises(UnknownTable):
        await earlier


async def test_concurrent_loads_are_limited() -> None:
    loading = most = 0

    class CountingLoader:
        async def load(self, table: bytes) -> LiveTable:
            nonlocal loading, most
            loading += 1
            most = max(most, loading)
            await asyncio.sleep(0)
            loading -= 1
            return LiveTable(table, table.hex(), committed=0)

    loader: Any = CountingLoader()
    cache = TableCache(loader, RecentEvents(), Projector())
    results = await asyncio.gather(*map(cache.load, table_ids(100)), return_exceptions=True)
    assert most == LOADS
    assert all(isinstance(result, UnknownTable) for result in results)


async def test_a_table_is_weighed_when_a_round_or_the_table_closes(service: Service) -> None:
    """Else an idle table counts with the cards of a round that it no longer has."""
    live_table = await shuffled_table(service)
    with_cards = live_table.weight
    for command in (CloseRound(HOST), CloseTable(HOST)):
        await service.execute(live_table, command)
        assert live_table.weight == live_table.size()
        assert live_table.weight < with_cards / 2
        assert service.tables.bytes == live_table.weight


async def test_an_append_counts_no_longer_than_it_is_in_flight(service: Service) -> None:
    """Else a table that had a burst of draws counts its requests for as long as it is idle."""
    opened, _ = await service.open_table({})
    assert opened.weight == opened.size()
    live_table = await shuffled_table(service)
    await asyncio.gather(
        *(service.execute(live_table, Draw(Actor(seat=1))) for _ in range(EVENTS + 4))
    )
    assert live_table.weight == live_table.size()


def memory_growth(*arguments: str, **environment: str) -> list[int]:
    """The figures that the program prints."""
    # With one heap for all threads, what they allocate by chance does not grow the process.
    printed = subprocess.run(
        [sys.executable, "-m", "tests.service.memory_growth", *arguments],
        cwd=ROOT,
        env=os.environ | {"MALLOC_ARENA_MAX": "1"} | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    return [int(each) for each in printed.split()]


@pytest.mark.parametrize(
    ("kind", "count"), [("table", 200), ("closed", 200), ("commands", 200), ("large", 40)]
)
def test_the_estimate_is_near_the_growth_of_a_process(
    kind: str, count: int, tmp_path: Path
) -> None:
    memory_growth("make", str(tmp_path), kind, str(count))
    grown, estimated = memory_growth("load", str(tmp_path))
    assert 0.75 < grown / estimated < 1.25, (kind, grown / count, estimated / count)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        *(("unload", kind) for kind in ("empty", "table", "drawing", "closed", "commands")),
        *(("forget", kind) for kind in ("empty", "closed")),
    ],
)
def test_what_is_counted_is_freed_when_it_leaves_memory(
    stage: str, kind: str, tmp_path: Path
) -> None:
    """Idle tables with the projector's states of them; and the events of the newest rounds."""
    count = 40 if stage == "forget" else 100  # its events do not fill the memory of recent ones
    freed, counted = memory_growth(stage, str(tmp_path), kind, str(count), PYTHONMALLOC="malloc")
    assert 0.75 < freed / counted < 1.25, (stage, kind, freed / count, counted / count)
