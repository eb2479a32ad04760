"""The feed of one process and of several: complete, in order, and again from any position."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dealer.eventlog.rows import leaf_of
from dealer.feed import feed as scheduler
from dealer.feed import sequencer
from dealer.feed.pages import FeedFilter
from dealer.feed.positions import Place
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw
from dealer.proof import canonical
from dealer.proof.tree import leaf_hash
from dealer.service import LiveTable, Service
from dealer.service.operations.archiver import Archiver
from dealer.webhooks.delivery import body_of
from tests.feed.conftest import OpenService
from tests.feed.followers import complete, next_page, read_all, versions
from tests.gateway.rpc_client import eventually
from tests.harness.damage import change_log
from tests.harness.service_keys import add_key, found, give_table
from tests.service.tables import HOST, shuffled_table

SPLITTING = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Where `str.splitlines` and other readers end a line, besides a line feed."""

THIRD = "version = 3 AND stream = (SELECT of_stream FROM feed WHERE seq = 1)"


async def draw(service: Service, live_table: LiveTable, count: int = 1) -> None:
    for _ in range(count):
        await service.execute(live_table, Draw(Actor(seat=1)))


async def stored_rows(service: Service) -> int:
    return int((await service.log.fetch("SELECT count(*) FROM feed"))[0][0])


async def test_every_event_comes_as_in_the_log(open_node: OpenService) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await draw(service, live_table, 3)
    await give_table(service.log, live_table.table_id, key=7, ref='our "ünique" id')
    await add_key(service, "shop", "admin")
    objects = await read_all(service)
    rows = await service.log.read(live_table.id)
    assert [each["version"] for each in objects] == complete(live_table)
    for each, row in zip(objects, rows, strict=True):
        opened = ["opened"] if row.type == "SeatTaken" else []
        members = ["position", "table", "ref", "version", "type", "at", *opened, "event"]
        assert list(each) == members
        assert each["ref"] == 'our "ünique" id'
        assert (each["type"], each["at"]) == (row.type, row.at)
        assert each["event"] == json.loads(leaf_of(live_table.id, row))
    hidden = [each["event"] for each in objects if each["type"] == "CardDrawn"]
    assert all("card" not in event["public"] for event in hidden)


async def test_the_event_is_the_text_of_the_leaf(open_node: OpenService) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_key(service, "shop", "admin")
    await service.feed.scheduler.up_to_date()
    for followers in (0, 1):
        service.feed.head.followers = followers  # from the log, and then from memory
        first = service.feed.head.seq + 1
        await draw(service, live_table)
        await service.feed.scheduler.up_to_date()
        page = await service.feed.reader.read(Place(first), FeedFilter())
        ((row,), (entry,)) = (
            await service.log.read(live_table.id, after=live_table.committed - 1),
            page.entries,
        )
        assert entry.text.endswith(f'"event":{leaf_of(live_table.id, row)}}}')


async def test_no_reader_splits_a_line(open_node: OpenService) -> None:
    service = await open_node()
    live_table, _ = await service.open_table({"variant": f"a{SPLITTING[5:]}b"})
    await give_table(service.log, live_table.table_id, key=7, ref=f"a{SPLITTING}b")
    await add_key(service, "shop", "admin")
    await service.feed.scheduler.up_to_date()
    page = await service.feed.reader.read(Place(1), FeedFilter())
    rows = await service.log.read(live_table.id)
    for entry, row in zip(page.entries, rows, strict=True):
        assert entry.text.splitlines() == [entry.text]
        body = body_of(entry, house="cards.example.org").decode()
        assert body.splitlines() == [body]
        assert json.loads(body)["data"] == json.loads(entry.text)
        found = json.loads(entry.text)
        assert found["ref"] == f"a{SPLITTING}b"
        leaf = leaf_of(live_table.id, row)
        assert leaf_hash(canonical.encode(found["event"])) == leaf_hash(leaf.encode())
    assert SPLITTING[5:] in leaf_of(live_table.id, rows[0])  # the leaf itself has them as they are


