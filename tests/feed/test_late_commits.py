"""Events that commit late, and tables without a mark: nothing is skipped."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from dealer.feed.pages import FeedFilter
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw
from dealer.service.build import open_service
from dealer.service.operations.archiver import Archiver
from tests.feed.conftest import OpenService
from tests.feed.followers import complete, read_all, versions
from tests.harness.service_keys import add_key
from tests.service.bare_service import bare_service
from tests.service.tables import HOST, shuffled_table


@pytest.mark.slow
async def test_an_event_that_commits_late_comes_after_what_was_read(
    postgres_url: str, tmp_path: Path
) -> None:
    """With numbers that are taken at append, a reader would be past its number by then."""
    async with open_service(postgres_url, house_key=tmp_path / "house.key") as service:
        late, other = await shuffled_table(service), await shuffled_table(service)
        await add_key(service, "shop", "admin")
        position = (await read_all(service))[-1]["position"]
        raw = await asyncpg.connect(postgres_url)
        try:
            transaction = raw.transaction()
            await transaction.start()
            version = late.committed + 1
            await raw.execute("UPDATE stream SET version = $2 WHERE id = $1", late.id, version)
            await raw.execute(
                "INSERT INTO event (stream, version, type, schema, at, public)"
                " VALUES ($1, $2, 'NoteAdded', 1, 5, '{}')",
                late.id,
                version,
            )
            await service.execute(other, Draw(Actor(seat=1)))
            first = await read_all(service, after=position)
            assert versions(first) == {other.table_id: [other.committed]}
            await transaction.commit()
        finally:
            await raw.close()
        rest = await read_all(service, after=first[-1]["position"])
        assert versions(rest) == {late.table_id: [version]}


@pytest.mark.slow
async def test_tables_without_a_mark_are_found_after_a_pause(
    postgres_url: str, tmp_path: Path
) -> None:
    """The marks are taken back after a minute: all tables are scanned if that may have been."""
    async with open_service(postgres_url, house_key=tmp_path / "house.key") as service:
        live_table = await shuffled_table(service)
        await add_key(service, "shop", "admin")
        await service.feed.scheduler.up_to_date()
        assert service.projection is not None
        await service.projection.up_to_date()  # a trigger marks what is not projected
        await service.log.run_in_transaction(_lose_everything)
        assert versions(await read_all(service)) == {live_table.table_id: complete(live_table)}


def _lose_everything(connection: object) -> None:
    """As if nothing was searched since before the first append, and the projector was idle."""
    execute = connection.exec_driver_sql  # type: ignore[attr-defined]
    execute("DELETE FROM feed")
    execute("UPDATE stream SET behind = false")
    execute("UPDATE feed_state SET at = at - 30000")


async def test_ids_that_sqlite_gives_again_hide_no_event(tmp_path: Path) -> None:
    """The newest events are deleted by an archive, and other events get their ids."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with bare_service(url) as service:  # which sequences only when it is asked
        kept, closed = await shuffled_table(service), await shuffled_table(service)
        await add_key(service, "shop", "admin")
        await service.execute(closed, CloseRound(HOST))
        await service.execute(closed, CloseTable(HOST))
        position = (await read_all(service))[-1]["position"]
        await Archiver(service.log, url, tmp_path, who="test", why="").archive(closed.id)
        for _ in range(3):
            await service.execute(kept, Draw(Actor(seat=1)))
        newest = (await service.log.fetch("SELECT max(id) FROM event"))[0][0]
        searched = (await service.log.fetch("SELECT event FROM feed_state"))[0][0]
        assert newest <= searched, "the ids were not given again"
        found = await read_all(service, after=position)
        assert versions(found) == {kept.table_id: complete(kept)[-3:]}


async def test_events_that_an_archive_deletes_before_the_search(tmp_path: Path) -> None:
    """The newest event that was searched is another table's, and stays."""
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with bare_service(url) as service:  # which sequences only when it is asked
        closed, kept = await shuffled_table(service), await shuffled_table(service)
        await add_key(service, "shop", "admin")
        position = (await read_all(service))[-1]["position"]
        await service.execute(closed, CloseRound(HOST))
        await service.execute(closed, CloseTable(HOST))
        await Archiver(service.log, url, tmp_path, who="test", why="").archive(closed.id)
        service.recent.forget()
        await service.execute(kept, Draw(Actor(seat=1)))
        skipped, drawn = sorted(await read_all(service, after=position), key=lambda o: "event" in o)
        assert skipped["table"] == closed.table_id
        assert skipped["skipped"]["to"] == closed.committed
        assert versions([drawn]) == {kept.table_id: [kept.committed]}


async def test_memory_is_not_used_past_what_another_process_wrote(
    open_node: OpenService,
) -> None:
    one, two = await open_node(), await open_node()
    await add_key(one, "shop", "admin")
    await two.service_keys.refresh(two.log)
    one.feed.head.followers = 1
    place = await one.feed.place("now")
    seen = []
    here = await shuffled_table(one)
    there = await two.lifecycle.load(here.table_id)
    for number in range(6):
        service, table = ((one, here), (two, there))[number % 2]
        await service.execute(table, Draw(Actor(seat=1)))
        await service.feed.scheduler.up_to_date()
        if number % 3:
            await one.feed.read_head()
            page = await one.feed.reader.read(place, FeedFilter())
            place = page.place
            seen += [entry.version for entry in page.entries]
    seen += [entry.version for entry in (await one.feed.reader.read(place, FeedFilter())).entries]
    head = await one.log.head(here.id)
    assert seen == list(range(1, (head or 0) + 1))
