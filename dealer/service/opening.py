"""The house opens in order, the log, then the key, then the tables, and closes the other way round.

With it opens the scribe, who keeps the read models up with the log while nothing else is written.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from dealer.errors import SetupError
from dealer.eventlog import Append, Appended, Log, Result, key_file, open_house
from dealer.eventlog.hints import Hints
from dealer.eventlog.house import checks, require_database
from dealer.eventlog.mark import Mark, read_marks
from dealer.eventlog.sealing import MASTER_BYTES, HouseKeys
from dealer.eventlog.sqlite import database_file
from dealer.projector.scribe import Scribe
from dealer.service.auto_close import AutoClose
from dealer.service.clock import Clock, apart, utc_ms
from dealer.service.core import Service
from dealer.service.lobby import PER_NETWORK
from dealer.service.memory import BYTES, TABLES
from dealer.service.office import record_schema
from dealer.service.restored import close_if_restored, log_id, require_unused
from dealer.service.watch import keep_mark, watch_file

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
    disk_floor: int = 0,
    archive: Path | None = None,
    marks: Path | None = None,
    clock: Clock = utc_ms,
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is made if need be.

    `house_key` is the file of the house's key, made on the first day: by default beside an SQLite
    file, and to be named for a server's database. The marks of what was acknowledged are kept
    beside the key, or in the folder `marks`; a database that is older than they say is one that was
    restored from a backup, and its open tables are closed first.
    Bundles of archived tables are read out of `archive`. `clock` gives milliseconds since 1970.
    `Service`, `AutoClose` and, of an SQLite file, `Closures.watch_disk` explain the numbers; `log`
    goes to `Log.open`. Raises DatabaseError, HouseKeyError or SetupError.
    """
    file = key_file(database, house_key)
    await asyncio.to_thread(require_database, database, file)
    # The marks first: other processes move them after their commits, so never ahead of these.
    lines = await asyncio.to_thread(read_marks, file, folder=marks)
    with ExitStack() as after_the_log:
        async with await Log.open(database, **log) as kept:
            if not await checks(kept):
                require_unused(lines, database=kept.name, key=str(file))
            key = await open_house(kept, file, fresh=secrets.token_bytes(MASTER_BYTES))
            service = Service(
                kept,
                key,
                house=house,
                tables=tables,
                memory=memory,
                per_network=per_network,
                archive=archive,
                clock=clock,
            )
            if kept.server is None:
                folder = database_file(database).absolute().parent
                service.closures.watch_disk(folder, floor=disk_floor)
                await service.closures.look_at_disk()
            await _look_around(service, key)
            closer = AutoClose(service, empty_ms=close_empty_ms, idle_ms=close_idle_ms)
            async with _background(service, kept, closer):
                generation = await close_if_restored(service, kept, lines)
                mark = await asyncio.to_thread(Mark.take, file, folder=marks)
                if mark is None:
                    told = {"folder": str(marks or file.parent)}
                    log_.warning("no high-water mark", extra={"told": told})
                    yield service
                    return
                # The log writes to its end what waits, and puts that down, too.
                after_the_log.callback(mark.close)
                mark.begin(await log_id(kept), generation)
                service.keep(mark)
                async with _running(keep_mark(mark, kept)):
                    yield service


async def _look_around(service: Service, key: HouseKeys) -> None:
    """What has to be known of clock, closures and schema before anything is served."""
    wrong = await apart(service.log, service.now)
    if wrong is not None:
        raise SetupError(f"{wrong} and start again.")
    service.closures.check = key.check
    await service.closures.look(service.log)
    moved = await record_schema(service.log)
    if moved is not None:
        log_.info("migrated", extra={"told": dict(zip(("before", "now"), moved, strict=True))})


@asynccontextmanager
async def _background(service: Service, kept: Log, closer: AutoClose) -> AsyncIterator[None]:
    """What goes on beside the commands: projection, hints, polls, and the watch on the file."""
    scribe = Scribe(kept)
    hints = None if kept.server is None else Hints(kept.server, service.lookout.hinted)
    served = kept.committed

    def committed(batch: list[tuple[Append, Result]]) -> None:
        if served is not None:
            served(batch)
        scribe.noticed(len(batch))
        if hints is not None:
            hints.tell(each.table for each, result in batch if isinstance(result, Appended))
        service.counts.batch(batch)

    kept.committed = committed
    scribe.start()
    if hints is not None:
        hints.start()
    try:
        async with _running(
            service.lookout.look_around(),
            service.closures.follow(kept),
            watch_file(kept, service.counts),
            closer.run(),
            service.openers.run(),
        ):
            yield
    finally:
        scribe.close()
        await service.close()
        if hints is not None:
            await hints.close()


@asynccontextmanager
async def _running(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Tasks for as long as the block runs; what they still read is given back when it ends."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
