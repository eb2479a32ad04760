"""Opens the log, the key and the service, starts the background tasks, and closes all of it in the
opposite order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import ConfigurationError
from dealer.eventlog import Append, Appended, Log, Result, key_file, load_house_keys
from dealer.eventlog.address import database_file
from dealer.eventlog.high_water_mark import HighWaterMark, MarkRecord, read_marks
from dealer.eventlog.keys import MASTER_BYTES, HouseKeys, key_checks, require_database
from dealer.service.clock import clock_skew
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.maintenance import MaintenanceMode
from dealer.service.identity.admin import record_schema
from dealer.service.operations import restore_check
from dealer.service.operations.close_tables import AutoClose
from dealer.service.service import DEFAULTS, Service, ServiceOptions

log_ = logging.getLogger(__name__)


@asynccontextmanager
async def open_service(
    database: str,
    options: ServiceOptions = DEFAULTS,
    *,
    house_key: Path | None = None,
    marks: Path | None = None,
    disk_floor: int = 0,
    close_empty_ms: int = 0,
    close_idle_ms: int = 0,
    close_decks_ms: int = 0,
    progress: restore_check.CloseProgress | None = None,
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is created if it is missing.

    `house_key` is the file of the house key, created at the first start: by default next to an
    SQLite file, required for a server's database. The high-water marks are stored next to the key,
    or in the folder `marks`; the open tables of a database that is older than they say are closed
    first, because it was restored from a backup, and `progress` says how far. `MaintenanceMode`
    describes `disk_floor`, which is of an SQLite file, and `AutoClose` the times after which it
    closes tables; `log` goes to `Log.open`. Raises DatabaseError, HouseKeyError or
    ConfigurationError.
    """
    file = key_file(database, house_key)
    async with _open_log(database, file, marks, log) as opened:
        disk = None
        if opened.log.dialect == "sqlite":
            disk = database_file(database).absolute().parent
        service = Service(
            opened.log,
            opened.keys,
            options,
            mark=opened.mark,
            maintenance=MaintenanceMode(keys=(opened.keys, file), folder=disk, floor=disk_floor),
        )
        await _check_environment(service)
        closer = AutoClose(
            service, empty_ms=close_empty_ms, idle_ms=close_idle_ms, deck_ms=close_decks_ms
        )
        progress = progress or restore_check.CloseProgress()
        async with _background(service, closer), _followers(service, opened, progress):
            yield service


class _Opened(NamedTuple):
    """The log, the keys of its house, and its mark, None where none can be kept.

    `lines` are those of the marks before this start.
    """

    log: Log
    keys: HouseKeys
    mark: HighWaterMark | None
    lines: Sequence[MarkRecord]


@asynccontextmanager
async def _open_log(
    database: str, file: Path, marks: Path | None, settings: dict[str, Any]
) -> AsyncIterator[_Opened]:
    await asyncio.to_thread(require_database, database, file)
    # Read before the log: other processes write marks after their commits.
    lines, databases = await asyncio.to_thread(read_marks, file, folder=marks)
    mark: HighWaterMark | None = None
    try:
        async with await Log.open(database, **settings) as log:
            identity = await log.reader.fence(databases)  # before anything is written
            if not await key_checks(log):
                restore_check.require_unused(lines, database=log.name, key=str(file))
            keys = await load_house_keys(log, file, fresh=secrets.token_bytes(MASTER_BYTES))
            mark = await asyncio.to_thread(
                HighWaterMark.take, file, fresh=secrets.token_bytes(16), folder=marks
            )
            if mark is None:
                fields = {"folder": str(marks or file.parent)}
                log_.warning("no high-water mark", extra={"fields": fields})
            else:
                mark.uses(identity)
                log.writer.written_listeners.append(mark.wrote)
            yield _Opened(log, keys, mark, lines)
    finally:
        if mark is not None:
            mark.close()  # after the log, which still writes its queue and marks it


async def _check_environment(service: Service) -> None:
    """Check the clock, read disk, maintenance targets and service keys, and record the schema."""
    wrong = await clock_skew(service.log, service.now)
    if wrong is not None:
        raise ConfigurationError(f"{wrong} and start again.")
    await service.maintenance.measure_disk()
    await service.maintenance.refresh(service.log)
    await service.service_keys.refresh(service.log)
    moved = await record_schema(service.log)
    if moved is not None:
        log_.info("migrated", extra={"fields": dict(zip(("before", "now"), moved, strict=True))})


@asynccontextmanager
async def _background(service: Service, closer: AutoClose) -> AsyncIterator[None]:
    """The background work: projection, hints between nodes, polls, and the watch on the file."""
    log, hints, feed, keys = service.log, service.hints, service.feed, service.service_keys

    def on_commit(batch: list[tuple[Append, Result]]) -> None:
        """After the subscribers and the callers: all that may be a little later.

        A crash before or in it loses nothing: the projector and the feed find in the log what they
        have not seen, and other nodes poll.
        """
        service.stats.batch(batch)
        written = [append for append, result in batch if type(result) is Appended and append.rows]
        if not written:
            return
        service.projection.on_commit()
        if keys.any_reads():
            feed.scheduler.on_commit(written)
        if hints is not None:
            tables = {append.table for append in written}
            hints.notify(table for table in tables if not service.presence.alone(table))

    log.writer.commit_listeners.append(on_commit)
    if hints is not None:
        hints.start()
    works = BackgroundTasks()
    works.start(service.projection.run())
    works.start(service.head_poller.run())
    works.start(service.maintenance.run(log))
    works.start(keys.run(log))
    works.start(service.stats.watch_file(log))
    works.start(closer.run())
    works.start(service.openers.run())
    works.start(service.broadcasts.run())
    try:
        yield
    finally:
        await works.close()
        await service.close()
        if hints is not None:
            await hints.close()


@asynccontextmanager
async def _followers(
    service: Service, opened: _Opened, progress: restore_check.CloseProgress
) -> AsyncIterator[None]:
    """What follows the log: the feed, webhooks and the mark, once a restored log was handled."""
    log, mark = opened.log, opened.mark
    folder = None if mark is None else mark.folder
    generation = await restore_check.close_if_restored(
        service, log, opened.lines, progress, folder=folder
    )
    # After the check: what it wrote, and the generation, determine the positions.
    await service.feed.open()
    works = BackgroundTasks()
    try:
        works.start(service.feed.scheduler.run())
        works.start(service.webhooks.run())
        if mark is not None:
            # Not before: the marks of what closed the tables would replace those that name the
            # lost events, and after a crash these would not be missed.
            mark.begin(await restore_check.log_id(log), generation)
            works.start(restore_check.keep_mark(mark, log))
        yield
    finally:
        await works.close()