async def test_without_a_key_that_may_read_nothing_is_written(open_node: OpenService) -> None:
    service = await open_node()
    await add_key(service, "other", "open", "seat", "close")
    await shuffled_table(service)
    await service.feed.scheduler.up_to_date()
    assert await stored_rows(service) == 0


async def test_it_goes_on_from_any_position(open_node: OpenService) -> None:
    service = await open_node()
    first, second = await shuffled_table(service), await shuffled_table(service)
    await add_key(service, "shop", "admin")
    whole = await read_all(service)
    assert versions(whole) == {table.table_id: complete(table) for table in (first, second)}
    for number, each in enumerate(whole):
        assert await read_all(service, after=each["position"]) == whole[number + 1 :]
    assert await read_all(service, limit=1) == whole


async def test_a_follower_is_woken_by_what_comes(open_node: OpenService) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_key(service, "shop", "admin")
    await service.feed.scheduler.up_to_date()
    place = await service.feed.place("now")
    await draw(service, live_table)
    page = await next_page(service, place)
    assert [entry.version for entry in page.entries] == [live_table.committed]


async def test_a_key_gets_its_own_tables_only(open_node: OpenService) -> None:
    service = await open_node()
    ours, theirs, none = (
        await shuffled_table(service),
        await shuffled_table(service),
        await shuffled_table(service),
    )
    await give_table(service.log, ours.table_id, key=1)
    await give_table(service.log, theirs.table_id, key=2)
    await add_key(service, "shop", "read")
    await service.feed.scheduler.up_to_date()
    service.feed.head.followers = 1
    for live_table in (none, theirs, ours):
        await draw(service, live_table)
    key = FeedFilter(key=1)
    assert versions(await read_all(service, key)) == {ours.table_id: complete(ours)}
    assert await read_all(service, FeedFilter(key=1, table=theirs.id)) == []
    only = FeedFilter(key=2, table=theirs.id, types=frozenset(("CardDrawn",)))
    assert [each["type"] for each in await read_all(service, only)] == ["CardDrawn"]


async def test_events_of_other_processes_come(open_node: OpenService) -> None:
    one, two = await open_node(), await open_node()
    key = await add_key(one, "shop", "admin")
    await two.service_keys.refresh(two.log)
    assert found(two, key).may("read")
    place = await two.feed.place("now")
    live_table = await shuffled_table(one)
    seen: list[int] = []
    while len(seen) < live_table.committed:
        page = await next_page(two, place)
        place = page.place
        seen += [entry.version for entry in page.entries]
    assert seen == complete(live_table)


async def test_two_nodes_that_write_one_table_leave_no_gap(open_node: OpenService) -> None:
    """With a follower at each node, and several of the same tables played at both."""
    one, two = await open_node(), await open_node()
    await add_key(one, "shop", "admin")
    await two.service_keys.refresh(two.log)
    tables = [await shuffled_table(one) for _ in range(4)]
    other = [await two.lifecycle.load(live_table.table_id) for live_table in tables]
    plays = [
        draw(service, live_table, 10)
        for service, known in ((one, tables), (two, other))
        for live_table in known
    ]
    await asyncio.gather(*plays)
    for service in (one, two):
        objects = await read_all(service)
        heads = await service.log.heads(table.id for table in tables)
        assert versions(objects) == {
            table.hex(): list(range(1, head + 1)) for table, head in heads.items()
        }


