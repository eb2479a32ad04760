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
from dealer.projector.scribe import Scribe
from dealer.service.clock import apart
from dealer.service.core import Service
from dealer.service.office import record_schema

log_ = logging.getLogger(__name__)


@asynccontextmanager
async def open_service(
    database: str,
    *,
    house: str = "localhost",
    house_key: Path | None = None,
    tables: int = 10_000,
    archive: Path | None = None,
    **log: Any,
) -> AsyncIterator[Service]:
    """The service over the database at this address; an SQLite file is made if need be.

    `house_key` is the file of the house's key, made on the first day: by default beside an SQLite
    file, and to be named for a server's database.
    Bundles of archived tables are read out of `archive`. `log` goes to `Log.open`.
    Raises DatabaseError, HouseKeyError or SetupError.
    """
    file = key_file(database, house_key)
    async with await Log.open(database, **log) as kept:
        key = await open_house(kept, file, fresh=secrets.token_bytes(MASTER_BYTES))
        service = Service(kept, key, house=house, tables=tables, archive=archive)
        wrong = await apart(kept, service.now)
        if wrong is not None:
            raise SetupError(f"{wrong} and start again.")
        service.closures.check = key.check
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
        try:
            yield service
        finally:
            for task in (looking, following):
                task.cancel()
            # What they still read is given back before the log lets go of its readers.
            await asyncio.gather(looking, following, return_exceptions=True)
            scribe.close()
            await service.close()
            if hints is not None:
                await hints.close()
