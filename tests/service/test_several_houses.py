"""Several houses over one server's database: each plays any table, and none notices the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import Conflicted, Overloaded, Refused, Unavailable
from dealer.eventlog import hints
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.game.view import SPECTATOR, Viewer
from dealer.proof.verify import verify
from dealer.service import Published, Service, lookout
from dealer.service.opening import open_service
from tests.postgres import OwnServer, Postgres, asked, own_server
from tests.service.test_service import HOST, bundle_of, table_of

Houses = Callable[..., Any]

OPEN = OpenRound(HOST, STANDARD, "house", 10_000, 10_000)


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    database = postgres.database()
    yield postgres.url(database)
    postgres.drop(database)


@pytest.fixture
async def houses(url: str, tmp_path: Path) -> AsyncIterator[Houses]:
    async with AsyncExitStack() as stack:

        async def open_(count: int) -> list[Service]:
            return [
                await stack.enter_async_context(open_service(url, house_key=tmp_path / "house.key"))
                for _ in range(count)
            ]

        yield open_


class Listener:
    """Somebody who listens at a table, and counts what is published."""

    def __init__(self, service: Service) -> None:
        self.versions: list[int] = []
        self.news = asyncio.Event()
        service.publish = self.publish

    def publish(self, resident: object, news: Published) -> None:
        self.versions += [entry.version for entry in news.entries]
        self.news.set()

    async def until(self, version: int) -> None:
        async with asyncio.timeout(20):
            while version not in self.versions:
                self.news.clear()
                await self.news.wait()


@pytest.mark.parametrize("way", ["hint", "poll"])
async def test_what_one_house_writes_the_other_publishes(
    houses: Houses, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """With the hints alone, and with every hint lost."""
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 3600 if way == "hint" else 0.02)
    if way == "poll":
        monkeypatch.setattr(hints.Hints, "tell", lambda self, tables: None)
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    there.sessions.add("somebody")
    listener = Listener(two)
    begun = there.committed
    await one.call(here, StartShuffle(HOST))
    for _ in range(3):
        await one.call(here, Draw(Actor(seat=1)))
        if way == "hint":
            two.lookout.hinted({there.id})  # the lines of the hints may not be there yet
    await listener.until(here.committed)
    assert listener.versions == list(range(begun + 1, here.committed + 1))
    assert there.table == here.table
    assert there.tree.root() == here.tree.root()
    there.sessions.clear()


async def test_a_conflict_reads_the_tail_and_not_the_table(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await houses(2)
    here = await table_of(one)
    await one.call(here, StartShuffle(HOST))
    there = await two.load(here.table_id)
    for service in (one, two):

        async def never(*_: object) -> None:
            raise AssertionError("the whole table was read")

        monkeypatch.setattr(service.loader, "load", never)
    read: list[int] = []
    plain = two.log.read

    async def reading(table: bytes, *, after: int = 0, **more: Any) -> Any:
        read.append(after)
        return await plain(table, after=after, **more)

    monkeypatch.setattr(two.log, "read", reading)
    async with asyncio.timeout(30):
        for turn in range(12):
            done = await one.call(here, Draw(Actor(seat=1)))
            assert there.committed < done.version
            await two.call(there, Draw(Actor(seat=2)), cmd=f"c{turn}", scope="s")
            await one.load(here.table_id)
    assert read
    assert min(read) > 50
    assert here.table == there.table
    assert here.tree.root() == there.tree.root()
    for viewer in (SPECTATOR, Viewer(seat=1), Viewer(seat=2)):
        mine, others = await one.snapshot(here, viewer), await two.snapshot(there, viewer)
        assert mine.state == others.state
    await two.call(there, CloseRound(HOST))
    await one.load(here.table_id)
    await one.call(here, OPEN)
    await two.load(here.table_id)
    await two.call(there, StartShuffle(HOST))
    assert verify(await bundle_of(two, there)).fault is None


async def test_who_comes_while_a_wish_is_on_its_way_finds_what_others_wrote(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saw more at the other house would be taken for somebody from another log."""
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    await one.call(here, StartShuffle(HOST))
    on_its_way: list[Any] = []
    submit, head = two.log.submit, two.log.head

    async def looked(table: bytes) -> int | None:
        found = await head(table)
        if on_its_way:
            submit(on_its_way.pop())
        return found

    monkeypatch.setattr(two.log, "head", looked)
    monkeypatch.setattr(two.log, "submit", on_its_way.append)
    wish = asyncio.create_task(two.call(there, TakeSeat("Eve")))
    async with asyncio.timeout(20):
        while not there.in_flight:  # noqa: ASYNC110  a task that has only just been begun
            await asyncio.sleep(0)
        monkeypatch.setattr(two.log, "submit", submit)
        assert (await two.load(here.table_id)).committed >= here.committed
        await wish


