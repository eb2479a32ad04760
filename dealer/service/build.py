"""Opens the log, the key and the service, starts the background tasks, and closes all of it in the
opposite order. Two of the tasks watch the database file and sync the high-water mark.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dealer.errors import ConfigurationError, DatabaseReplaced, DealerError
from dealer.eventlog import Append, Appended, Log, Result, key_file, load_house_keys
from dealer.eventlog.address import database_file
from dealer.eventlog.high_water_mark import HighWaterMark, read_marks
from dealer.eventlog.keys import MASTER_BYTES, key_checks, require_database
from dealer.projector.scheduler import ProjectionScheduler
from dealer.service.clock import Clock, clock_skew, utc_ms
from dealer.service.commands.commit_stats import CommitStats
from dealer.service.identity.admin import record_schema
from dealer.service.operations.close_tables import AutoClose
from dealer.service.operations.restore_check import (
    Home,
    close_if_restored,
    find_lost,
    generations,
    log_id,
    next_generation,
    require_unused,
    settle,
)
from dealer.service.operations.webhooks import runner_of
from dealer.service.reading.lobby import PER_NETWORK
from dealer.service.service import Service
from dealer.service.tables.cache import BYTES, TABLES

GIVE_UP_MS = 3 * 86_400_000
"""Milliseconds of failures after which a webhook is switched off, unless it is a setting."""

log_ = logging.getLogger(__name__)


@asynccontextmanager
async def open_service(
    database: str,
    *,
    house: str = "localhost",
    house_key: Path | None = None,
    tables: int = TABLES,
    memory: int = BYTES,
    per_network: int = PER_NETWORK,
    close_empty_ms: int = 0,
    close_idle_ms: int = 0,
    close_decks_ms: int = 0,
    disk_floor: int = 0,
    archive: Path | None = None,
    marks: Path | None = None,
    webhook_give_up_ms: int = GIVE_UP_MS,
    insecure_test_decks: bool = False,
    program: str = "",
    clock: Clock = utc_ms,
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is created if it is missing.

    `house_key` is the file of the house key, created at the first start: by default next to an
    SQLite file, required for a server's database. The high-water marks are stored next to the key,
    or in the folder `marks`; the open tables of a database that is older than they say are closed
    first, because it was restored from a backup. Bundles of archived tables are read from
    `archive`. A webhook that fails for `webhook_give_up_ms` is switched off, unless that is 0.
    `program` is the text of a note at each table, before a round. `clock` returns milliseconds
    since 1970. `Service`, `AutoClose` and, for an SQLite file, `MaintenanceMode.watch_disk`
    describe the numbers; `log` goes to `Log.open`. Raises DatabaseError, HouseKeyError or
    ConfigurationError.
    """
    file = key_file(database, house_key)
    await asyncio.to_thread(require_database, database, file)
    # Read before the log: other processes write marks after their commits.
    lines = await asyncio.to_thread(read_marks, file, folder=marks)
    with ExitStack() as after_the_log:
        async with await Log.open(database, **log) as database_log:
            if not await key_checks(database_log):
                require_unused(lines, database=database_log.name, key=str(file))
            key = await load_house_keys(database_log, file, fresh=secrets.token_bytes(MASTER_BYTES))
            service = Service(
                database_log,
                key,
                house=house,
                tables=tables,
                memory=memory,
                per_network=per_network,
                archive=archive,
                insecure_test_decks=insecure_test_decks,
                program=program,
                clock=clock,
            )
            if database_log.dialect == "sqlite":
                folder = database_file(database).absolute().parent
                service.maintenance.watch_disk(folder, floor=disk_floor)
                await service.maintenance.measure_disk()
            service.maintenance.watch_keys(key, file)
            await _check_environment(service)
            closer = AutoClose(
                service, empty_ms=close_empty_ms, idle_ms=close_idle_ms, deck_ms=close_decks_ms
            )
            async with _background(service, database_log, closer):
                mark = await asyncio.to_thread(
                    HighWaterMark.take, file, fresh=secrets.token_bytes(16), folder=marks
                )
                if mark is not None:
                    # Closed after the log, which still writes its queue and marks it.
                    after_the_log.callback(mark.close)
                generation = await close_if_restored(
                    service, database_log, lines, folder=None if mark is None else mark.folder
                )
                # After the check: what it wrote, and the generation, determine the positions.
                await service.feed.open()
                service.webhooks = runner_of(service, key, house, give_up_ms=webhook_give_up_ms)
                works = [service.feed.scheduler.run(), service.webhooks.run()]
                if mark is None:
                    fields = {"folder": str(marks or file.parent)}
                    log_.warning("no high-water mark", extra={"fields": fields})
                else:
                    mark.begin(await log_id(database_log), generation)
                    service.use_mark(mark)
                    works.append(keep_mark(mark, database_log))
                async with _running(*works):
                    yield service


