"""A database that is older than what players have seen: its tables are closed at the start."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dealer.errors import DatabaseDamaged, HouseKeyError, TableEnded
from dealer.eventlog.mark import read_marks
from dealer.eventlog.upkeep import migrate_database
from dealer.game.commands import (
    Actor,
    CloseRound,
    CloseTable,
    CommitEntropy,
    Draw,
    StartShuffle,
    TakeSeat,
)
from dealer.proof.keys import player_digest
from dealer.proof.verify import verify
from dealer.service import Service, restored, watch
from dealer.service.office import read_journal
from dealer.service.opening import open_service
from tests.postgres import Postgres, asked
from tests.service.conftest import url
from tests.service.test_service import HOST, bundle_of, table_of

__all__ = ["url"]

Open = Callable[..., Any]

ON_A_FILE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
"""Where the database makes no difference."""


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
        self._copy(self._name, name)
        return name

    def _restore(self, name: str) -> None:
        self._server.drop(self._name)
        self._copy(name, self._name)

    def _copy(self, source: str, to: str) -> None:
        # A template may have no connections, and those of a service that has closed end soon.
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
        for _ in range(50):
            self._server.ask("postgres", end, source)
            with suppress(Exception):
                self._server.ask("postgres", f"CREATE DATABASE {to} TEMPLATE {source}")
                return
        raise AssertionError("the database could not be copied")


@pytest.fixture
def copies(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Copies:
    if url.startswith("sqlite"):
        return Copies(url, tmp_path)
    return ServerCopies(url, request.getfixturevalue("postgres"))


@pytest.fixture
def opened(url: str, tmp_path: Path) -> Open:
    return lambda **more: open_service(url, house_key=tmp_path / "house.key", **more)


async def round_of(service: Service) -> Any:
    resident = await table_of(service)
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, Draw(Actor(seat=1)))
    return resident


async def what(service: Service) -> list[str]:
    return [line.what for line in await read_journal(service.log, limit=100)]


async def closed(service: Service, table: str) -> bool:
    return bool((await service.load(table)).table.closed)


async def test_an_older_copy_is_closed_before_anything_is_served(
    opened: Open, copies: Copies, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as service:
        resident = await round_of(service)
        other = await table_of(service)
    copy = await copies.take()
    async with opened() as service:
        resident = await service.load(resident.table_id)
        await service.call(resident, CloseRound(HOST))  # its secret is public now
        public = await bundle_of(service, resident)
    await copies.restore(copy)
    async with opened() as service:
        assert [await closed(service, one.table_id) for one in (resident, other)] == [True] * 2
        assert (await what(service))[0] == "restore"
        resident = await service.load(resident.table_id)
        with pytest.raises(TableEnded):
            await service.call(resident, Draw(Actor(seat=1)))
        report = verify(await bundle_of(service, resident), key=service.public_key)
        assert report.ok
        assert verify(public, key=service.public_key).ok
        new = await table_of(service)
    assert "database older than its mark" in [record.message for record in caplog.records]
    async with opened() as service:  # once only
        assert not await closed(service, new.table_id)
        assert (await what(service)).count("restore") == 1


async def test_a_complete_copy_goes_on_as_if_nothing_had_happened(
    opened: Open, copies: Copies
) -> None:
    async with opened() as service:
        resident = await round_of(service)
    copy = await copies.take()
    async with opened() as service:  # what is no event of a table is nothing that players saw
        await service.load(resident.table_id)
    await copies.restore(copy)
    async with opened() as service:
        resident = await service.load(resident.table_id)
        await service.call(resident, Draw(Actor(seat=2)))
        assert "restore" not in await what(service)


@ON_A_FILE
async def test_a_copy_that_was_played_on_elsewhere_is_another_history(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """As many events as the mark says, but not these."""
    async with opened() as service:
        resident = await round_of(service)
    copy = await copies.take()
    async with opened() as service:
        await service.call(await service.load(resident.table_id), Draw(Actor(seat=2)))
    await copies.restore(copy)
    (tmp_path / "elsewhere").mkdir()
    async with opened(marks=tmp_path / "elsewhere") as service:
        for _ in range(5):
            await service.call(await service.load(resident.table_id), Draw(Actor(seat=2)))
    async with opened() as service:
        assert await closed(service, resident.table_id)


@ON_A_FILE
@pytest.mark.parametrize("committed", [False, True])
async def test_a_shuffle_that_waits_does_not_keep_a_table_open(
    opened: Open, copies: Copies, committed: bool
) -> None:
    waits = {"commit_ms": 3_600_000, "reveal_ms": 3_600_000}
    async with opened() as service:
        resident = await table_of(service, entropy="players", **waits)
        await service.call(resident, StartShuffle(HOST))
        for seat in (1, 2) if committed else ():
            digest = player_digest(table=resident.id, round=1, k=0, seat=seat, nonce=bytes(32))
            await service.call(resident, CommitEntropy(Actor(seat=seat), 1, 0, digest))
    copy = await copies.take()
    async with opened() as service:
        await table_of(service)
    await copies.restore(copy)
    async with opened() as service:
        resident = await service.load(resident.table_id)
        assert resident.table.closed
        report = verify(await bundle_of(service, resident), key=service.public_key)
        assert report.ok, report.fault
        assert report.remarks.voided == committed


@ON_A_FILE
async def test_broken_off_it_is_finished_at_the_next_start(
    opened: Open, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        tables = [await round_of(service) for _ in range(3)]
    copy = await copies.take()
    async with opened() as service:
        await table_of(service)
    await copies.restore(copy)
    close = restored.close_tables

    async def fails(service: Service, tables: Any, **more: Any) -> Any:
        async for one in close(service, tables[:1], **more):
            yield one
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(restored, "close_tables", fails)
        with pytest.raises(RuntimeError, match="killed"):
            async with opened():
                raise AssertionError("it opened")
    async with opened() as service:
        assert all([await closed(service, one.table_id) for one in tables])
        assert (await what(service)).count("restore") == 1


@ON_A_FILE
async def test_a_damaged_table_keeps_no_other_open(
    opened: Open,
    copies: Copies,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as service:
        bad, good = await round_of(service), await round_of(service)
    copy = await copies.take()
    async with opened() as service:
        await table_of(service)
    await copies.restore(copy)
    load = Service.load

    async def loads(self: Service, table: str) -> Any:
        if table == bad.table_id:
            raise DatabaseDamaged("altered")
        return await load(self, table)

    with monkeypatch.context() as broken:
        broken.setattr(Service, "load", loads)
        async with opened() as service:
            assert await closed(service, good.table_id)
    assert "table left open" in [record.message for record in caplog.records]


async def test_an_archived_table_is_not_missed(opened: Open, copies: Copies, url: str) -> None:
    async with opened() as service:
        open_ = await table_of(service)
        resident = await round_of(service)
        await service.call(resident, CloseTable(HOST))
        version = resident.committed
    place = f"(SELECT id FROM stream WHERE table_id = {{}}), {version}"
    row = f"INSERT INTO archived VALUES ({place}, {{}}, {{}}, 'f', 1, {{}}, 1, 1)"
    delete = "DELETE FROM event WHERE stream = (SELECT id FROM stream WHERE table_id = {})"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute(row.format(*"????"), (resident.id, *[bytes(32)] * 3))
            database.execute(delete.format("?"), (resident.id,))
            database.commit()
    else:
        await asyncio.to_thread(
            asked, url, row.format("$1", "$2", "$3", "$4"), resident.id, *[bytes(32)] * 3
        )
        await asyncio.to_thread(asked, url, delete.format("$1"), resident.id)
    async with opened() as service:
        assert not await closed(service, open_.table_id)


async def test_another_node_finds_that_a_restore_was_dealt_with(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """Each node has a mark of its own; tables that were opened after the first one stay open."""
    folders = [tmp_path / name for name in ("one", "two")]
    async with opened() as service:
        await round_of(service)
    copy = await copies.take()
    for folder in folders:
        folder.mkdir()
        async with opened(marks=folder) as service:
            await round_of(service)
    await copies.restore(copy)
    async with opened(marks=folders[0]) as service:
        assert "restore" in await what(service)
        new = await round_of(service)
    async with opened(marks=folders[1]) as service:
        assert not await closed(service, new.table_id)
        assert (await what(service)).count("restore") == 1
    later = await copies.take()
    async with opened(marks=folders[1]) as service:
        await service.call(await service.load(new.table_id), Draw(Actor(seat=1)))
    await copies.restore(later)
    async with opened(marks=folders[1]) as service:  # a second restore is another one
        assert await closed(service, new.table_id)
        assert (await what(service)).count("restore") == 2


@ON_A_FILE
async def test_a_copy_from_before_an_earlier_restore_is_older_too(
    opened: Open, copies: Copies
) -> None:
    async with opened() as service:
        resident = await round_of(service)
    copy = await copies.take()
    for _ in range(2):
        async with opened() as service:
            await table_of(service)
        await copies.restore(copy)
        async with opened() as service:
            assert await closed(service, resident.table_id)
            await table_of(service)


async def test_what_a_node_only_showed_is_in_its_mark(
    opened: Open, copies: Copies, tmp_path: Path
) -> None:
    """The node that wrote it, and its disk, are gone; the other one has told its players."""
    folders = [tmp_path / name for name in ("writes", "shows")]
    for folder in folders:
        folder.mkdir()
    async with opened(marks=folders[0]) as one:
        resident = await round_of(one)
    copy = await copies.take()
    async with opened(marks=folders[0]) as one, opened(marks=folders[1]) as two:
        resident = await one.load(resident.table_id)
        shown = await two.load(resident.table_id)
        await one.call(resident, Draw(Actor(seat=2)))
        await two.catch_up(shown)
        assert shown.committed == resident.committed
        (line,) = read_marks(tmp_path / "house.key", folder=folders[1])
        assert line.version == shown.committed
    await copies.restore(copy)
    async with opened(marks=folders[1]) as service:
        assert await closed(service, resident.table_id)


async def test_a_node_that_runs_on_takes_up_the_new_generation(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MARK_SECONDS", 0.01)
    async with opened() as service:
        resident = await round_of(service)
        await service.log.put_house("generation.1", b"g" * 16)
        key = tmp_path / "house.key"
        async with asyncio.timeout(10):
            while read_marks(key):  # noqa: ASYNC110  the task tells nobody
                await asyncio.sleep(0.01)
        await service.call(resident, Draw(Actor(seat=1)))
        assert [line.generation for line in read_marks(key)] == [b"g" * 16]


async def test_the_mark_of_another_log_says_nothing_of_this_one(
    opened: Open, tmp_path: Path
) -> None:
    """Two databases under one key: the second was made by `dealer migrate` and used before."""
    key = tmp_path / "house.key"
    (tmp_path / "aside").mkdir()
    async with opened():
        pass
    other = f"sqlite:///{tmp_path / 'other.db'}"
    await migrate_database(other)
    async with open_service(other, house_key=key, marks=tmp_path / "aside") as service:
        resident = await round_of(service)
    async with opened() as service:
        await round_of(service)
    async with open_service(other, house_key=key) as service:
        assert not await closed(service, resident.table_id)


async def test_an_empty_database_is_refused_where_the_key_was_used(
    opened: Open, url: str, tmp_path: Path
) -> None:
    async with opened() as service:
        await table_of(service)
    key = tmp_path / "house.key"
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    await migrate_database(empty)
    for _ in range(2):
        with pytest.raises(HouseKeyError, match="has been used with another") as told:
            async with open_service(empty, house_key=key):
                raise AssertionError("it opened")
        assert "move the key and the mark elsewhere" in str(told.value)
    (tmp_path / "house.mark.0").unlink()
    async with open_service(empty, house_key=key):
        pass


async def test_a_key_is_copied_to_a_node_before_its_first_start(
    opened: Open, url: str, tmp_path: Path
) -> None:
    async with opened() as service:
        resident = await round_of(service)
    folder = tmp_path / "node"
    folder.mkdir()
    shutil.copy2(tmp_path / "house.key", folder)
    async with open_service(url, house_key=folder / "house.key") as service:
        assert not await closed(service, resident.table_id)


@ON_A_FILE
async def test_where_no_mark_can_be_kept_it_is_said(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opening = open_service(url, house_key=tmp_path / "house.key", marks=tmp_path / "nowhere")
    async with opening as service:
        await service.call(await table_of(service), TakeSeat("Eve"))
    assert "no high-water mark" in [record.message for record in caplog.records]
