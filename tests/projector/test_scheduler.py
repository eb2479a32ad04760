"""The scribe on a real log: soon, not at once, and never lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import Append, Appended, Log
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


async def behind(log: Log) -> list[Any]:
    """Tables whose read models have not come to their newest version."""
    return await log.fetch("SELECT table_id FROM stream WHERE version > projected")


async def until_nothing_is_behind(log: Log) -> None:
    async with asyncio.timeout(20):
        while await behind(log):
            pass


async def test_what_an_earlier_process_left_is_taken_up(log: Log) -> None:
    game = short_game()
    await append(log, game)
    scribe = ProjectionScheduler(log)
    scribe.start()
    await until_nothing_is_behind(log)
    assert scribe.projector.done == len(game.rows)
    scribe.close()


async def test_it_waits_until_enough_has_gathered(log: Log) -> None:
    game = Game()
    scribe = ProjectionScheduler(log, appends=3, seconds=3600)
    for number in range(2):
        game.sit(f"player {number}")
        await append(log, game)
        scribe.on_commit(1)
    await log.run_when_idle(lambda connection: False)
    assert len(await behind(log)) == 1
    game.sit("the third")
    await append(log, game)
    scribe.on_commit(1)
    await until_nothing_is_behind(log)
    scribe.close()


async def test_little_is_written_too_after_a_while(log: Log) -> None:
    scribe = ProjectionScheduler(log, appends=1000, seconds=0.01)
    await append(log, Game())
    scribe.on_commit(1)
    await until_nothing_is_behind(log)
    scribe.close()


async def test_up_to_date_means_all_that_is_in_the_log(log: Log) -> None:
    scribe = ProjectionScheduler(log, seconds=3600)
    game = short_game()
    await append(log, game)
    scribe.on_commit(1)
    await scribe.up_to_date()
    assert await behind(log) == []
    found = await log.fetch("SELECT count(*) FROM draws WHERE table_id = ?", (game.id.hex(),))
    assert found[0][0] == 5
    scribe.close()


async def test_after_a_failure_it_tries_again(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    scribe = ProjectionScheduler(log, appends=1)
    await append(log, Game())
    await log.run_when_idle(
        lambda connection: (
            bool(connection.exec_driver_sql("ALTER TABLE seats RENAME TO hidden")) and False
        )
    )
    game = Game("b").sit("Ada")
    await append(log, game)
    scribe.on_commit(1)
    async with asyncio.timeout(20):
        while not caplog.records:
            await behind(log)
    assert "projection failed" in caplog.text
    await log.run_when_idle(
        lambda connection: (
            bool(connection.exec_driver_sql("ALTER TABLE hidden RENAME TO seats")) and False
        )
    )
    await until_nothing_is_behind(log)
    scribe.close()


async def test_the_lag_is_the_age_of_the_oldest_append_that_is_not_projected(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    monkeypatch.setattr(module, "RETRY_SECONDS", 3600)
    scribe = ProjectionScheduler(log, seconds=3600)
    assert scribe.lag_seconds == 0
    await append(log, Game())
    scribe.on_commit(1)
    now += 7
    scribe.on_commit(1)
    assert scribe.lag_seconds == 7
    slice_ = scribe.projector.slice

    def fail(connection: Connection) -> bool:
        raise ConcurrentUpdate("another process")

    monkeypatch.setattr(scribe.projector, "slice", fail)
    with pytest.raises(ConcurrentUpdate):
        await scribe.up_to_date()
    now += 3
    scribe.on_commit(1)
    assert scribe.lag_seconds == 10  # a failure does not make it younger
    monkeypatch.setattr(scribe.projector, "slice", slice_)
    await scribe.up_to_date()
    assert scribe.lag_seconds == 0
    assert sum(scribe.slice_seconds.counts) == 2
    scribe.close()


async def test_what_comes_while_it_writes_is_not_forgotten(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe = ProjectionScheduler(log, appends=1, seconds=3600)
    goes_on = threading.Event()
    slice_ = scribe.projector.slice

    def sees_nothing_yet(connection: Connection) -> bool:
        goes_on.wait(20)
        monkeypatch.setattr(scribe.projector, "slice", slice_)
        return False

    monkeypatch.setattr(scribe.projector, "slice", sees_nothing_yet)
    scribe.start()
    appended = log.append(Append((game := Game()).id, 0, game.rows))
    scribe.on_commit(1)
    goes_on.set()
    await appended
    await until_nothing_is_behind(log)
    scribe.close()


async def test_closing_the_log_first_is_no_error(file: Path) -> None:
    log = await Log.open(f"sqlite:///{file}", wal_pages=50)
    scribe = ProjectionScheduler(log, seconds=0.001)
    await append(log, Game())
    scribe.on_commit(1)
    await log.close()
    scribe.on_commit(100)
    scribe.start()
    scribe.close()
    log = await Log.open(f"sqlite:///{file}", wal_pages=50)
    later = ProjectionScheduler(log)
    await later.up_to_date()
    assert await behind(log) == []
    later.close()
    await log.close()


async def test_a_rebuild_runs_on_the_log_beside_the_scribe(log: Log) -> None:
    game = short_game()
    await append(log, game)
    scribe = ProjectionScheduler(log)
    scribe.start()
    rebuild = Rebuild(events=10)
    await log.run_when_idle(rebuild.slice)
    assert rebuild.done == len(game.rows)
    assert rebuild.different == 0
    await scribe.up_to_date()
    assert await behind(log) == []
    scribe.close()
