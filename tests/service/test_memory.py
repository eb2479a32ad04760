"""Which tables stay in memory: those in use, and others up to a bound on bytes."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.errors import DatabaseAway, Overloaded, UnknownTable
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.service import Service
from dealer.service import memory as module
from dealer.service.memory import LOADS, Memory
from dealer.service.resident import FIXED, Resident
from tests.gateway.guest import eventually

HOST = Actor(host=True)
ROOT = Path(__file__).parents[2]


class Shelf:
    """Every table is there, and has one event."""

    async def load(self, table: bytes) -> Resident:
        return Resident(table, table.hex(), committed=1)


def names(count: int) -> list[str]:
    return [number.to_bytes(16, "big").hex() for number in range(count)]


async def test_tables_in_use_keep_no_others_in_memory() -> None:
    shelf: Any = Shelf()
    memory = Memory(shelf, bound=100)
    all_ = names(2000)
    used = [await memory.load(name) for name in all_[:40]]
    for resident in used:
        resident.sessions.add("somebody")
    for name in all_[40:]:
        await memory.load(name)
    assert len(memory) <= 140
    assert all(memory.get(resident.table_id) is resident for resident in used)


async def test_tables_are_bounded_by_their_bytes() -> None:
    shelf: Any = Shelf()
    memory = Memory(shelf, bytes_bound=50 * (FIXED + 2000))
    for name in names(1000):
        await memory.load(name)
        assert memory.bytes <= memory.bytes_bound
    assert memory.get(names(1000)[-1]) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from(["keep", "grow", "use", "free", "get"]), st.integers(0, 30)),
        max_size=200,
    )
)
def test_the_least_recently_used_leave_and_never_one_in_use(steps: list[tuple[str, int]]) -> None:
    shelf: Any = Shelf()
    memory = Memory(shelf, bound=20, bytes_bound=10 * (FIXED + 3000))
    residents: dict[int, Resident] = {}
    for what, number in steps:
        resident = residents.get(number)
        if what == "keep" or resident is None:
            resident = Resident(bytes([number] * 16), bytes([number] * 16).hex(), committed=1)
            residents[number] = memory.keep(resident)
        elif what == "grow":
            resident.leaf += "x" * 1000
            memory.weigh(resident)
        elif what == "use" and memory.get(resident.table_id) is resident:
            resident.sessions.add("somebody")
        elif what == "free":
            resident.sessions.clear()
            memory.weigh(resident)
        else:
            memory.get(resident.table_id)
        there = {one.table_id for one in memory}
        assert memory.bytes == sum(one.weight for one in memory)
        for one in residents.values():
            assert one.table_id in there or not one.sessions
        others = [one for one in memory if one.idle()]
        assert not memory.full or len(others) <= 1


async def test_no_table_comes_in_while_those_in_use_take_all_the_room(service: Service) -> None:
    resident, _ = await service.open_table({})
    other, _ = await service.open_table({})
    service.subscribe(resident, "somebody")
    service.memory.bytes_bound = resident.size() - 1
    with pytest.raises(Overloaded, match="take all the memory"):
        await service.open_table({})
    assert service.resident(other.table_id) is None  # it made way, and was not enough
    with pytest.raises(Overloaded) as caught:
        await service.load(other.table_id)
    assert caught.value.temporary
    assert await service.load(resident.table_id) is resident
    await service.call(resident, TakeSeat("a player"))  # play goes on
    service.unsubscribe(resident, "somebody")
    assert (await service.load(other.table_id)).committed == 1


async def test_a_large_table_does_not_grow_when_there_is_no_room_but_ends(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident, _ = await service.open_table({})
    service.subscribe(resident, "somebody")
    await service.call(resident, TakeSeat("a player"))
    opening = OpenRound(HOST, STANDARD, "house", 1000, 1000)
    await service.call(resident, opening)
    await service.call(resident, StartShuffle(HOST))
    service.memory.bytes_bound = 1
    await service.call(resident, Draw(Actor(seat=1)))  # a small table is let go on
    monkeypatch.setattr(module, "SMALL", 10_000)
    for command in (Draw(Actor(seat=1)), StartShuffle(HOST)):
        with pytest.raises(Overloaded, match="close its round"):
            await service.call(resident, command)
    await service.call(resident, CloseRound(HOST))


async def test_a_table_that_is_just_opened_is_there_for_who_opened_it(service: Service) -> None:
    service.memory.bytes_bound = 3 * FIXED
    opened = await asyncio.gather(*(service.open_table({}) for _ in range(3)))
    resident, _ = await service.open_table({})
    assert service.resident(resident.table_id) is resident
    assert len(opened) == 3


async def test_the_ring_is_kept_for_those_who_listen_alone(service: Service) -> None:
    resident, _ = await service.open_table({})
    await service.call(resident, TakeSeat("one"))
    assert not len(resident.ring)
    service.subscribe(resident, "somebody")
    await service.call(resident, TakeSeat("two"))
    assert [entry.version for entry in resident.ring] == [3]
    service.unsubscribe(resident, "somebody")
    assert not len(resident.ring)


async def test_a_failed_load_whose_callers_have_gone_makes_no_noise() -> None:
    class Away:
        async def load(self, table: bytes) -> Resident:
            await go_on.wait()
            raise DatabaseAway("away")

    go_on, heard = asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    shelf: Any = Away()
    memory = Memory(shelf)
    callers = [asyncio.create_task(memory.load(names(1)[0])) for _ in range(3)]
    await eventually(lambda: memory._loading)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    go_on.set()
    await eventually(lambda: not memory._loading)
    del callers, caller
    gc.collect()  # an exception that nobody took is told of once its task is collected
    assert heard == []


async def test_only_so_many_tables_are_read_at_a_time() -> None:
    class Slow:
        async def load(self, table: bytes) -> Resident:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            await asyncio.sleep(0)
            reading -= 1
            return Resident(table, table.hex(), committed=0)

    reading = most = 0
    shelf: Any = Slow()
    memory = Memory(shelf)
    ends = await asyncio.gather(*map(memory.load, names(100)), return_exceptions=True)
    assert most == LOADS
    assert all(isinstance(end, UnknownTable) for end in ends)


@pytest.mark.parametrize(("kind", "count"), [("table", 200), ("large", 40)])
def test_the_estimate_is_about_what_a_process_grows_by(
    kind: str, count: int, tmp_path: Path
) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "tests.service.memory_growth", *arguments]
        return subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120
        ).stdout

    run("make", str(tmp_path), kind, str(count))
    grown, estimated = map(int, run("load", str(tmp_path)).split())
    assert 0.4 < grown / estimated < 2.2, (kind, grown / count, estimated / count)
