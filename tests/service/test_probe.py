"""Probe: one check a second says whether the log can be read and written, and writes nothing."""

from __future__ import annotations

import asyncio
import logging
from errno import ENOMEM
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dealer.errors import DatabaseFull, DatabaseLocked, Unavailable, WorkerUnavailable
from dealer.eventlog import health
from dealer.eventlog.address import is_postgres
from dealer.eventlog.protocols import Connection
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.operations import probe as module
from dealer.service.operations.probe import MEMORY, RESERVE, Probe


class Clock:
    """Seconds that only a test advances."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def probe(service: Service, clock: Clock) -> Probe:
    return Probe(service.log, service.stats, now=service.now, clock=clock)


@pytest.fixture(autouse=True)
def _counted(service: Service) -> None:
    service.log.writer.commit_listeners.append(service.stats.batch)


async def make_read_only(service: Service, url: str, *, read_only: bool) -> None:
    """Allow or forbid writes of the writer's connection from its next transaction on."""
    if is_postgres(url):
        sql = f"SET default_transaction_read_only = {'on' if read_only else 'off'}"

        def switch(connection: Connection) -> bool:
            run(connection, sql)
            return False

        await service.log.run_in_transaction(switch)
        # Of a cluster also at each worker, where appends go.
        await service.log.run_when_idle(switch, by_worker=True)
        return
    store: Any = service.log.writer._store
    run(store._connection, f"PRAGMA query_only = {int(read_only)}")


def run(connection: Connection, sql: str) -> None:
    connection.exec_driver_sql(sql)


def contents(folder: Path) -> dict[str, bytes]:
    """The database and its WAL."""
    return {name: (folder / name).read_bytes() for name in ("dealer.db", "dealer.db-wal")}


async def test_a_check_without_commits_writes_nothing(
    service: Service, probe: Probe, url: str, tmp_path: Path
) -> None:
    await service.open_table({})
    await service.log.run_when_idle(Projector().slice)
    await probe.check()
    before = {} if is_postgres(url) else contents(tmp_path)
    for _ in range(3):
        await probe.check()
    assert probe.problem is None
    assert before == ({} if is_postgres(url) else contents(tmp_path))


async def test_a_log_that_cannot_be_written_is_found_without_a_commit(
    service: Service, probe: Probe, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, module.__name__)
    await probe.check()
    await make_read_only(service, url, read_only=True)
    for _ in range(2):
        await probe.check()
        assert probe.problem is not None
        assert ("is read-only" if is_postgres(url) else "cannot be written") in probe.problem
    await make_read_only(service, url, read_only=False)
    await probe.check()
    assert probe.problem is None
    lines = [vars(record)["fields"]["ready"] for record in caplog.records]
    assert lines == [False, True]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_locked_read_model_leaves_the_server_ready(
    service: Service, probe: Probe, url: str
) -> None:
    """Its projection is tried again later; commands and the probe do not wait for the lock."""
    await service.open_table({})
    await probe.check()
    other = await asyncpg.connect(url)
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE")
            projecting = asyncio.ensure_future(service.log.run_when_idle(Projector().slice))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not projecting.done() and not await other.fetchval(waits):
                pass
            await probe.check()
            assert probe.problem is None
            with pytest.raises(DatabaseLocked):
                await projecting
    finally:
        await other.close()
    await service.log.run_when_idle(Projector().slice)


async def test_a_worker_of_a_cluster_that_is_down_leaves_the_server_ready(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    await probe.check()
    before = probe.lag

    async def down(*_: object) -> None:
        raise WorkerUnavailable("a worker is down")

    monkeypatch.setattr(module, "projector_lag", down)
    await probe.check()
    assert (probe.problem, probe.lag) == (None, before)


async def test_a_commit_shows_that_the_log_can_be_written(
    service: Service, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    await probe.check()
    await service.open_table({})
    monkeypatch.setattr(module, "require_write_lock", None)
    await probe.check()
    assert probe.problem is None


async def test_after_a_failed_append_rows_are_written_until_that_succeeds(
    service: Service, probe: Probe, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await probe.check()
    await make_read_only(service, url, read_only=True)
    with pytest.raises(Unavailable):
        await service.open_table({})

    async def full(log: object) -> None:
        raise DatabaseFull("The disk is full.")

    # As on a full disk: taking the lock would succeed.
    monkeypatch.setattr(module, "require_write", full)
    for _ in range(2):
        await probe.check()
        assert probe.problem == "The disk is full."
    monkeypatch.setattr(module, "require_write", health.require_write)
    if is_postgres(url):  # of a cluster the connection to the coordinator is still the same
        await make_read_only(service, url, read_only=False)
    before = {} if is_postgres(url) else contents(tmp_path)
    await probe.check()
    assert probe.problem is None
    if before:
        assert contents(tmp_path) != before
    assert await service.log.fetch("SELECT id FROM node") == []
    monkeypatch.setattr(module, "require_write", None)
    await probe.check()
    assert probe.problem is None


async def test_an_old_result_does_not_count(probe: Probe, clock: Clock) -> None:
    await probe.check()
    clock.now += module.STALE_SECONDS
    assert probe.problem is None
    clock.now += 1
    assert probe.age == module.STALE_SECONDS + 1
    assert "last checked 6 s ago" in (probe.problem or "")
    await probe.check()
    assert probe.problem is None


async def test_a_log_that_does_not_answer_is_not_waited_for(
    service: Service, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(work: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr(service.log, "run_in_transaction", never)
    await probe.check()
    assert probe.problem == "the log does not answer in time"


async def test_it_continues_after_an_internal_error(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    checked, again = 0, asyncio.Event()

    async def broken(*_: object) -> None:
        nonlocal checked
        checked += 1
        if checked == 3:
            again.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, "projector_lag", broken)
    monkeypatch.setattr(module, "SECONDS", 0.0)
    running = asyncio.create_task(probe.run())
    async with asyncio.timeout(20):
        await again.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert {str(context["exception"]) for context in reported} == {"a bug"}


async def test_the_lag_is_counted_up_to_a_bound(
    service: Service, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await service.open_table({})
    await probe.check()
    assert probe.lag == (5, 5)
    monkeypatch.setattr(health, "_LAG", health._LAG.replace("1000", "3"))
    await probe.check()
    assert probe.lag == (3, 3)
    await service.log.run_when_idle(Projector().slice)
    await probe.check()
    assert probe.lag == (0, 0)


async def test_a_memory_error_is_seen_at_the_next_check(probe: Probe) -> None:
    await probe.check()
    assert probe.problem is None
    MEMORY.note(KeyError("a bug"))
    await probe.check()
    assert probe.problem is None
    MEMORY.note(MemoryError())
    await probe.check()
    assert probe.problem is not None
    assert "memory" in probe.problem
    await probe.check()
    assert probe.problem is None


async def test_a_memory_error_before_a_probe_is_not_its_own(service: Service, clock: Clock) -> None:
    MEMORY.note(MemoryError())
    probe = Probe(service.log, service.stats, now=service.now, clock=clock)
    await probe.check()
    assert probe.problem is None


async def test_without_a_reserve_the_process_is_not_ready(
    probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, size: int) -> None:
        assert (file, size) == (-1, RESERVE)
        raise OSError(ENOMEM, "no memory")

    monkeypatch.setattr(module, "mmap", full)
    for _ in range(2):
        await probe.check()
        assert probe.problem is not None
        assert "memory" in probe.problem
    monkeypatch.undo()
    await probe.check()
    assert probe.problem is None