async def test_an_archived_table_is_reported_as_skipped(
    open_node: OpenService, url: str, tmp_path: Path
) -> None:
    service = await open_node()
    live_table, kept = await shuffled_table(service), await shuffled_table(service)
    await add_key(service, "shop", "admin")
    position = (await read_all(service))[3]["position"]
    await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, CloseTable(HOST))
    await service.feed.scheduler.up_to_date()
    rows = await stored_rows(service)
    archiver = Archiver(service.log, url, tmp_path, who="test", why="")
    await archiver.archive(live_table.id)
    assert await stored_rows(service) < rows
    for after in ("start", position):
        objects = await read_all(service, after=after)
        (skipped,) = [each for each in objects if "skipped" in each]
        assert skipped["table"] == live_table.table_id
        assert skipped["archived"] is True
        assert skipped["skipped"] == {"from": 1, "to": live_table.committed}
        rest = [each for each in objects if each is not skipped]
        assert set(versions(rest)) <= {kept.table_id}
    await draw(service, kept)
    new = await read_all(service, after=skipped["position"])
    assert [each["version"] for each in new][-1:] == [kept.committed]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE feed SET last = last + 1 WHERE seq = 1",
        f"DELETE FROM event WHERE {THIRD}",
        f"UPDATE event SET public = '[' WHERE {THIRD}",
    ],
)
async def test_damaged_events_are_said_to_be_missing_and_others_follow(
    open_node: OpenService, url: str, statement: str
) -> None:
    """Never a silent gap, and never a table that keeps a follower from the others."""
    service = await open_node()
    await add_key(service, "shop", "admin")
    damaged = await shuffled_table(service)
    await service.feed.scheduler.up_to_date()
    intact = await shuffled_table(service)
    await service.feed.scheduler.up_to_date()
    await change_log(service.log, statement)
    service.recent.forget()
    objects = await read_all(service)
    (skipped,) = [each for each in objects if "skipped" in each]
    assert (skipped["table"], skipped["damaged"]) == (damaged.table_id, True)
    assert "archived" not in skipped
    first = skipped["skipped"]["from"]
    assert first in (1, 2, 3), "the row of the feed that has the version begins there"
    kept = [each for each in objects if each is not skipped]
    found = versions([each for each in kept if each["table"] == damaged.table_id])
    assert {*range(1, first)} <= {*found.get(damaged.table_id, ())}
    rest = [each for each in kept if each["table"] != damaged.table_id]
    assert versions(rest) == {intact.table_id: complete(intact)}
    assert [line.split(":")[0] for line in service.damaged.lines()] == [
        f"damaged table {damaged.table_id}"
    ]


async def test_no_place_in_the_feed_is_given_to_versions_that_are_not_there(
    open_node: OpenService,
) -> None:
    """A version of 10^15 would be as many rows of the feed."""
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_key(service, "shop", "admin")
    await change_log(service.log, "UPDATE stream SET version = 1000000000000000")
    objects = await read_all(service)
    assert versions(objects) == {live_table.table_id: complete(live_table)}


async def test_long_ranges_are_several_rows(
    open_node: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "VERSIONS", 10)
    monkeypatch.setattr(sequencer, "EVENTS", 7)
    monkeypatch.setattr(sequencer, "STREAMS", 2)
    service = await open_node()
    tables = [await shuffled_table(service) for _ in range(5)]
    await add_key(service, "shop", "admin")
    for limit in (3, 10, 1000):
        objects = await read_all(service, limit=limit)
        assert versions(objects) == {table.table_id: complete(table) for table in tables}
    assert await stored_rows(service) > sum(table.committed // 10 for table in tables)


async def test_the_sequencer_goes_on_after_an_internal_error(
    open_node: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await open_node()
    live_table = await shuffled_table(service)
    await add_key(service, "shop", "admin")
    reported: list[dict[str, object]] = []
    monkeypatch.setattr(scheduler, "RETRY_SECONDS", 0.01)
    loop = asyncio.get_running_loop()

    def fails(*given: object, **named: object) -> None:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(loop, "call_exception_handler", reported.append)
        broken.setattr(scheduler, "sequence", fails)
        await eventually(lambda: len(reported) >= 2)
    await eventually(lambda: service.feed.head.seq)
    assert versions(await read_all(service)) == {live_table.table_id: complete(live_table)}
