"""Restore check: a server closes the open tables of an older database when it starts."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine, event

from dealer.errors import DatabaseDamaged, HouseKeyError, TableIsClosed
from dealer.eventlog.backends import migrate_database
from dealer.eventlog.high_water_mark import MarkRecord, read_marks
from dealer.eventlog.postgres.reader import PostgresReader
from dealer.eventlog.protocols import Reader
from dealer.eventlog.sqlite.reader import SqliteReader
from dealer.game.commands import Actor, CloseRound, CloseTable, Draw, StartShuffle, TakeSeat
from dealer.proof.verify import verify
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.identity.admin import read_journal
from dealer.service.operations import restore_check
from dealer.service.operations.close_tables import AT_ONCE, close_tables
from dealer.service.tables.loading import Loader
from tests.harness.postgres import Postgres, query
from tests.harness.statements import watch_direct
from tests.service.tables import HOST, bundle_of, commit_entropy, new_table, shuffled_table

pytestmark = pytest.mark.slow

Open = Callable[..., Any]

ON_A_FILE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
"""For tests in which the kind of database makes no difference."""

ON_A_SERVER = pytest.mark.parametrize("url", ["postgres"], indirect=True)
"""For tests in which a copy has to be another database."""


class Copies:
    """The database at `url`, and copies of it that are restored in its place."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._copies = 0

    async def take(self) -> str:
        self._copies += 1
        return await asyncio.to_thread(self._take, f"copy{self._copies}")

    async def restore(self, copy: str) -> None:
        await asyncio.to_thread(self._restore, copy)

    def _take(self, name: str) -> str:
        file = Path(self.url.removeprefix("sqlite:///"))
        copy = self._folder / name
        with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(copy)) as made:
            live.backup(made)
        return name

    def _restore(self, name: str) -> None:
        file = Path(self.url.removeprefix("sqlite:///"))
        for end in ("-wal", "-shm"):
            Path(f"{file}{end}").unlink(missing_ok=True)
        shutil.copyfile(self._folder / name, file)


class ServerCopies(Copies):
    def __init__(self, url: str, server: Postgres) -> None:
        self.url = url
        self._server = server
        self._name = urlsplit(url).path.removeprefix("/")
        self._copies = 0

    def _take(self, name: str) -> str:
        name = f"{self._name}_{name}"
        self._server.copy(self._name, name)
        return name

    def _restore(self, name: str) -> None:
        self._server.copy(name, self._name)


