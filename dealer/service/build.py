"""Opens the log, the key and the service, starts the background tasks, and closes all of it in the
opposite order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import ConfigurationError
from dealer.eventlog import Append, Appended, Log, Result, key_file, load_house_keys
from dealer.eventlog.address import database_file
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.high_water_mark import HighWaterMark, MarkRecord, read_marks
from dealer.eventlog.keys import MASTER_BYTES, HouseKeys, key_checks, require_database
from dealer.eventlog.recent import RecentEvents
from dealer.feed.feed import Feed
from dealer.projector.queries import FINISHED
from dealer.projector.scheduler import ProjectionScheduler
from dealer.service.clock import Clock, clock_skew, utc_ms
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.commit_stats import CommitStats
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.maintenance import MaintenanceMode
from dealer.service.commands.processor import CommandProcessor
from dealer.service.commands.random_draws import RandomDraws
from dealer.service.identity.admin import record_schema
from dealer.service.identity.seat_claims import SeatClaims
from dealer.service.identity.service_keys import ServiceKeys
from dealer.service.identity.service_tables import ServiceJournal, ServiceTables
from dealer.service.identity.tokens import Tickets, TokenKeys
from dealer.service.nodes.head_poller import HeadPoller
from dealer.service.nodes.presence import SharedPresence
from dealer.service.operations.close_tables import AutoClose
from dealer.service.operations.restore_check import (
    CloseProgress,
    close_if_restored,
    keep_mark,
    log_id,
    require_unused,
)
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.reading.consistency import ConsistencyProofs
from dealer.service.reading.lobby import PER_NETWORK, Lobby, Openers
from dealer.service.reading.past_states import PastStates
from dealer.service.service import Service
from dealer.service.tables.archive import ArchiveFolder
from dealer.service.tables.cache import BYTES, TABLES, TableCache
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.insecure_decks import InsecureDecks
from dealer.service.tables.live_table import Notices
from dealer.service.tables.loading import Loader
from dealer.service.tables.round_secret_cache import RoundSecretCache
from dealer.service.tables.stored_savepoints import StoredSavepoints
from dealer.webhooks.runner import WebhookRunner

GIVE_UP_MS = 3 * 86_400_000
"""Milliseconds of failures after which a webhook is switched off, unless it is a setting."""

log_ = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """Settings of the parts of a service.

    `house` is the name of the house in origins, without space or `+`. Tables in memory take about
    `memory` bytes at most, and at most `tables` of them are idle. The lobby lists at most
    `per_network` tables that one network opened. Bundles of archived tables are read from the
    folder `archive`. A webhook that fails for `webhook_give_up_ms` is switched off, unless that is
    0. With `insecure_test_decks` a test may choose what shuffles give. `program` is what `dealer
    serve` notes of itself before a round, see `CommandExecutor`. `clock` is the wall clock,
    milliseconds since 1970.
    """

    house: str = "localhost"
    tables: int = TABLES
    memory: int = BYTES
    per_network: int = PER_NETWORK
    archive: Path | None = None
    webhook_give_up_ms: int = GIVE_UP_MS
    insecure_test_decks: bool = False
    program: str = ""
    clock: Clock = utc_ms


DEFAULTS = ServiceOptions()


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
    progress: CloseProgress | None = None,
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
        service = make_service(
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
        progress = progress or CloseProgress()
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
                require_unused(lines, database=log.name, key=str(file))
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


def make_service(
    log: Log,
    keys: HouseKeys,
    options: ServiceOptions = DEFAULTS,
    *,
    mark: HighWaterMark | None = None,
    maintenance: MaintenanceMode | None = None,
) -> Service:
    """The parts of a service, each made of those before it; nothing of it runs yet."""
    tasks, damaged = BackgroundTasks(), DamagedTables()
    recent = RecentEvents(bound=options.memory // 4)
    service_keys = ServiceKeys()
    feed = Feed(log, recent, damaged, enabled=service_keys.any_reads)
    notices = Notices(recent, feed.subjects)
    # Tables in memory.
    decks = InsecureDecks(allowed=options.insecure_test_decks)
    secrets_of_rounds = RoundSecretCache(log, keys)
    reader = EventReader(log, recent, secrets_of_rounds, damaged)
    savepoints = StoredSavepoints(log, keys, secrets_of_rounds)
    loader = Loader(log, secrets_of_rounds, reader, savepoints, decks, damaged)
    projection = ProjectionScheduler(log, recent)
    cache = TableCache(loader, recent, savepoints, projection.projector)
    cache.bound, cache.bytes_bound = options.tables, options.memory
    # Commands.
    maintenance = maintenance or MaintenanceMode()
    executor = CommandExecutor(
        keys,
        house=options.house,
        maintenance=maintenance,
        cache=cache,
        insecure_decks=decks,
        program=options.program,
        clock=options.clock,
    )
    processor = CommandProcessor(
        log, keys, loader, reader, executor, cache, recent, savepoints, notices, tasks, mark
    )
    lifecycle = processor.lifecycle
    # What is read, and other nodes.
    checkpoints = Checkpoints(log, lifecycle, executor, tasks, notices)
    openers = Openers(log, keys)
    presence = SharedPresence(log)
    head_poller = HeadPoller(log, cache, lifecycle, checkpoints, presence)
    return Service(
        log=log,
        keys=keys,
        now=options.clock,
        stats=CommitStats(),
        recent=recent,
        damaged=damaged,
        notices=notices,
        tasks=tasks,
        reader=reader,
        loader=loader,
        savepoints=savepoints,
        tables=cache,
        insecure_decks=decks,
        archive=ArchiveFolder(options.archive),
        maintenance=maintenance,
        executor=executor,
        processor=processor,
        lifecycle=lifecycle,
        random_draws=RandomDraws(processor, reader, tasks),
        tokens=TokenKeys(keys),
        tickets=Tickets(keys, service_keys, options.clock),
        seat_claims=SeatClaims(log, keys, processor),
        service_keys=service_keys,
        service_tables=ServiceTables(log),
        service_journal=ServiceJournal(log),
        checkpoints=checkpoints,
        consistency=ConsistencyProofs(log, damaged),
        past_states=PastStates(log, secrets_of_rounds, damaged),
        openers=openers,
        lobby=Lobby(log, openers, per_network=options.per_network),
        finished=Lobby(log, openers, per_network=options.per_network, listed=FINISHED),
        projection=projection,
        presence=presence,
        head_poller=head_poller,
        hints=log.reader.notifier(head_poller.on_hint),
        feed=feed,
        webhooks=WebhookRunner(
            log,
            feed,
            keys,
            service_keys.filter_of,
            house=options.house,
            random=secrets.token_bytes,
            now=options.clock,
            give_up_ms=options.webhook_give_up_ms,
        ),
    )


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
    try:
        yield
    finally:
        await works.close()
        await service.close()
        if hints is not None:
            await hints.close()


@asynccontextmanager
async def _followers(
    service: Service, opened: _Opened, progress: CloseProgress
) -> AsyncIterator[None]:
    """What follows the log: the feed, webhooks and the mark, once a restored log was handled."""
    log, mark = opened.log, opened.mark
    folder = None if mark is None else mark.folder
    generation = await close_if_restored(service, log, opened.lines, progress, folder=folder)
    # After the check: what it wrote, and the generation, determine the positions.
    await service.feed.open()
    works = BackgroundTasks()
    try:
        works.start(service.feed.scheduler.run())
        works.start(service.webhooks.run())
        if mark is not None:
            # Not before: the marks of what closed the tables would replace those that name the
            # lost events, and after a crash these would not be missed.
            mark.begin(await log_id(log), generation)
            works.start(keep_mark(mark, log))
        yield
    finally:
        await works.close()
