"""Opens the log, the key and the service, starts the background tasks, and closes all of it in the
opposite order. Two of the tasks watch the database file and sync the high-water mark.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dealer.errors import ConfigurationError, DatabaseReplaced, DealerError
from dealer.eventlog import Append, Appended, Log, Result, key_file, load_house_keys
from dealer.eventlog.address import database_file
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.high_water_mark import HighWaterMark, read_marks
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
    Home,
    close_if_restored,
    find_lost,
    generations,
    log_id,
    next_generation,
    record_home,
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
from dealer.webhooks.runner import Environment, WebhookRunner

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
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is created if it is missing.

    `house_key` is the file of the house key, created at the first start: by default next to an
    SQLite file, required for a server's database. The high-water marks are stored next to the key,
    or in the folder `marks`; the open tables of a database that is older than they say are closed
    first, because it was restored from a backup. `MaintenanceMode` describes `disk_floor`, which is
    of an SQLite file, and `AutoClose` the times after which it closes tables; `log` goes to
    `Log.open`. Raises DatabaseError, HouseKeyError or ConfigurationError.
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
            mark = await asyncio.to_thread(
                HighWaterMark.take, file, fresh=secrets.token_bytes(16), folder=marks
            )
            if mark is None:
                fields = {"folder": str(marks or file.parent)}
                log_.warning("no high-water mark", extra={"fields": fields})
            else:
                # Closed after the log, which still writes its queue and marks it.
                after_the_log.callback(mark.close)
                database_log.writer.written_listeners.append(mark.wrote)
            disk = None
            if database_log.dialect == "sqlite":
                disk = database_file(database).absolute().parent
            service = make_service(
                database_log,
                key,
                options,
                mark=mark,
                maintenance=MaintenanceMode(keys=(key, file), folder=disk, floor=disk_floor),
            )
            await _check_environment(service)
            closer = AutoClose(
                service, empty_ms=close_empty_ms, idle_ms=close_idle_ms, deck_ms=close_decks_ms
            )
            async with _background(service, closer):
                generation = await close_if_restored(
                    service, database_log, lines, folder=None if mark is None else mark.folder
                )
                # After the check: what it wrote, and the generation, determine the positions.
                await service.feed.open()
                works = BackgroundTasks()
                try:
                    works.start(service.feed.scheduler.run())
                    works.start(service.webhooks.run())
                    if mark is not None:
                        # Not before: the marks of what closed the tables would replace those that
                        # name the lost events, and after a crash these would not be missed.
                        mark.begin(await log_id(database_log), generation)
                        works.start(keep_mark(mark, database_log))
                    yield service
                finally:
                    await works.close()


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
    cache = TableCache(loader, recent, savepoints, bound=options.tables, bytes_bound=options.memory)
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
    environment = Environment(
        node=secrets.token_bytes(8),
        house=options.house,
        random=secrets.token_bytes,
        now=options.clock,
        filter_of=service_keys.filter_of,
        give_up_ms=options.webhook_give_up_ms,
    )
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
        projection=ProjectionScheduler(log, recent),
        presence=presence,
        head_poller=head_poller,
        hints=log.reader.notifier(head_poller.on_hint),
        feed=feed,
        webhooks=WebhookRunner(log, feed, keys, environment),
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
        service.projection.on_commit(len(written))
        if keys.any_reads():
            feed.scheduler.on_commit(written)
        if hints is not None:
            tables = {append.table for append in written}
            hints.notify(table for table in tables if not service.presence.alone(table))

    log.writer.commit_listeners.append(on_commit)
    service.projection.start()
    if hints is not None:
        hints.start()
    works = BackgroundTasks()
    works.start(service.head_poller.run())
    works.start(service.maintenance.run(log))
    works.start(keys.run(log))
    works.start(watch_file(log, service.stats))
    works.start(closer.run())
    works.start(service.openers.run())
    try:
        yield
    finally:
        await works.close()
        service.projection.close()
        await service.close()
        if hints is not None:
            await hints.close()


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
                await record_home(log, Home(found, mark.folder))
                database = found