async def test_who_goes_while_a_table_is_read_anew_leaves_it_to_the_others(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    await one.call(here, StartShuffle(HOST))
    advance, begun, may_end = two.loader.advance, asyncio.Event(), asyncio.Event()

    async def slowly(resident: Any) -> Any:
        begun.set()
        await may_end.wait()
        return await advance(resident)

    monkeypatch.setattr(two.loader, "advance", slowly)
    comes = asyncio.create_task(two.load(here.table_id))
    async with asyncio.timeout(20):
        await begun.wait()
        comes.cancel()
        await asyncio.wait((comes,))
        may_end.set()
        assert (await two.load(here.table_id)).committed == here.committed
        await two.call(there, Draw(Actor(seat=1)))


async def test_a_command_that_is_done_elsewhere_while_it_is_looked_for_is_not_refused(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was refused for never came to be: the other house's event stands in that place."""
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    there.forgetful = True
    expect = here.committed
    sent = {"cmd": "once", "scope": "s", "content": b"x", "expect": expect}
    recall, submit = two.past.remembered, two.log.submit
    on_its_way: list[Any] = []
    monkeypatch.setattr(two.log, "submit", on_its_way.append)
    looked, may_go_on = asyncio.Event(), asyncio.Event()

    async def slowly(resident: Any, name: str) -> Any:
        found = await recall(resident, name)
        looked.set()
        await may_go_on.wait()
        return found

    monkeypatch.setattr(two.past, "remembered", slowly)
    ahead = asyncio.create_task(two.call(there, TakeSeat("Bob")))
    late = asyncio.create_task(two.call(there, TakeSeat("Eve"), **sent))
    async with asyncio.timeout(20):
        await looked.wait()
        first = await one.call(here, TakeSeat("Eve"), **sent)
        assert first.version == there.table.version == expect + 1
        monkeypatch.setattr(two.log, "submit", submit)
        submit(on_its_way.pop())
        await ahead
        may_go_on.set()
        assert await late == first


async def test_nothing_is_refused_for_want_of_what_another_house_wrote(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(hints.Hints, "tell", lambda self, tables: None)
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    await one.call(here, StartShuffle(HOST))
    drawn = await asyncio.gather(*(two.call(there, Draw(Actor(seat=1))) for _ in range(20)))
    assert len({done.version for done in drawn}) == 20


async def test_what_no_house_allows_is_refused_after_one_look(
    houses: Houses, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = await houses(1)
    here = await table_of(one)
    head, looks = one.log.head, 0

    async def looked(table: bytes) -> int | None:
        nonlocal looks
        looks += 1
        return await head(table)

    monkeypatch.setattr(one.log, "head", looked)
    wishes = (one.call(here, Draw(Actor(seat=1))) for _ in range(20))
    for refused in await asyncio.gather(*wishes, return_exceptions=True):
        assert isinstance(refused, Refused)
    assert looks <= 2


async def test_a_command_carried_out_elsewhere_has_its_first_answer_here(houses: Houses) -> None:
    one, two = await houses(2)
    here = await table_of(one)
    there = await two.load(here.table_id)
    sent = {"cmd": "once", "scope": "s", "content": b"x"}
    first = await one.call(here, TakeSeat("Eve"), **sent)
    assert await two.call(there, TakeSeat("Eve"), **sent) == first
    assert [p.name for p in there.table.seats.values()].count("Eve") == 1


async def test_many_at_one_table_from_three_houses_are_one_order(houses: Houses) -> None:
    services = await houses(3)
    first = await table_of(services[0], players=3)
    await services[0].call(first, StartShuffle(HOST))
    tables = [await service.load(first.table_id) for service in services]

    async def play(service: Service, resident: Any, seat: int) -> None:
        for number in range(12):
            while True:
                try:
                    await service.call(
                        resident, Draw(Actor(seat=seat)), cmd=f"{number}", scope=f"{seat}"
                    )
                    break
                except (Conflicted, Overloaded):
                    continue

    await asyncio.gather(
        *(
            play(service, t, n)
            for n, (service, t) in enumerate(zip(services, tables, strict=True), 1)
        )
    )
    for service, table in zip(services, tables, strict=True):
        await service.load(table.table_id)
        assert [len(table.table.round.cards(f"hand:{seat}")) for seat in (1, 2, 3)] == [12] * 3
    assert len({table.tree.root() for table in tables}) == 1
    assert verify(await bundle_of(services[0], tables[0])).fault is None


async def test_a_log_that_was_put_back_to_an_older_state_is_read_anew(
    url: str, houses: Houses
) -> None:
    (one,) = await houses(1)
    here = await table_of(one)
    await one.call(here, TakeSeat("forgotten"))
    here.footing = None
    here.set_foot()  # at the head, beyond what the log will hold
    last = here.committed
    for statement in (
        "ALTER TABLE event DISABLE TRIGGER USER",
        f"DELETE FROM event WHERE version = {last}",
        f"UPDATE stream SET version = {last - 1}",
        "ALTER TABLE event ENABLE TRIGGER USER",
    ):
        asked(url, statement)
    await one.call(here, TakeSeat("Eve"))
    assert here.table.version == here.committed == last
    assert "Eve" in [player.name for player in here.table.seats.values()]
    assert "forgotten" not in [player.name for player in here.table.seats.values()]


@pytest.fixture
def mortal() -> Any:
    with own_server(safe=True) as server:
        yield server


async def test_while_the_database_is_away_wishes_are_refused_for_now_and_then_granted(
    mortal: OwnServer, tmp_path: Path
) -> None:
    url = mortal.url(mortal.database())
    sent = {"cmd": "again", "scope": "s", "content": b"x"}
    async with open_service(url, house_key=tmp_path / "key", busy_seconds=0.2) as service:
        resident = await table_of(service)
        await service.call(resident, StartShuffle(HOST))
        before = resident.committed
        await asyncio.to_thread(mortal.stop)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await service.call(resident, Draw(Actor(seat=1)), **sent)
        await asyncio.to_thread(mortal.start)
        async with asyncio.timeout(30):
            while True:
                try:
                    done = await service.call(resident, Draw(Actor(seat=1)), **sent)
                    break
                except Unavailable:
                    continue
        assert done.version == before + 1
        assert len(resident.table.round.cards("hand:1")) == 1
        assert await service.call(resident, Draw(Actor(seat=1)), **sent) == done
        assert verify(await bundle_of(service, resident)).fault is None