async def _check_environment(service: Service) -> None:
    """Check the clock, read maintenance targets and service keys, and record the schema."""
    wrong = await clock_skew(service.log, service.now)
    if wrong is not None:
        raise ConfigurationError(f"{wrong} and start again.")
    await service.maintenance.refresh(service.log)
    await service.service_keys.refresh(service.log)
    moved = await record_schema(service.log)
    if moved is not None:
        log_.info("migrated", extra={"fields": dict(zip(("before", "now"), moved, strict=True))})


@asynccontextmanager
async def _background(service: Service, log: Log, closer: AutoClose) -> AsyncIterator[None]:
    """The background work: projection, hints between nodes, polls, and the watch on the file."""
    scheduler = ProjectionScheduler(log, service.recent)
    hints = log.reader.notifier(service.head_poller.on_hint)
    service.projection, service.hints = scheduler, hints

    def on_commit(batch: list[tuple[Append, Result]]) -> None:
        """After the subscribers and the callers: all that may be a little later."""
        service.stats.batch(batch)
        written = [append for append, result in batch if type(result) is Appended and append.rows]
        if not written:
            return
        scheduler.on_commit(len(written))
        if service.service_keys.any_reads:
            service.feed.scheduler.on_commit(written)
        if hints is not None:
            tables = {append.table for append in written}
            hints.notify(table for table in tables if not service.presence.alone(table))

    log.writer.commit_listeners.append(on_commit)
    scheduler.start()
    if hints is not None:
        hints.start()
    try:
        async with _running(
            service.head_poller.run(),
            service.maintenance.run(log),
            service.service_keys.run(log),
            watch_file(log, service.stats),
            closer.run(),
            service.openers.run(),
        ):
            yield
    finally:
        scheduler.close()
        await service.close()
        if hints is not None:
            await hints.close()


@asynccontextmanager
async def _running(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the coroutines as tasks while the block runs, then cancel them and wait for their end."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


FILE_SECONDS = 0.5
"""Seconds between checks that the database file is still the one that was opened."""

MARK_SECONDS = 1.0
"""Seconds between syncs of the mark, and reads of the log's generation."""


async def watch_file(log: Log, stats: CommitStats) -> None:
    """Return once the file of this log was deleted or replaced; by then every use of it raises."""
    while True:
        try:
            await log.require_file()
        except DatabaseReplaced as error:
            stats.failing = True
            log_.error("database file lost", extra={"fields": {"says": str(error)}})
            return
        except DealerError:
            pass  # other errors reach the callers that use the log
        await asyncio.sleep(FILE_SECONDS)


async def keep_mark(mark: HighWaterMark, log: Log) -> None:
    """Sync the mark, and restart it when another node has handled a restored log.

    When the log is in another database, as after a failover, and has the newest events of this
    process, that is recorded, so that the next start does not take it for a copy.
    """
    known = await generations(log)
    database = await log.reader.identity()
    while True:
        await asyncio.sleep(MARK_SECONDS)
        await asyncio.to_thread(mark.sync)
        with suppress(DealerError):
            generation = await next_generation(log, len(known))
            if generation is not None:
                known.append(generation)
                mark.begin(mark.log, generation)
            found = await log.reader.identity()
            if found != database and await find_lost(log, mark.records()) is None:
                await settle(log, Home(found, mark.folder))
                database = found
