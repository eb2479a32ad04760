"""The house opens in order, the log, then the key, then the tables, and closes the other way round.

With it opens the scribe, who keeps the read models up with the log while nothing else is written.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dealer.errors import SetupError
from dealer.eventlog import Append, Appended, Log, Result, key_file, open_house
from dealer.eventlog.hints import Hints
from dealer.eventlog.sealing import MASTER_BYTES
from dealer.eventlog.sqlite import database_file
from dealer.projector.scribe import Scribe
from dealer.service.auto_close import AutoClose
from dealer.service.clock import apart
from dealer.service.core import Service
from dealer.service.lobby import PER_NETWORK
from dealer.service.memory import BYTES, TABLES
from dealer.service.office import record_schema

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
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is made if need be.

    `house_key` is the file of the house's key, made on the first day: by default beside an SQLite
    file, and to be named for a server's database.
    Bundles of archived tables are read out of `archive`. `Service`, `AutoClose` and, of an SQLite
    file, `Closures.watch_disk` explain the numbers; `log` goes to `Log.open`.
    Raises DatabaseError, HouseKeyError or SetupError.
    """
    file = key_file(database, house_key)
    async with await Log.open(database, **log) as kept:
        key = await open_house(kept, file, fresh=secrets.token_bytes(MASTER_BYTES))
        service = Service(
            kept,
            key,
            house=house,
            tables=tables,
            memory=memory,
            per_network=per_network,
            archive=archive,
        )
        wrong = await apart(kept, service.now)
        if wrong is not None:
            raise SetupError(f"{wrong} and start again.")
        service.closures.check = key.check
        if kept.server is None:
            service.closures.watch_disk(database_file(database).absolute().parent, floor=disk_floor)
            await service.closures.look_at_disk()
        await service.closures.look(kept)
        moved = await record_schema(kept)
        if moved is not None:
            log_.info("migrated", extra={"told": dict(zip(("before", "now"), moved, strict=True))})
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
        looking = asyncio.create_task(service.lookout.look_around())
        following = asyncio.create_task(service.closures.follow(kept))
        closer = AutoClose(service, empty_ms=close_empty_ms, idle_ms=close_idle_ms)
        closing = asyncio.create_task(closer.run())
        noting = asyncio.create_task(service.openers.run())
        try:
            yield service
        finally:
            tasks = (looking, following, closing, noting)
            for task in tasks:
                task.cancel()
            # What they still read is given back before the log lets go of its readers.
            await asyncio.gather(*tasks, return_exceptions=True)
            scribe.close()
            await service.close()
            if hints is not None:
                await hints.close()
