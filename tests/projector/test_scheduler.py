"""The projection scheduler on an SQLite log: it projects after a delay and loses no event."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import Append, Appended, Log
from dealer.eventlog.recent import RecentEvents
from dealer.projector import scheduler as module
from dealer.projector.rebuild import Rebuild
from dealer.projector.scheduler import ProjectionScheduler
from tests.projector.random_games import Game, short_game


@pytest.fixture
async def log(file: Path) -> AsyncIterator[Log]:
    async with await Log.open(f"sqlite:///{file}", wal_pages=50) as log:
        yield log


async def append(log: Log, game: Game) -> None:
    rows = game.rows[game.logged :]
    assert isinstance(await log.append(Append(game.id, game.logged, rows)), Appended)
    game.logged = len(game.rows)


@asynccontextmanager
async def running(scheduler: ProjectionScheduler) -> AsyncIterator[None]:
    task = asyncio.create_task(scheduler.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def lagging(log: Log) -> list[Any]:
    """Tables whose read models lag behind their newest version."""
    return await log.fetch("SELECT table_id FROM stream WHERE version > projected")


async def until_nothing_lags(log: Log) -> None:
    async with asyncio.timeout(20):
        while await lagging(log):
            pass


async def test_events_that_an_earlier_process_left_are_projected_at_the_start(log: Log) -> None:
    game = short_game()
    await append(log, game)
    scheduler = ProjectionScheduler(log, RecentEvents())
    async with running(scheduler):
        await until_nothing_lags(log)
    assert scheduler.projector.done == len(game.rows)


async def test_appends_are_projected_after_a_delay(log: Log) -> None:
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=0.01)
    async with running(scheduler):
        await scheduler.up_to_date()
        await append(log, Game())
        scheduler.on_commit()
        await until_nothing_lags(log)


async def test_appends_wait_for_the_end_of_the_delay(log: Log) -> None:
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=3600)
    async with running(scheduler):
        await scheduler.up_to_date()
        await append(log, Game())
        scheduler.on_commit()
        await log.run_when_idle(lambda connection: False)
        assert len(await lagging(log)) == 1


async def test_up_to_date_waits_until_the_whole_log_is_projected(log: Log) -> None:
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=3600)
    game = short_game()
    await append(log, game)
    scheduler.on_commit()
    await scheduler.up_to_date()
    assert await lagging(log) == []
    found = await log.fetch("SELECT count(*) FROM draws WHERE table_id = ?", (game.id.hex(),))
    assert found[0][0] == 5


async def test_a_failed_projection_is_retried(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    scheduler = ProjectionScheduler(log, RecentEvents())
    await append(log, Game())
    await log.run_when_idle(
        lambda connection: (
            bool(connection.exec_driver_sql("ALTER TABLE seats RENAME TO hidden")) and False
        )
    )
    game = Game("b").sit("Ada")
    await append(log, game)
    async with running(scheduler):
        async with asyncio.timeout(20):
            while not caplog.records:
                await lagging(log)
        assert "projection failed" in caplog.text
        await log.run_when_idle(
            lambda connection: (
                bool(connection.exec_driver_sql("ALTER TABLE hidden RENAME TO seats")) and False
            )
        )
        await until_nothing_lags(log)


async def test_a_failure_that_lasts_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The file was deleted: every attempt fails until the server is restarted."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    log = await Log.open(f"sqlite:///{tmp_path}/dealer.db")
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=0.0)
    attempts, failed = 0, asyncio.Event()
    rolled_back = scheduler.projector.rolled_back

    def count() -> None:
        nonlocal attempts
        attempts += 1
        rolled_back()
        if attempts == 4:
            failed.set()

    monkeypatch.setattr(scheduler.projector, "rolled_back", count)
    (tmp_path / "dealer.db").unlink()
    async with running(scheduler), asyncio.timeout(20):
        await failed.wait()
    assert caplog.text.count("projection failed") == 1
    await log.close()


async def test_the_lag_is_the_age_of_the_oldest_append_that_is_not_projected(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    monkeypatch.setattr(module, "RETRY_SECONDS", 3600)
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=3600)
    assert scheduler.lag_seconds == 0
    await append(log, Game())
    scheduler.on_commit()
    now += 7
    scheduler.on_commit()
    assert scheduler.lag_seconds == 7
    slice_ = scheduler.projector.slice

    def fail(connection: Connection) -> bool:
        raise ConcurrentUpdate("another process")

    monkeypatch.setattr(scheduler.projector, "slice", fail)
    with pytest.raises(ConcurrentUpdate):
        await scheduler.up_to_date()
    now += 3
    scheduler.on_commit()
    assert scheduler.lag_seconds == 10  # a failure does not reset the lag
    monkeypatch.setattr(scheduler.projector, "slice", slice_)
    await scheduler.up_to_date()
    assert scheduler.lag_seconds == 0
    assert sum(scheduler.slice_seconds.counts) == 2


async def test_an_append_during_a_slice_is_projected(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=0.0)
    resume = threading.Event()
    slice_ = scheduler.projector.slice

    def finds_no_events(connection: Connection) -> bool:
        resume.wait(20)
        monkeypatch.setattr(scheduler.projector, "slice", slice_)
        return False

    monkeypatch.setattr(scheduler.projector, "slice", finds_no_events)
    async with running(scheduler):
        appended = log.append(Append((game := Game()).id, 0, game.rows))
        scheduler.on_commit()
        resume.set()
        await appended
        await until_nothing_lags(log)


async def test_closing_the_log_first_is_no_error(file: Path) -> None:
    log = await Log.open(f"sqlite:///{file}", wal_pages=50)
    scheduler = ProjectionScheduler(log, RecentEvents(), seconds=0.001)
    await append(log, Game())
    async with running(scheduler):
        scheduler.on_commit()
        await log.close()
        scheduler.on_commit()
    log = await Log.open(f"sqlite:///{file}", wal_pages=50)
    later = ProjectionScheduler(log, RecentEvents())
    await later.up_to_date()
    assert await lagging(log) == []
    await log.close()


async def test_a_rebuild_runs_next_to_the_scheduler(log: Log) -> None:
    game = short_game()
    await append(log, game)
    scheduler = ProjectionScheduler(log, RecentEvents())
    async with running(scheduler):
        rebuild = Rebuild(events=10)
        await log.run_when_idle(rebuild.slice)
        assert rebuild.done == len(game.rows)
        assert rebuild.different == 0
        await scheduler.up_to_date()
        assert await lagging(log) == []