@pytest.fixture
def copies(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Copies:
    if url.startswith("sqlite"):
        return Copies(url, tmp_path)
    return ServerCopies(url, request.getfixturevalue("postgres"))


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Open:
    return lambda **more: open_service(url, house_key=tmp_path / "house.key", **more)


async def table_with_a_draw(service: Service) -> Any:
    live_table = await shuffled_table(service)
    await service.execute(live_table, Draw(Actor(seat=1)))
    return live_table


async def journal(service: Service) -> list[str]:
    """What was done, newest first."""
    return [entry.what for entry in await read_journal(service.log, limit=100)]


async def is_closed(service: Service, table: str) -> bool:
    return bool((await service.lifecycle.load(table)).table.closed)


async def test_an_older_copy_is_closed_before_anything_is_served(
    opened: Open, copies: Copies, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as service:
        live_table = await table_with_a_draw(service)
        other = await new_table(service)
    copy = await copies.take()
    async with opened() as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        await service.execute(live_table, CloseRound(HOST))  # its secret is public now
        public = await bundle_of(service, live_table)
    await copies.restore(copy)
    async with opened() as service:
        assert [await is_closed(service, one.table_id) for one in (live_table, other)] == [True] * 2
        assert (await journal(service))[0] == "restore"
        live_table = await service.lifecycle.load(live_table.table_id)
        with pytest.raises(TableIsClosed):
            await service.execute(live_table, Draw(Actor(seat=1)))
        report = verify(await bundle_of(service, live_table), key=service.keys.public_key)
        assert report.ok
        assert verify(public, key=service.keys.public_key).ok
        new = await new_table(service)
    assert "database older than its mark" in [record.message for record in caplog.records]
    async with opened() as service:  # it closes tables once
        assert not await is_closed(service, new.table_id)
        assert (await journal(service)).count("restore") == 1


async def test_a_complete_copy_continues(opened: Open, copies: Copies) -> None:
    async with opened() as service:
        live_table = await table_with_a_draw(service)
    copy = await copies.take()
    async with opened() as service:  # only events count, because players have seen them
        await service.lifecycle.load(live_table.table_id)
    await copies.restore(copy)
    async with opened() as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        await service.execute(live_table, Draw(Actor(seat=2)))
        assert "restore" not in await journal(service)


@ON_A_FILE
async def test_a_copy_with_other_events_is_closed(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """It has as many events as the mark says, but other ones."""
    async with opened() as service:
        live_table = await table_with_a_draw(service)
    copy = await copies.take()
    async with opened() as service:
        await service.execute(
            await service.lifecycle.load(live_table.table_id), Draw(Actor(seat=2))
        )
    await copies.restore(copy)
    (tmp_path / "elsewhere").mkdir()
    async with opened(marks=tmp_path / "elsewhere") as service:
        for _ in range(5):
            await service.execute(
                await service.lifecycle.load(live_table.table_id), Draw(Actor(seat=2))
            )
    async with opened() as service:
        assert await is_closed(service, live_table.table_id)


@ON_A_FILE
@pytest.mark.parametrize("committed", [False, True])
async def test_a_shuffle_that_waits_does_not_keep_a_table_open(
    opened: Open, copies: Copies, committed: bool
) -> None:
    waits = {"commit_ms": 3_600_000, "reveal_ms": 3_600_000}
    async with opened() as service:
        live_table = await new_table(service, entropy="players", **waits)
        await service.execute(live_table, StartShuffle(HOST))
        await commit_entropy(service, live_table, *((1, 2) if committed else ()))
    copy = await copies.take()
    async with opened() as service:
        await new_table(service)
    await copies.restore(copy)
    async with opened() as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        assert live_table.table.closed
        report = verify(await bundle_of(service, live_table), key=service.keys.public_key)
        assert report.ok, report.fault
        assert report.remarks.voided == committed


async def test_many_tables_share_statements_and_commits(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement for each table takes minutes, if the database is a round trip away."""
    reads: list[str] = []
    async with opened() as service:
        tables = [await table_with_a_draw(service) for _ in range(70)]
    async with opened() as service:
        ids = [one.id for one in tables]
        fetch = service.log.reader.fetch

        async def counted(sql: str, *more: Any, **settings: Any) -> Any:
            if "FROM event" in sql or "FROM stream" in sql or "FROM checkpoint" in sql:
                reads.append(sql)
            return await fetch(sql, *more, **settings)

        with monkeypatch.context() as patch:
            patch.setattr(service.log.reader, "fetch", counted)
            commits: list[int] = []
            service.log.writer.commit_listeners.append(lambda batch: commits.append(len(batch)))
            closed = {table: error async for table, error in close_tables(service, ids)}
        assert closed == dict.fromkeys(ids)
        # Three for each 32 tables; the projection and the feed read on the writer's thread.
        assert len(reads) < 20
        assert len(commits) < 20
    async with opened() as service:
        for one in tables[::10]:
            assert await is_closed(service, one.table_id)
            report = verify(await bundle_of(service, one), key=service.keys.public_key)
            assert report.ok, report.fault


async def test_tables_that_cannot_be_read_together_are_read_alone(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        tables = [await new_table(service) for _ in range(3)]
    async with opened() as service:
        fetch = service.log.reader.fetch

        async def fails(sql: str, *more: Any, **settings: Any) -> Any:
            if "UNION ALL" in sql:
                raise DatabaseDamaged("altered")
            return await fetch(sql, *more, **settings)

        monkeypatch.setattr(service.log.reader, "fetch", fails)
        ids = [one.id for one in tables]
        assert {table: error async for table, error in close_tables(service, ids)} == dict.fromkeys(
            ids
        )


async def test_tables_share_statements_when_they_are_closed(
    opened: Open, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start must not need some round trips, or a slice of the projection, for each table."""
    async with opened() as service:
        tables = [await table_with_a_draw(service) for _ in range(2 * AT_ONCE)]
    copy = await copies.take()
    async with opened() as service:
        await new_table(service)
    await copies.restore(copy)
    statements: list[str] = []

    async def counted(service: Service, tables: Any, **settings: Any) -> Any:
        def note(_connection: object, _cursor: object, sql: str, *_: object) -> None:
            statements.append(sql)

        with monkeypatch.context() as patch:
            watch_direct("before", statements.append, patch=patch.setattr)
            event.listen(Engine, "before_cursor_execute", note)
            try:
                async for one in close_tables(service, tables, **settings):
                    yield one
            finally:
                event.remove(Engine, "before_cursor_execute", note)

    monkeypatch.setattr(restore_check, "close_tables", counted)
    async with opened() as service:
        assert all([await is_closed(service, one.table_id) for one in tables])
        await service.projection.up_to_date()
        rows = await service.log.fetch("SELECT count(*) FROM tables WHERE closed_at IS NULL")
        assert [tuple(row) for row in rows] == [(0,)]
    reads = [sql for sql in statements if "SELECT" in sql and "event" in sql]
    assert 0 < len(reads) < len(tables) / 4, reads
    slices = [sql for sql in statements if "UPDATE tables" in sql]  # some come by the clock
    assert len(slices) < len(tables) / 4, slices


@ON_A_FILE
async def test_an_interrupted_closing_is_finished_at_the_next_start(
    opened: Open, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        tables = [await table_with_a_draw(service) for _ in range(3)]
    copy = await copies.take()
    async with opened() as service:
        await new_table(service)
    await copies.restore(copy)

    async def close_one_and_fail(service: Service, tables: Any, **settings: Any) -> Any:
        async for one in close_tables(service, tables[:1], **settings):
            yield one
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(restore_check, "close_tables", close_one_and_fail)
        with pytest.raises(RuntimeError, match="killed"):
            async with opened():
                raise AssertionError("it opened")
    async with opened() as service:
        assert all([await is_closed(service, one.table_id) for one in tables])
        assert (await journal(service)).count("restore") == 1


@ON_A_FILE
async def test_a_damaged_table_does_not_keep_others_open(
    opened: Open,
    copies: Copies,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as service:
        bad, good = await table_with_a_draw(service), await table_with_a_draw(service)
    copy = await copies.take()
    async with opened() as service:
        await new_table(service)
    await copies.restore(copy)
    load = Loader.load

    async def load_others(self: Loader, table: bytes) -> Any:
        if table == bad.id:
            raise DatabaseDamaged("altered")
        return await load(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(Loader, "load", load_others)
        async with opened() as service:
            assert await is_closed(service, good.table_id)
    assert "table left open" in [record.message for record in caplog.records]


async def test_a_database_without_the_events_of_an_archived_table_is_not_older(
    opened: Open, copies: Copies, url: str
) -> None:
    async with opened() as service:
        open_ = await new_table(service)
        live_table = await table_with_a_draw(service)
        await service.execute(live_table, CloseTable(HOST))
        version = live_table.committed
    row = f"INSERT INTO archived VALUES ({{}}, {version}, {{}}, {{}}, 'f', 1, {{}}, 1, 1)"
    delete = "DELETE FROM event WHERE stream = {}"
    if url.startswith("sqlite"):
        stream = "(SELECT id FROM stream WHERE table_id = ?)"
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute(row.format(stream, *"???"), (live_table.id, *[bytes(32)] * 3))
            database.execute(delete.format(stream), (live_table.id,))
            database.commit()
    else:
        await asyncio.to_thread(
            query, url, row.format("$1", "$2", "$3", "$4"), live_table.id, *[bytes(32)] * 3
        )
        await asyncio.to_thread(query, url, delete.format("$1"), live_table.id)
    async with opened() as service:
        assert not await is_closed(service, open_.table_id)


async def test_another_node_finds_that_a_restore_was_handled(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """Each node has its own mark; tables opened after the first node's restore check stay open."""
    folders = [tmp_path / name for name in ("one", "two")]
    async with opened() as service:
        await table_with_a_draw(service)
    copy = await copies.take()
    for folder in folders:
        folder.mkdir()
        async with opened(marks=folder) as service:
            await table_with_a_draw(service)
    await copies.restore(copy)
    async with opened(marks=folders[0]) as service:
        assert "restore" in await journal(service)
        new = await table_with_a_draw(service)
    async with opened(marks=folders[1]) as service:
        assert not await is_closed(service, new.table_id)
        assert (await journal(service)).count("restore") == 1
    later = await copies.take()
    async with opened(marks=folders[1]) as service:
        await service.execute(await service.lifecycle.load(new.table_id), Draw(Actor(seat=1)))
    await copies.restore(later)
    async with opened(marks=folders[1]) as service:  # a second restore is handled again
        assert await is_closed(service, new.table_id)
        assert (await journal(service)).count("restore") == 2


@ON_A_SERVER
@pytest.mark.parametrize("first", ["idle", "writer"])
@pytest.mark.parametrize("saw_the_copied_events", [False, True])
async def test_whichever_node_starts_first_notices_a_restore(
    opened: Open, copies: Copies, tmp_path: Path, first: str, saw_the_copied_events: bool
) -> None:
    """Each node has its own folder of marks, and only `writer` has seen the lost events."""
    for name in ("idle", "writer"):
        (tmp_path / name).mkdir()
    async with opened(marks=tmp_path / "idle") as idle, opened(marks=tmp_path / "writer") as writer:
        live_table = await table_with_a_draw(idle if saw_the_copied_events else writer)
    copy = await copies.take()
    async with opened(marks=tmp_path / "writer") as writer:
        live_table = await writer.lifecycle.load(live_table.table_id)
        await writer.execute(live_table, CloseRound(HOST))  # its secret is public now
    await copies.restore(copy)
    async with opened(marks=tmp_path / first) as service:
        assert await is_closed(service, live_table.table_id)
        new = await new_table(service)
    for name in ("idle", "writer"):  # it was handled, whichever starts now
        async with opened(marks=tmp_path / name) as service:
            assert not await is_closed(service, new.table_id)
            assert (await journal(service)).count("restore") == 1


@ON_A_SERVER
@pytest.mark.parametrize("marks", ["none", "new"])
async def test_a_copy_is_closed_where_the_marks_are_missing(
    opened: Open, copies: Copies, tmp_path: Path, marks: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as service:
        live_table = await table_with_a_draw(service)
    copy = await copies.take()
    await copies.restore(copy)
    folder = tmp_path / marks
    if marks == "new":
        folder.mkdir()
    async with opened(marks=folder) as service:
        assert await is_closed(service, live_table.table_id)
        assert "database is a copy" in [record.message for record in caplog.records]


async def test_a_running_node_follows_its_log_to_another_database(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover that lost nothing: the next start does not close its tables."""
    monkeypatch.setattr(restore_check, "MARK_SECONDS", 0.01)
    identify(monkeypatch, "before")
    async with opened() as service:
        live_table = await table_with_a_draw(service)
        identify(monkeypatch, "after")
        async with asyncio.timeout(30):
            while (await restore_check.homes(service.log))[-1].database != "after":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    monkeypatch.undo()
    identify(monkeypatch, "after")
    async with opened(marks=Path("/dev/null")) as service:
        assert not await is_closed(service, live_table.table_id)


async def test_a_running_node_does_not_follow_where_its_events_are_lost(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def lost(*_: Any) -> MarkRecord:
        asked.set()
        return MarkRecord(bytes(8), bytes(16), bytes(16), 9, bytes(32))

    monkeypatch.setattr(restore_check, "MARK_SECONDS", 0.01)
    async with opened() as service:
        await table_with_a_draw(service)
        before = await restore_check.homes(service.log)
        monkeypatch.setattr(restore_check, "find_lost", lost)
        identify(monkeypatch, "after")
        async with asyncio.timeout(30):
            await asked.wait()
        asked.clear()
        async with asyncio.timeout(30):
            await asked.wait()
        assert await restore_check.homes(service.log) == before


def identify(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Every database has this identity."""

    async def identity(_: Reader) -> str:
        return word

    for reader in (SqliteReader, PostgresReader):
        monkeypatch.setattr(reader, "identity", identity)


@ON_A_FILE
async def test_a_copy_from_before_an_earlier_restore_is_older_too(
    opened: Open, copies: Copies
) -> None:
    async with opened() as service:
        live_table = await table_with_a_draw(service)
    copy = await copies.take()
    for _ in range(2):
        async with opened() as service:
            await new_table(service)
        await copies.restore(copy)
        async with opened() as service:
            assert await is_closed(service, live_table.table_id)
            await new_table(service)


async def test_events_of_other_nodes_are_in_the_mark(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """The disk of the node that wrote the event is lost; the other node has published the event."""
    folders = [tmp_path / name for name in ("writer", "publisher")]
    for folder in folders:
        folder.mkdir()
    async with opened(marks=folders[0]) as one:
        live_table = await table_with_a_draw(one)
    copy = await copies.take()
    async with opened(marks=folders[0]) as one, opened(marks=folders[1]) as two:
        live_table = await one.lifecycle.load(live_table.table_id)
        shown = await two.lifecycle.load(live_table.table_id)
        await one.execute(live_table, Draw(Actor(seat=2)))
        await two.lifecycle.catch_up(shown)
        assert shown.committed == live_table.committed
        (mark,) = read_marks(tmp_path / "house.key", folder=folders[1]).records
        assert mark.version == shown.committed
    await copies.restore(copy)
    async with opened(marks=folders[1]) as service:
        assert await is_closed(service, live_table.table_id)


async def test_a_running_node_adopts_the_new_generation(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_check, "MARK_SECONDS", 0.01)
    async with opened() as service:
        live_table = await table_with_a_draw(service)
        await service.log.put_metadata("generation.1", b"g" * 16)
        key = tmp_path / "house.key"
        async with asyncio.timeout(30):
            while read_marks(key).records:  # noqa: ASYNC110  the task sends no notice
                await asyncio.sleep(0.01)
        await service.execute(live_table, Draw(Actor(seat=1)))
        assert [mark.generation for mark in read_marks(key).records] == [b"g" * 16]


async def test_the_mark_of_another_log_is_ignored(opened: Open, tmp_path: Path) -> None:
    """Two databases with one key: the second was created by `dealer migrate` and used before."""
    key = tmp_path / "house.key"
    (tmp_path / "aside").mkdir()
    async with opened():
        pass
    other = f"sqlite:///{tmp_path / 'other.db'}"
    await migrate_database(other)
    async with open_service(other, house_key=key, marks=tmp_path / "aside") as service:
        live_table = await table_with_a_draw(service)
    async with opened() as service:
        await table_with_a_draw(service)
    async with open_service(other, house_key=key) as service:
        assert not await is_closed(service, live_table.table_id)


async def test_an_empty_database_is_refused_if_its_key_was_used_with_another(
    opened: Open, url: str, tmp_path: Path
) -> None:
    async with opened() as service:
        await new_table(service)
    key = tmp_path / "house.key"
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    await migrate_database(empty)
    for _ in range(2):
        with pytest.raises(HouseKeyError, match="has been used with another") as raised:
            async with open_service(empty, house_key=key):
                raise AssertionError("it opened")
        assert "move the key and the mark elsewhere" in str(raised.value)
    (tmp_path / "house.mark.0").unlink()
    async with open_service(empty, house_key=key):
        pass


async def test_a_node_may_start_with_a_copy_of_the_key_and_no_mark(
    opened: Open, url: str, tmp_path: Path
) -> None:
    async with opened() as service:
        live_table = await table_with_a_draw(service)
    folder = tmp_path / "node"
    folder.mkdir()
    shutil.copy2(tmp_path / "house.key", folder)
    async with open_service(url, house_key=folder / "house.key") as service:
        assert not await is_closed(service, live_table.table_id)


@ON_A_FILE
async def test_a_missing_mark_is_logged(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opening = open_service(url, house_key=tmp_path / "house.key", marks=tmp_path / "nowhere")
    async with opening as service:
        await service.execute(await new_table(service), TakeSeat("Eve"))
    assert "no high-water mark" in [record.message for record in caplog.records]
