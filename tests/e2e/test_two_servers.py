"""Two servers share one database file, and each serves some of the players of one table."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from dealer.client import RemoteTable
from dealer.game.commands import Actor, OpenRound, StartShuffle, TakeSeat
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service import CommitNotice, LiveTable
from dealer.service.build import open_service
from tests.harness.card_truth import leaves
from tests.harness.server_process import PATIENT, ServerProcess
from tests.harness.table_of_clients import RecordedClient, client

DRAWS = 10


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncIterator[tuple[ServerProcess, ServerProcess]]:
    async with ServerProcess(folder, name="one") as one, ServerProcess(folder, name="two") as two:
        yield one, two


async def test_two_processes_lose_no_update_and_deal_no_card_twice(tmp_path: Path) -> None:
    async with (
        two_servers(tmp_path) as (one, two),
        client(one.url, "Ada") as ada,
        client(one.url, "Bob") as bob,
        client(two.url, "Cleo") as cleo,
        client(two.url, "Dan") as dan,
    ):
        clients = [ada, bob, cleo, dan]
        opened = await ada.house.open(seats=4)
        ada.table = await ada.house.join(opened.id)
        bob.table = await bob.house.join(opened.id)
        await ada.table.round_open(entropy="house")
        await ada.table.shuffle()
        cleo.table = await cleo.house.join(opened.id)
        dan.table = await dan.house.join(opened.id)
        drawn = await asyncio.gather(*(draw(player.table) for player in clients))
        cards = [card for hand in drawn for card in hand]
        assert len(cards) == len(set(cards)) == 4 * DRAWS
        # A request reads the events that the other process has written in the meantime.
        await cleo.table.cut(1)
        await ada.table.round_close()
        await cleo.table.leave()
        await ada.table.close()
        bundle = read(await one.bundle(opened.id))
        key = ada.table.key
    log = leaves(bundle)
    types = Counter(leaf["type"] for leaf in log)
    assert types["CardDrawn"] == 4 * DRAWS
    assert types["SeatTaken"] == 4
    assert types["StackCut"] == types["SeatLeft"] == 1
    assert log[-1]["type"] == "TableClosed"
    for player in clients:
        check_received(player, bundle)
    assert len(ada.record.leaves) == len(log)
    assert verify(bundle, key=key, saved=ada.table.checkpoints).fault is None
    with closing(sqlite3.connect(one.database)) as database:
        rows = database.execute("SELECT version FROM event ORDER BY version").fetchall()
    assert [version for (version,) in rows] == list(range(1, len(log) + 1))


async def test_events_of_another_process_are_published_with_their_checkpoints(
    tmp_path: Path,
) -> None:
    """A player reveals only under C1, so a process that reads a shuffle late must read C1 too."""
    url, host = f"sqlite:///{tmp_path / 'dealer.db'}", Actor(host=True)
    async with open_service(url) as one, open_service(url) as two:
        local, _ = await one.open_table({})
        remote = await two.lifecycle.load(local.table_id)
        notices: list[CommitNotice] = []
        two.notices.listen(lambda _, notice: notices.append(notice))
        await one.execute(local, OpenRound(host, ("As", "Ks"), "house", 1000, 1000))
        await one.execute(local, StartShuffle(host))
        await two.execute(remote, TakeSeat("Bob"))
        types = [json.loads(entry.leaf)["type"] for entry in notices[0].entries]
        due = [2 + n for n, kind in enumerate(types) if kind in ("EntropyClosed", "DeckSealed")]
        assert len(due) == 2
        assert [size for size, _ in notices[0].notes] == due
        assert [size for size, _ in await two.log.checkpoints(remote.id)] == due


async def test_a_client_that_joins_during_a_reload_gets_no_older_state(tmp_path: Path) -> None:
    """Otherwise a player that was connected to the other process would see an older log."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with open_service(url) as one, open_service(url) as two:
        local, _ = await one.open_table({})
        remote = await two.lifecycle.load(local.table_id)
        read, may_read, head_read = asyncio.Event(), asyncio.Event(), asyncio.Event()
        advance, head = two.loader.advance, two.log.head

        async def advance_slowly(live_table: LiveTable) -> tuple[LiveTable, CommitNotice]:
            found = await advance(live_table)
            read.set()
            await may_read.wait()
            return found

        async def observed_head(table: bytes) -> int | None:
            found = await head(table)
            if read.is_set():
                head_read.set()
            return found

        async def load() -> int:
            return (await two.lifecycle.load(local.table_id)).committed

        two.loader.advance = advance_slowly  # type: ignore[method-assign]
        two.log.head = observed_head  # type: ignore[method-assign]
        await one.execute(local, TakeSeat("Ada"))
        first = asyncio.create_task(load())
        await read.wait()
        assert remote.reloading
        await one.execute(local, TakeSeat("Bob"))
        second = asyncio.create_task(load())
        await head_read.wait()
        may_read.set()
        assert await second == local.committed == 3
        await first


async def draw(table: RemoteTable) -> list[str]:
    async with asyncio.timeout(PATIENT):
        return [card for _ in range(DRAWS) for card in await table.draw(1)]


def check_received(player: RecordedClient, bundle: list[bytes]) -> None:
    """Events from both processes arrive in order and once each."""
    record = player.record
    assert record.different == 0
    versions = list(record.leaves)
    assert versions == list(range(versions[0], versions[-1] + 1))
    assert all(bundle[version] == leaf for version, leaf in record.leaves.items())
